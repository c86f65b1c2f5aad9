"""One household as a Gymnasium environment: a step is a decision, an episode is a row of the scenario."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from meterveil.core import env
from meterveil.core.arrays import BoolArray
from meterveil.core.env import EnvParams, EnvState, Reward
from meterveil.core.scenario import Scenario
from meterveil.errors import InputError

Observation = npt.NDArray[np.float32]


class HouseholdEnv(gymnasium.Env[Observation, np.int64]):
    """Environment of one household; the end of the day terminates an episode, nothing is truncated (D6)."""

    def __init__(self, params: EnvParams, scenario: Scenario, reward: Reward) -> None:
        self.params, self.scenario, self.reward = params, scenario, reward
        self.observation_space = observation_space()
        self.action_space = Discrete(params.library.n_actions)  # idle, charge and discharge a signature
        self.state: EnvState

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in a random row of the scenario, or in `options["row"]`."""
        super().reset(seed=seed)
        row = choose_row(self.scenario, self.np_random, options)
        self.state = env.initial(self.params, self.scenario, np.array([row]))
        return self._observe(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        before, chosen = self.state, np.array([action])
        self.state = env.transition(self.params, self.scenario, before, chosen)
        reward = self.reward(self.scenario, before, chosen, self.state)
        terminated = env.terminal(self.scenario, self.state)
        return self._observe(), float(reward[0]), bool(terminated[0]), False, self._info()

    def action_masks(self) -> BoolArray:
        """Tell which actions would move energy now, (2K+1,); the name that maskable PPO calls."""
        return np.asarray(env.action_mask(self.params, self.scenario, self.state)[0])

    def _observe(self) -> Observation:
        return np.asarray(env.observe(self.params, self.scenario, self.state)[0])

    def _info(self) -> dict[str, Any]:
        return {**infos(self.state)[0], "action_mask": self.action_masks()}


def observation_space() -> Box[np.float32]:
    """Return the bounds of `core.env.observe`, which are the same for every household."""
    low, high = (np.array(limits, dtype=np.float32) for limits in (env.OBSERVATION_LOW, env.OBSERVATION_HIGH))
    return Box(low, high)


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
    names = ("moved_kwh", "cost", "soc", "row", "minute")
    columns = (state.moved_kwh, state.cost, state.battery.soc, state.row, state.minute)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
