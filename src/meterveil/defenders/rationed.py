"""Makes the day's budget of another defence last until midnight: it is given out as the day passes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meterveil.core.executor import Command, idle
from meterveil.core.rollout import Policy, View

VERSION = 1
"""Raise it when a change alters what this defence does."""

DAY_MINUTES = 1440


@dataclass(frozen=True)
class Rationed:
    """Let another defence act while less of the budget is spent than of the day; otherwise rest.

    A command that was begun is carried out to its end, so the ration may be passed by one signature.
    """

    policy: Policy

    def initial(self, batch: int) -> Any:
        """Remember what the other one remembers."""
        return self.policy.initial(batch)

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        """Ask the other one, and keep its command back wherever the ration is used up."""
        command, memory = self.policy.decide(view, memory)
        ration_kwh = view.battery.budget_kwh * (view.minute_of_day + 1) / DAY_MINUTES
        spent, rest = view.state.moved_kwh >= ration_kwh, idle(view.library, len(view.load_w))
        parts = zip(rest, command, strict=True)
        return Command(*(np.where(spent, resting, asked) for resting, asked in parts)), memory
