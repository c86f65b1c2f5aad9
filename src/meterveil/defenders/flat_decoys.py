"""Load replacement, our own: a flat meter with decoy appliances on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.decoys import Library
from meterveil.core.executor import Command, hold_meter_with_decoy
from meterveil.core.rollout import View
from meterveil.defenders.decoy_removal import level_below_decoys
from meterveil.defenders.flat import Flat, Memory

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

VERSION = 1
"""Raise it when a change alters what this defence does."""

_FLAT = Flat(refill_hours=6.0)


@dataclass(frozen=True)
class FlatDecoys:
    """Policy that holds the level of `Flat` and adds a random signature from time to time."""

    rate: float = 1 / 150
    """Probability to start a decoy in a minute without one: nine a day, which add about 2 kWh."""
    flat: Flat = _FLAT
    """Level below the decoys; they move the SoC, so it is corrected faster than without them."""

    def initial(self, batch: int) -> Memory:
        """Return an empty mean."""
        return self.flat.initial(batch)

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Lower the level by the mean power of decoys, so that they do not fill the battery."""
        level, memory = self.flat.decide(view, memory)
        level_w = np.maximum(level.level_w - self.mean_w(view.library), 0.0)
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        signature = np.where(starts, (which * view.library.size).astype(np.int64), view.library.size)
        return hold_meter_with_decoy(view.library, level_w, signature), memory

    def mean_w(self, library: Library) -> float:
        """Return the mean power of decoys over all minutes."""
        return library.mean_w(self.rate)

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Remove the decoys, whose signatures are public, and invert the level below them, (batch, minute)."""
        level_w = level_below_decoys(meter.reading_w, setup.library)
        return self.flat.invert_level(level_w, meter.reading_w)
