"""PPO of the manager with SB3: training households, masked policy, discount per minute, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvStepReturn
from torch import Tensor, nn

from meterveil.adapters.gymnasium import Observation, observation_space
from meterveil.adapters.sb3 import HouseholdVecEnv
from meterveil.core import env
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import BatteryState
from meterveil.core.env import OBSERVATION, EnvParams, EnvState, Reward
from meterveil.core.scenario import Scenario
from meterveil.defenders.run_folder import network_arrays, read_checkpoint, restore_network, save_checkpoint
from meterveil.defenders.trained_policies import Mlp
from meterveil.defenders.training_settings import ManagerSettings, VeilSettings

_STATE = ("row", "minute", "past_w", "moved_kwh", "cost")


class TrainingHouseholds(HouseholdVecEnv):
    """Parallel training households with scaled rewards and counters.

    The first day of each slot begins at another hour. Otherwise all slots would see the same hours in an
    update, and the policy would forget the others.
    """

    def __init__(self, params: EnvParams, scenario: Scenario, reward: Reward, settings: ManagerSettings) -> None:
        self._settings = settings
        super().__init__(params, scenario, self._scaled, settings.slots)
        self._unscaled = reward
        if settings.masked:
            plain, mask = observation_space(), np.zeros(params.library.n_actions, dtype=np.float32)
            self.observation_space = Box(np.append(plain.low, mask), np.append(plain.high, mask + 1.0))
        self.minutes = 0
        self.lasted: IntArray = np.zeros(settings.slots, dtype=np.int64)
        """Minutes of the latest decision of each slot."""
        self.finished: list[float] = []
        """Returns of the whole days since the last update; a slot's first day is not whole."""
        self._whole = np.zeros(settings.slots, dtype=np.bool_)

    def reset(self) -> Observation:
        """Begin the first day of every slot, each at another hour."""
        super().reset()
        share = np.arange(self.num_envs) / self.num_envs
        begin = (share * self.scenario.minutes[self.state.row]).astype(np.int64)
        self.state = self.state._replace(minute=begin)
        self._whole = begin == 0
        return self.observe()

    def step_wait(self) -> VecEnvStepReturn:
        """Execute one decision of every slot and update the counters."""
        before = self.state.minute
        _, reward, done, told = super().step_wait()
        self.lasted = np.array([info["minute"] for info in told], dtype=np.int64) - before
        self.minutes += int(self.lasted.sum())
        for slot in np.flatnonzero(done):
            if self._whole[slot]:
                self.finished.append(told[slot]["episode"]["r"] / self._settings.reward_scale)
        self._whole |= done
        return self.observe(), reward, done, told

    def observe(self) -> Observation:
        """Return the observation, followed by the feasibility mask where the policy uses one."""
        observation = env.observe(self.params, self.scenario, self.state)
        if not self._settings.masked:
            return observation
        return np.concatenate([observation, self.action_masks().astype(np.float32)], axis=1)

    def _scaled(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        return self._unscaled(scenario, before, action, after) * self._settings.reward_scale

    def snapshot(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return everything that the next step depends on: arrays, and values for JSON."""
        arrays = {
            "soc": self.state.battery.soc,
            "moved_today_kwh": self.state.battery.moved_kwh,
            **{name: getattr(self.state, name) for name in _STATE},
            "returns": self._returns,
            "lengths": self._lengths,
            "whole": self._whole,
        }
        return arrays, {"minutes": self.minutes, "slots": [rng.bit_generator.state for rng in self._rngs]}

    def restore(self, arrays: dict[str, Any], counters: dict[str, Any]) -> Observation:
        battery = BatteryState(arrays["soc"], arrays["moved_today_kwh"])
        self.state = EnvState(battery, *(arrays[name] for name in _STATE))
        self._returns, self._lengths, self._whole = (arrays[n] for n in ("returns", "lengths", "whole"))
        self.minutes = int(counters["minutes"])
        for rng, state in zip(self._rngs, counters["slots"], strict=True):
            rng.bit_generator.state = state
        return self.observe()


class MaskedPolicy(ActorCriticPolicy):
    """Policy that never chooses an action that would move nothing.

    The mask follows the observation. It skips the hidden layers and is applied to the logits, so PPO needs
    no change.
    """

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _PastMask(len(OBSERVATION), net_arch=self.net_arch, activation_fn=self.activation_fn)
        self.mlp_extractor.latent_dim_pi += self.features_dim - len(OBSERVATION)

    def _build(self, lr_schedule: Any) -> None:
        self.action_dist = _MaskedCategorical(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)


class _PastMask(MlpExtractor):
    """Feature extractor that passes the mask around both networks."""

    def forward_actor(self, features: Tensor) -> Tensor:
        hidden = super().forward_actor(features[:, : len(OBSERVATION)])
        return torch.cat([hidden, features[:, len(OBSERVATION) :]], dim=1)

    def forward_critic(self, features: Tensor) -> Tensor:
        return super().forward_critic(features[:, : len(OBSERVATION)])


class _MaskedCategorical(CategoricalDistribution):
    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        return _MaskedLogits(latent_dim - self.action_dim, self.action_dim)


class _MaskedLogits(nn.Linear):
    def forward(self, latent: Tensor) -> Tensor:
        logits = super().forward(latent[:, : self.in_features])
        return logits.masked_fill(latent[:, self.in_features :] == 0, -1e9)


class MinuteDiscount(RolloutBuffer):
    """Rollout buffer that discounts by the time that the households' latest decisions lasted (D6)."""

    def __init__(self, *args: Any, households: Any, **kwargs: Any) -> None:
        self.households = households
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        self.lasted = np.ones((self.buffer_size, self.n_envs), dtype=np.int64)

    def add(self, *args: Any, **kwargs: Any) -> None:
        self.lasted[self.pos] = self.households.lasted
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(self, last_values: Tensor, dones: BoolArray) -> None:
        """Estimate advantages as SB3 does, with gamma to the power of the decision's minutes."""
        following = last_values.numpy().flatten()
        goes_on = 1.0 - dones.astype(np.float32)
        advantage = np.zeros(self.n_envs, dtype=np.float32)
        for step in reversed(range(self.buffer_size)):
            kept = self.gamma ** self.lasted[step] * goes_on
            delta = self.rewards[step] + kept * following - self.values[step]
            advantage = delta + kept * self.gae_lambda * advantage
            self.advantages[step] = advantage
            following, goes_on = self.values[step], 1.0 - self.episode_starts[step]
        self.returns = self.advantages + self.values


def build(settings: ManagerSettings | VeilSettings, households: VecEnv, seed: int, policy: Any = None) -> PPO:
    """Build the learner, with weights drawn from the seed."""
    by_minute = settings.discount == "minute"
    return PPO(
        policy or (MaskedPolicy if settings.masked else "MlpPolicy"),
        households,
        learning_rate=settings.learning_rate,
        n_steps=settings.horizon // settings.slots,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        target_kl=settings.target_kl,
        rollout_buffer_class=MinuteDiscount if by_minute else None,
        rollout_buffer_kwargs={"households": households} if by_minute else None,
        seed=seed,
        device="cpu",
    )


def actor(model: PPO) -> Mlp:
    """Return the actor of the learner."""
    state = {name: part.detach().numpy().copy() for name, part in model.policy.state_dict().items()}
    layers = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
    weights = tuple(np.ascontiguousarray(state[f"{layer}.weight"].T) for layer in layers)
    return Mlp(weights, tuple(state[f"{layer}.bias"] for layer in layers))


def save(
    path: Path,
    model: PPO,
    households: TrainingHouseholds,
    key: str,
    curve: list[dict[str, Any]],
    probe: nn.Module | None = None,
) -> None:
    """Write everything that the next update depends on; `key` identifies the training, `probe` is one that learns."""
    arrays, counters = households.snapshot()
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002  used by SB3
    document = {
        "key": key,
        "decisions": model.num_timesteps,
        "passes": model._n_updates,
        "households": counters,
        "numpy": {"position": int(position), "has_gauss": int(has_gauss), "gauss": float(gauss)},
        "curve": curve,
    }
    groups = {
        "policy": network_arrays(model.policy, model.policy.optimizer),
        "households": {**arrays, "starts": model._last_episode_starts},
        "random": {"torch": torch.get_rng_state().numpy(), "numpy": np.asarray(keys)},
        "probe": network_arrays(probe) if probe else {},
    }
    save_checkpoint(path, document, groups)


def restore(
    path: Path, model: PPO, households: TrainingHouseholds, key: str, probe: nn.Module | None = None
) -> list[dict[str, Any]]:
    """Restore model, households, generators and a probe that learns; return the curve so far."""
    document, arrays = read_checkpoint(path, key)
    restore_network(model.policy, model.policy.optimizer, arrays["policy"])
    if probe:
        restore_network(probe, None, arrays["probe"])
    model.num_timesteps, model._n_updates = document["decisions"], document["passes"]
    households.reset()
    model._last_obs = households.restore(arrays["households"], document["households"])
    model._last_episode_starts = arrays["households"]["starts"]
    torch.set_rng_state(torch.from_numpy(arrays["random"]["torch"]))
    rest = (document["numpy"][name] for name in ("position", "has_gauss", "gauss"))
    np.random.set_state(("MT19937", arrays["random"]["numpy"], *rest))  # noqa: NPY002  used by SB3
    curve: list[dict[str, Any]] = document["curve"]
    return curve
