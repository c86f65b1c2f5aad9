"""The training households: SB3's view of the core, with what a trainer needs beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from meterveil.adapters.sb3 import HouseholdVecEnv
from meterveil.adapters.shapes import Observation, observation_space
from meterveil.core import env
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import BatteryState
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.scenario import Scenario
from meterveil.defenders.manager.presets import Preset
from meterveil.defenders.manager.reward import ProbeReward


class TrainingHouseholds(HouseholdVecEnv):
    """Count what is simulated, scale what is learned from, and let the slots' days overlap.

    If all slots began at midnight they would all see the night, then all see the morning, and every update
    would forget the other hours. So a slot's first day begins somewhere within the day.
    """

    def __init__(self, params: EnvParams, scenario: Scenario, reward: ProbeReward, preset: Preset) -> None:
        self._preset = preset
        super().__init__(params, scenario, self._scaled, preset.slots)
        self._unscaled = reward
        if preset.masked:
            self.observation_space = _with_mask(params.library.n_actions)
        self.minutes = 0
        self.lasted: IntArray = np.zeros(preset.slots, dtype=np.int64)
        """Minutes that the latest decision of each slot took."""
        self.finished: list[float] = []
        """Returns of the whole days that ended since somebody looked; a slot's first day is not whole."""
        self._whole = np.zeros(preset.slots, dtype=np.bool_)

    def reset(self) -> Observation:
        """Begin a first day in every slot, each at another share of it."""
        super().reset()
        share = np.arange(self.num_envs) / self.num_envs
        begin = (share * self.scenario.minutes[self.state.row]).astype(np.int64)
        self.state = self.state._replace(minute=begin)
        self._whole = begin == 0
        return self.observe()

    def step_wait(self) -> VecEnvStepReturn:
        """Carry one decision of every slot out, and keep the books."""
        before = self.state.minute
        _, reward, done, told = super().step_wait()
        self.lasted = np.array([info["minute"] for info in told], dtype=np.int64) - before
        self.minutes += int(self.lasted.sum())
        for slot in np.flatnonzero(done):
            if self._whole[slot]:
                self.finished.append(told[slot]["episode"]["r"] / self._preset.reward_scale)
        self._whole |= done
        return self.observe(), reward, done, told

    def observe(self) -> Observation:
        """Return what the manager sees, and, where it is masked, what it may do."""
        observation = env.observe(self.params, self.scenario, self.state)
        if not self._preset.masked:
            return observation
        return np.concatenate([observation, self.action_masks().astype(np.float32)], axis=1)

    def _scaled(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        return self._unscaled(scenario, before, action, after) * self._preset.reward_scale

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return everything that the next step depends on: arrays, and what fits into JSON."""
        arrays = {
            "soc": self.state.battery.soc,
            "moved_today_kwh": self.state.battery.moved_kwh,
            **{name: getattr(self.state, name) for name in ("row", "minute", "past_w", "moved_kwh", "cost")},
            "returns": self._returns,
            "lengths": self._lengths,
            "whole": self._whole,
        }
        return arrays, {"minutes": self.minutes, "slots": [rng.bit_generator.state for rng in self._rngs]}

    def restore(self, arrays: dict[str, Any], counters: dict[str, Any]) -> Observation:
        """Go on where a snapshot was taken; return what the manager saw there."""
        battery = BatteryState(arrays["soc"], arrays["moved_today_kwh"])
        names = ("row", "minute", "past_w", "moved_kwh", "cost")
        self.state = EnvState(battery, *(arrays[name] for name in names))
        self._returns, self._lengths, self._whole = (arrays[n] for n in ("returns", "lengths", "whole"))
        self.minutes = int(counters["minutes"])
        for rng, state in zip(self._rngs, counters["slots"], strict=True):
            rng.bit_generator.state = state
        return self.observe()


def _with_mask(n_actions: int) -> Box[np.float32]:
    """Let an observation be followed by what may be done."""
    plain = observation_space()
    low, high = np.zeros(n_actions, dtype=np.float32), np.ones(n_actions, dtype=np.float32)
    return Box(np.append(plain.low, low), np.append(plain.high, high))
