"""The trained manager as the core runs it: NumPy alone, no torch, no probe.

The same class acts from a run's weights and from a deployed bundle; they differ in who computes the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import seen
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View
from meterveil.errors import InputError

Float32Array = npt.NDArray[np.float32]
Choice = Literal["sampled", "greedy"]

CHOICES: tuple[Choice, ...] = ("sampled", "greedy")
"""`sampled` is the policy that was trained (Algorithm 1 draws); `greedy` takes its likeliest action."""

LAYERS = 3


def check_choice(name: str) -> Choice:
    """Refuse a way to choose that is not known."""
    known = next((choice for choice in CHOICES if choice == name), None)
    if known is None:
        raise InputError(f"there is no choice {name!r}; known are {', '.join(CHOICES)}")
    return known


class Network(Protocol):
    """Judge what the manager sees."""

    def logits(self, observation: Float32Array) -> Float32Array:
        """Return the logit of every action, (batch, 6) to (batch, 2K+1)."""
        ...


@dataclass(frozen=True)
class Mlp:
    """Two hidden layers of tanh, the shape that SB3 trains."""

    weights: tuple[Float32Array, ...]  # (in, out) of each layer
    biases: tuple[Float32Array, ...]  # (out,) of each layer

    @classmethod
    def of(cls, arrays: Mapping[str, Float32Array]) -> Mlp:
        """Take the layers from what `arrays` returned."""
        try:
            layers = [(arrays[f"weight_{n}"], arrays[f"bias_{n}"]) for n in range(LAYERS)]
        except KeyError as error:
            raise InputError(f"a policy's weights lack {error}; they need {LAYERS} layers") from error
        return cls(*map(tuple, zip(*layers, strict=True)))

    def arrays(self) -> dict[str, Float32Array]:
        """Name the layers."""
        weights = {f"weight_{n}": part for n, part in enumerate(self.weights)}
        return weights | {f"bias_{n}": part for n, part in enumerate(self.biases)}

    def logits(self, observation: Float32Array) -> Float32Array:
        """Return the logit of every action."""
        hidden = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.tanh(hidden @ weight + bias)
        answer: Float32Array = hidden @ self.weights[-1] + self.biases[-1]
        return answer


@dataclass(frozen=True)
class ManagerPolicy:
    """Choose a signature whenever none is running; remembers nothing between decisions."""

    network: Network
    n_actions: int
    masked: bool = False
    choice: Choice = "sampled"

    def __post_init__(self) -> None:
        check_choice(self.choice)

    def initial(self, batch: int) -> None:
        """Remember nothing."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Choose for every household that waits; nobody else's command would be heard."""
        if view.library.n_actions != self.n_actions:
            raise InputError(
                f"the policy was trained with {(self.n_actions - 1) // 2} signatures and is given "
                f"{view.library.size}; give it the library that it was trained with"
            )
        action = np.zeros(len(view.load_w), dtype=np.int64)
        waits = np.flatnonzero(view.waits)
        if len(waits):
            observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
            mask = self._mask(view)
            action[waits] = self.actions(observation[waits], mask[waits], view.chance[waits, 0])
        return replay_signature(view.library, action), memory

    def _mask(self, view: View) -> BoolArray:
        if self.masked:
            return executor.feasible(view.battery, view.library, view.state, view.load_w)
        return np.ones((len(view.load_w), self.n_actions), dtype=np.bool_)

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
