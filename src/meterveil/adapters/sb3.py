"""A batch of households as a Stable-Baselines3 VecEnv: one `core.env.transition` steps them all."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from meterveil.adapters.gymnasium import Observation, choose_row, infos, observation_space
from meterveil.core import env
from meterveil.core.arrays import BoolArray, IntArray
from meterveil.core.env import EnvParams, EnvState, Reward
from meterveil.core.scenario import Scenario
from meterveil.errors import InputError


class BatchVecEnv(VecEnv):
    """Vector environment that is one batch, not a list of environments; a subclass has `reset` and `step_wait`."""

    render_mode: str | None = None

    def step_async(self, actions: IntArray) -> None:
        self._actions = actions

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        if indices is not None:
            raise InputError(f"{attr_name} is shared by all slots; set it without indices")
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Call a method of the batch, such as `action_masks`, and return each slot's part."""
        parts = getattr(self, method_name)(*args, **kwargs)
        return [parts[slot] for slot in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        """Claim Monitor, since the infos have what Monitor would add."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


class HouseholdVecEnv(BatchVecEnv):
    """Batch of `n_envs` monitored `HouseholdEnv`s; each slot draws its rows from its own generator."""

    def __init__(self, params: EnvParams, scenario: Scenario, reward: Reward, n_envs: int) -> None:
        super().__init__(n_envs, observation_space(), Discrete(params.library.n_actions))
        self.params, self.scenario, self.reward = params, scenario, reward
        self.state: EnvState
        self._rngs = [np.random.default_rng() for _ in range(n_envs)]
        self._started = time.time()

    def reset(self) -> Observation:
        """Begin an episode in every slot, with the seeds and options given since the last reset."""
        slots = zip(self._rngs, self._seeds, strict=True)
        self._rngs = [rng if seed is None else np.random.default_rng(seed) for rng, seed in slots]
        row = np.array([choose_row(self.scenario, rng, self._options[i]) for i, rng in enumerate(self._rngs)])
        self._reset_seeds()
        self._reset_options()
        self.state = env.initial(self.params, self.scenario, row)
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=np.int64)
        return env.observe(self.params, self.scenario, self.state)

    def step_wait(self) -> VecEnvStepReturn:
        """Carry one decision of every slot out to its end; a slot whose day ends begins another day."""
        before = self.state
        self.state = env.transition(self.params, self.scenario, before, self._actions)
        reward = self.reward(self.scenario, before, self._actions, self.state)
        done = env.terminal(self.scenario, self.state)
        observation = env.observe(self.params, self.scenario, self.state)
        reports = [{**info, "TimeLimit.truncated": False} for info in infos(self.state)]
        self._returns, self._lengths = self._returns + reward, self._lengths + 1
        if done.any():
            observation = self._begin_again(done, observation, reports)
        return observation, reward.astype(np.float32), done, reports

    def _begin_again(self, done: BoolArray, last: Observation, reports: list[dict[str, Any]]) -> Observation:
        """Add the episode infos of SB3's Monitor to the finished slots, and reset them."""
        row, seconds = self.state.row.copy(), round(time.time() - self._started, 6)
        for slot in np.flatnonzero(done):
            episode = {"r": self._returns[slot].item(), "l": self._lengths[slot].item(), "t": seconds}
            reports[slot] |= {"terminal_observation": last[slot], "episode": episode}
            row[slot] = choose_row(self.scenario, self._rngs[slot], None)
        self.state = env.renew(self.params, self.scenario, self.state, done, row)
        self._returns[done], self._lengths[done] = 0.0, 0
        return env.observe(self.params, self.scenario, self.state)

    def action_masks(self) -> BoolArray:
        """Tell which actions would move energy now, (slot, 2K+1); the name that maskable PPO calls."""
        return env.action_mask(self.params, self.scenario, self.state)
