"""Policy of the DDQL defences: a network that values battery powers, with NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.env import OBSERVATION, seen
from meterveil.core.executor import Command, add_power
from meterveil.core.rollout import View
from meterveil.errors import InputError

LAYERS = 3


@dataclass(frozen=True)
class QPolicy:
    """Policy that asks every minute for the battery power of the highest value.

    Values are computed in double precision: in single precision a matrix product may round differently for a
    batch than for one household, and that could change a choice.
    """

    weights: tuple[FloatArray, ...]  # (in, out) of each layer; the first takes `env.seen` as it is
    biases: tuple[FloatArray, ...]  # (out,) of each layer
    powers_w: FloatArray  # (action,) power of each action

    def __post_init__(self) -> None:
        shapes = [
            (*weight.shape, *bias.shape) for weight, bias in zip(self.weights, self.biases, strict=True)
        ]
        widths = [len(OBSERVATION), *(shape[-1] for shape in shapes)]
        fits = [
            shape == (before, after, after)
            for shape, before, after in zip(shapes, widths, widths[1:], strict=False)
        ]
        if not all(fits) or self.powers_w.shape != (widths[-1],):
            raise InputError(
                f"the layers of the policy have the shapes {shapes} and value {self.powers_w.shape} powers; "
                f"they must lead from {len(OBSERVATION)} inputs to one value per power"
            )

    @classmethod
    def of(cls, arrays: Mapping[str, FloatArray]) -> QPolicy:
        """Build the policy from named arrays."""
        try:
            layers = [(arrays[f"weight_{n}"], arrays[f"bias_{n}"]) for n in range(LAYERS)]
            weights, biases = zip(*layers, strict=True)
            return cls(weights, biases, arrays["powers_w"])
        except KeyError as error:
            raise InputError(
                f"the weights of the policy lack {error}; they need {LAYERS} layers and powers"
            ) from error

    def arrays(self) -> dict[str, FloatArray]:
        """Return layers and powers as named arrays."""
        weights = {f"weight_{n}": part for n, part in enumerate(self.weights)}
        biases = {f"bias_{n}": part for n, part in enumerate(self.biases)}
        return {**weights, **biases, "powers_w": self.powers_w}

    def values(self, observation: FloatArray) -> FloatArray:
        """Value every action, (batch, 6) to (batch, action)."""
        hidden = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weight + bias, 0.0)
        answer: FloatArray = hidden @ self.weights[-1] + self.biases[-1]
        return answer

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Ask for the power of the highest value; the battery delivers what it can."""
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
        best = np.argmax(self.values(observation.astype(np.float64)), axis=1)
        return add_power(view.library, self.powers_w[best]), memory
