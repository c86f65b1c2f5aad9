"""Policy of the DDQL defences: a network that values battery powers, with NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.env import OBSERVATION, seen
from meterveil.core.executor import Command, add_power
from meterveil.core.rollout import View
from meterveil.defenders.manager.manager_policy import Mlp
from meterveil.errors import InputError


@dataclass(frozen=True)
class QPolicy:
    """Policy that asks every minute for the battery power of the highest value.

    Values are computed in double precision: in single precision a matrix product may round differently for a
    batch than for one household, and that could change a choice.
    """

    network: Mlp  # its first layer takes `env.seen` as it is
    powers_w: FloatArray  # (action,) power of each action

    def __post_init__(self) -> None:
        shapes = [part.shape for part in (*self.network.weights, *self.network.biases)]
        widths = [len(OBSERVATION), *(bias.shape[0] for bias in self.network.biases)]
        fitting = [*pairwise(widths), *((width,) for width in widths[1:])]
        if shapes != fitting or self.powers_w.shape != (widths[-1],):
            raise InputError(
                f"the layers of the policy have the shapes {shapes} and value {self.powers_w.shape} powers; "
                f"they must lead from {len(OBSERVATION)} inputs to one value per power"
            )

    @classmethod
    def of(cls, arrays: Mapping[str, FloatArray]) -> QPolicy:
        """Build the policy from named arrays."""
        if "powers_w" not in arrays:
            raise InputError("the weights of the policy lack powers_w")
        return cls(Mlp.of(arrays, "relu"), arrays["powers_w"])

    def arrays(self) -> dict[str, FloatArray]:
        """Return layers and powers as named arrays."""
        return {**self.network.arrays(), "powers_w": self.powers_w}

    def values(self, observation: FloatArray) -> FloatArray:
        """Value every action, (batch, 6) to (batch, action)."""
        return self.network.logits(observation)

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Ask for the power of the highest value; the battery delivers what it can."""
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
        best = np.argmax(self.values(observation.astype(np.float64)), axis=1)
        return add_power(view.library, self.powers_w[best]), memory
