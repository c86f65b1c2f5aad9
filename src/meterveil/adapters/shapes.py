"""Shared by both environments: spaces, the choice of the next episode, and the infos."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from meterveil.core import env
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.scenario import Scenario
from meterveil.errors import InputError

Observation = npt.NDArray[np.float32]


def observation_space() -> Box[np.float32]:
    """Return the bounds of `core.env.observe`, which are the same for every household."""
    low, high = (np.array(limits, dtype=np.float32) for limits in (env.OBSERVATION_LOW, env.OBSERVATION_HIGH))
    return Box(low, high)


def action_space(params: EnvParams) -> Discrete:
    """Return the actions: idle, K signatures to charge and K to discharge."""
    return Discrete(params.library.n_actions)


def choose_row(scenario: Scenario, rng: np.random.Generator, options: dict[str, Any] | None) -> int:
    """Draw the row of the next episode, or take the one that `options={"row": i}` names."""
    if not options or "row" not in options:
        return int(rng.integers(scenario.batch))
    row = int(options["row"])
    if not 0 <= row < scenario.batch:
        raise InputError(f"the scenario has no row {row}; allowed are 0 to {scenario.batch - 1}")
    return row


def infos(state: EnvState) -> list[dict[str, Any]]:
    """Describe the latest decision and the state of each household."""
    columns = {
        "moved_kwh": state.moved_kwh,
        "cost": state.cost,
        "soc": state.battery.soc,
        "row": state.row,
        "minute": state.minute,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
