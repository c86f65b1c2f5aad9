"""One household as a Gymnasium environment: a step is a decision, an episode is a row of the scenario."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from meterveil.adapters.shapes import Observation, action_space, choose_row, infos, observation_space
from meterveil.core import env
from meterveil.core.arrays import BoolArray
from meterveil.core.env import EnvParams, EnvState, Reward
from meterveil.core.scenario import Scenario


class HouseholdEnv(gymnasium.Env[Observation, np.int64]):
    """Environment of one household; the end of the day terminates an episode, nothing is truncated (D6)."""

    def __init__(self, params: EnvParams, scenario: Scenario, reward: Reward) -> None:
        self.params = params
        self.scenario = scenario
        self.reward = reward
        self.observation_space = observation_space()
        self.action_space = action_space(params)
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
        """Carry one decision out to its end."""
        before, chosen = self.state, np.array([action])
        self.state = env.transition(self.params, self.scenario, before, chosen)
        reward = self.reward(self.scenario, before, chosen, self.state)
        terminated = env.terminal(self.scenario, self.state)
        return self._observe(), float(reward[0]), bool(terminated[0]), False, self._info()

    def action_masks(self) -> BoolArray:
        """Tell which actions would move energy now, (2K+1,); the name that maskable PPO calls."""
        mask: BoolArray = env.action_mask(self.params, self.scenario, self.state)[0]
        return mask

    def _observe(self) -> Observation:
        observation: Observation = env.observe(self.params, self.scenario, self.state)[0]
        return observation

    def _info(self) -> dict[str, Any]:
        return {**infos(self.state)[0], "action_mask": self.action_masks()}
