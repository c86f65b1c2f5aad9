"""Policies of trained defences, with NumPy only: the manager's and that of the DDQL defences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import seen
from meterveil.core.executor import Command, add_power, replay_signature
from meterveil.core.rollout import View
from meterveil.defenders.inversion import likeliest_load, without_decoys
from meterveil.defenders.training_settings import Choice
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

Array = npt.NDArray[Any]
Float32Array = npt.NDArray[np.float32]
LAYERS = 3


@dataclass(frozen=True)
class Mlp:
    """Network with two hidden layers."""

    weights: tuple[Array, ...]  # (in, out) of each layer
    biases: tuple[Array, ...]  # (out,) of each layer
    activation: Literal["tanh", "relu"] = "tanh"

    @classmethod
    def of(cls, arrays: Mapping[str, Array], activation: Literal["tanh", "relu"] = "tanh") -> Mlp:
        weights, biases = (tuple(arrays[f"{kind}_{n}"] for n in range(LAYERS)) for kind in ("weight", "bias"))
        return cls(weights, biases, activation)

    def arrays(self) -> dict[str, Array]:
        weights = {f"weight_{n}": part for n, part in enumerate(self.weights)}
        return weights | {f"bias_{n}": part for n, part in enumerate(self.biases)}

    def logits(self, observation: Array) -> Array:
        """Return one output per action, (batch, 6) to (batch, action)."""
        hidden = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = hidden @ weight + bias
            hidden = np.tanh(hidden) if self.activation == "tanh" else np.maximum(hidden, 0.0)
        answer: Array = hidden @ self.weights[-1] + self.biases[-1]
        return answer


@dataclass(frozen=True)
class ManagerPolicy:
    """Policy that chooses a signature whenever none is running."""

    network: Mlp
    n_actions: int
    masked: bool = False
    choice: Choice = "sampled"

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Choose for every household without a running signature; the others ignore commands."""
        if view.library.n_actions != self.n_actions:
            raise InputError(
                f"the policy was trained with {(self.n_actions - 1) // 2} signatures, the library has "
                f"{view.library.size}; use the library of the training"
            )
        action = np.zeros(len(view.load_w), dtype=np.int64)
        waits = np.flatnonzero(view.waits)
        if len(waits):
            observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
            mask = np.ones((len(action), self.n_actions), dtype=np.bool_)
            if self.masked:
                mask = executor.feasible(view.battery, view.library, view.state, view.load_w)
            action[waits] = self.actions(observation[waits], mask[waits], view.chance[waits, 0])
        return replay_signature(view.library, action), memory

    def actions(self, observation: Float32Array, mask: BoolArray, chance: FloatArray) -> IntArray:
        """Choose an action for each observation; `chance` is uniform in [0, 1)."""
        logits = self.network.logits(observation).astype(np.float64)
        if self.masked:
            logits = np.where(mask, logits, -np.inf)
        if self.choice == "greedy":
            likeliest: IntArray = np.argmax(logits, axis=1)
            return likeliest
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        reached = np.cumsum(odds, axis=1)
        drawn: IntArray = np.sum(reached <= chance[:, None] * reached[:, -1:], axis=1, dtype=np.int64)
        return drawn

    invert = without_decoys


@dataclass(frozen=True, eq=False)
class QPolicy:
    """Policy that asks every minute for the battery power of the highest value; equal to itself alone.

    Values are computed in double precision: in single precision a matrix product may round differently for a
    batch than for one household, and that could change a choice.
    """

    network: Mlp  # its first layer takes `env.seen` as it is
    powers_w: FloatArray  # (action,) power of each action

    @classmethod
    def of(cls, arrays: Mapping[str, FloatArray]) -> QPolicy:
        return cls(Mlp.of(arrays, "relu"), arrays["powers_w"])

    def arrays(self) -> dict[str, FloatArray]:
        return {**self.network.arrays(), "powers_w": self.powers_w}

    def values(self, observation: FloatArray) -> FloatArray:
        return self.network.logits(observation)

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Ask for the power of the highest value; the battery delivers what it can."""
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
        best = np.argmax(self.values(observation.astype(np.float64)), axis=1)
        return add_power(view.library, self.powers_w[best]), memory

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Find the loads that the network would answer with these readings, (batch, minute)."""
        return likeliest_load(self, meter, setup)
