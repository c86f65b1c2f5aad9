"""Ration for another defence: the daily budget is released in proportion to the time of day."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meterveil.core.executor import Command, idle
from meterveil.core.rollout import Policy, View

VERSION = 1  # raise it when a change alters what this defence does

DAY_MINUTES = 1440


@dataclass(frozen=True)
class Rationed:
    """Policy that lets another one act while less of the budget than of the day is used, and idles otherwise.

    A running command is completed, so the ration may be exceeded by one signature.
    """

    policy: Policy

    def initial(self, batch: int) -> Any:
        return self.policy.initial(batch)

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        """Use the command of the other policy, or idle where the ration is used up."""
        command, memory = self.policy.decide(view, memory)
        ration_kwh = view.battery.budget_kwh * (view.minute_of_day + 1) / DAY_MINUTES
        spent, rest = view.state.moved_kwh >= ration_kwh, idle(view.library, len(view.load_w))
        parts = zip(rest, command, strict=True)
        return Command(*(np.where(spent, resting, asked) for resting, asked in parts)), memory
