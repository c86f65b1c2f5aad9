"""Load replacement, our own: a flat meter with appliances on top that nobody used."""

from dataclasses import dataclass

import numpy as np

from meterveil.core.decoys import Library
from meterveil.core.executor import Command, hold_meter_with_decoy
from meterveil.core.rollout import View
from meterveil.defenders.flat import Flat, Memory

VERSION = 1
"""Raise it when a change alters what this defence does."""

_FLAT = Flat(refill_hours=6.0)


@dataclass(frozen=True)
class FlatDecoys:
    """Hold the level of `Flat`, and from time to time a signature on top of it."""

    rate: float = 1 / 150
    """Chance to start a decoy in a minute in which none runs: nine a day, which add about 2 kWh."""
    flat: Flat = _FLAT
    """Decoys throw the SoC about, so the level brings it back sooner than without them."""

    def initial(self, batch: int) -> Memory:
        """Know no load yet."""
        return self.flat.initial(batch)

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Lower the level by what decoys draw on average, so that they do not fill the battery."""
        level, memory = self.flat.decide(view, memory)
        level_w = np.maximum(level.level_w - self.mean_w(view.library), 0.0)
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        signature = np.where(starts, (which * view.library.size).astype(np.int64), view.library.size)
        return hold_meter_with_decoy(view.library, level_w, signature), memory

    def mean_w(self, library: Library) -> float:
        """Average what decoys draw over minutes with and without one."""
        decoy_w_minutes = library.watts.sum() / library.size
        minutes = library.lengths[:-1].mean()
        return float(self.rate * decoy_w_minutes / (1.0 + self.rate * (minutes - 1.0)))
