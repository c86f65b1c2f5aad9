"""Two small parts that SB3's PPO lacks: a policy that knows what is feasible, and discounting by minutes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from torch import Tensor, nn

from meterveil.core.arrays import BoolArray
from meterveil.core.env import OBSERVATION
from meterveil.defenders.manager.env import TrainingHouseholds


class MaskedPolicy(ActorCriticPolicy):
    """Give actions that would move nothing no chance.

    The mask comes behind the observation. It passes the hidden layers by and meets their logits at the end,
    so that PPO samples, scores and differentiates the masked distribution without knowing of it.
    """

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _PastMask(
            len(OBSERVATION), net_arch=self.net_arch, activation_fn=self.activation_fn
        )
        self.mlp_extractor.latent_dim_pi += self.features_dim - len(OBSERVATION)

    def _build(self, lr_schedule: Any) -> None:
        self.action_dist = _MaskedCategorical(int(self.action_space.n))  # type: ignore[attr-defined]
        super()._build(lr_schedule)


class _PastMask(MlpExtractor):
    """Hide the mask from both networks, and hand it on behind the actor's features."""

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
    """Discount by the minutes that each decision took instead of by decisions (D6)."""

    def __init__(self, *args: Any, households: TrainingHouseholds, **kwargs: Any) -> None:
        self.households = households
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        """Forget the last rollout."""
        super().reset()
        self.lasted = np.ones((self.buffer_size, self.n_envs), dtype=np.int64)

    def add(self, *args: Any, **kwargs: Any) -> None:
        """Note how long the decision took."""
        self.lasted[self.pos] = self.households.lasted
        super().add(*args, **kwargs)

    def compute_returns_and_advantage(self, last_values: Tensor, dones: BoolArray) -> None:
        """Estimate advantages as SB3 does, with gamma to the power of a decision's minutes."""
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
