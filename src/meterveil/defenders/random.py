"""Random baseline of the paper's comparison table: random signatures, independent of load and SoC.

The paper states no rate, only a degradation cost of 0.029 a day: 0.39 kWh moved (D7), two or three decoys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View
from meterveil.defenders.decoy_removal import load_without_decoys

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

VERSION = 1
"""Raise it when a change alters what this defence does."""

PAPER_RATE = 1 / 560
"""Rate that moves the paper's 0.39 kWh on training days of UK-DALE house 1 with the synthetic library."""


@dataclass(frozen=True)
class RandomDecoys:
    """Policy that starts one of the 2K decoys, all equally likely, with a fixed rate."""

    rate: float = 1 / 30
    """Probability to start a decoy in a minute in which none runs: one about every half hour."""

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Draw for every household."""
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        action = 1 + (which * (2 * view.library.size)).astype(np.int64)
        return replay_signature(view.library, action * starts), memory

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Remove the decoys from the meter, (batch, minute)."""
        return load_without_decoys(meter.reading_w, setup.library)
