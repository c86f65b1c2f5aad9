"""The random baseline of the paper's comparison table: signatures by chance, whatever the load or the SoC.

The paper states no rate, only a wear of 0.029 a day: 0.39 kWh moved (D7), two or three decoys.
"""

from dataclasses import dataclass

import numpy as np

from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View

VERSION = 1
"""Raise it when a change alters what this defence does."""

PAPER_RATE = 1 / 560
"""Moves the paper's 0.39 kWh a day on the training days of UK-DALE house 1, with the shipped library."""


@dataclass(frozen=True)
class RandomDecoys:
    """Start one of the 2K decoys, all equally likely, in a share of the minutes without one."""

    rate: float = 1 / 30
    """Chance to start a decoy in a minute in which none runs: one about every half hour."""

    def initial(self, batch: int) -> None:
        """Remember nothing."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Throw the dice for every household."""
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        action = 1 + (which * (2 * view.library.size)).astype(np.int64)
        return replay_signature(view.library, action * starts), memory
