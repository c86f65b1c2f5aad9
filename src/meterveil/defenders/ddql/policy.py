"""What double Q-learning leaves: a network that values battery powers, acting with NumPy alone."""

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
    """Ask every minute for the battery power that is valued most; remembers nothing between minutes.

    Values are computed in double precision: a matrix product may round otherwise for a batch than for one
    household, and in single precision that could now and then turn a choice.
    """

    weights: tuple[FloatArray, ...]  # (in, out) of each layer; the first takes `env.seen` as it is
    biases: tuple[FloatArray, ...]  # (out,) of each layer
    powers_w: FloatArray  # (action,) what each action asks for

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
                f"a policy's layers are of shapes {shapes} and value {self.powers_w.shape} powers; they need "
                f"to lead from {len(OBSERVATION)} inputs to one value for each power"
            )

    @classmethod
    def of(cls, arrays: Mapping[str, FloatArray]) -> QPolicy:
        """Build the policy from what `arrays` returned."""
        try:
            layers = [(arrays[f"weight_{n}"], arrays[f"bias_{n}"]) for n in range(LAYERS)]
            weights, biases = zip(*layers, strict=True)
            return cls(weights, biases, arrays["powers_w"])
        except KeyError as error:
            raise InputError(
                f"a policy's weights lack {error}; they need {LAYERS} layers and powers"
            ) from error

    def arrays(self) -> dict[str, FloatArray]:
        """Name everything that the policy is made of."""
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
        """Remember nothing."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Ask for the power of the highest value; the battery delivers what it can."""
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
        best = np.argmax(self.values(observation.astype(np.float64)), axis=1)
        return add_power(view.library, self.powers_w[best]), memory
