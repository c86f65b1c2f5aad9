"""Flat meter: a slowly moving level that keeps the battery half full, and load replacement: decoys on top of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.executor import Command, hold_meter, hold_meter_with_decoy
from meterveil.core.rollout import View
from meterveil.defenders.inversion import level_below_decoys

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

VERSION = 1  # raise it when a change alters what these defences do

MOST_LOAD_W = 12000.0
"""Load above which a change of the level is taken for a minute in which the battery did not follow."""

_TERMS = 8
"""Following minutes that are used to separate a minute's load from the next one in the running mean."""


class Memory(NamedTuple):
    """Running mean of the load."""

    usual_w: FloatArray  # (batch,) mean; NaN before the first reading
    minutes: FloatArray  # (batch,) number of readings in it


@dataclass(frozen=True)
class Flat:
    """Policy that holds the meter at the mean load, lower when the battery is full, higher when empty.

    It is causal: it uses the past and the present minute only.
    """

    memory_minutes: float = 1440.0
    """Time constant of the running mean; a shorter record is averaged as a whole."""
    soc_target: float = 0.5
    refill_hours: float = 12.0
    """Time to correct a deviation of the SoC."""

    def initial(self, batch: int) -> Memory:
        return Memory(np.full(batch, np.nan), np.zeros(batch))

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Hold the mean load plus a correction for the SoC."""
        known = ~np.isnan(view.load_w)
        load_w = np.where(known, view.load_w, memory.usual_w)
        before_w = np.where(np.isnan(memory.usual_w), load_w, memory.usual_w)
        minutes = np.minimum(memory.minutes + known, self.memory_minutes)
        usual_w = before_w + (load_w - before_w) / np.maximum(minutes, 1.0)
        lacks_kwh = (self.soc_target - view.state.soc) * view.battery.capacity_kwh
        level_w = np.maximum(usual_w + lacks_kwh * (1000.0 / self.refill_hours), 0.0)
        return hold_meter(view.library, level_w), Memory(usual_w, minutes)

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        return self.invert_level(meter.reading_w, meter.reading_w)

    def invert_level(self, level_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Estimate the load from the changes of the level: the level follows the SoC, which integrates the load.

        level(t+1) - level(t) = (load(t) - meter(t)) / (60 refill_hours) + (load(t+1) - usual) / memory_minutes.
        Where the level changes by more than any load explains, the battery did not follow, and the load is
        what the meter shows. No setting of the battery is needed: its capacity cancels out.
        """
        gain = 60.0 * self.refill_hours
        usual_w = meter_w.mean(axis=1, keepdims=True)
        change_w = np.diff(level_w, axis=1, append=level_w[:, -1:])
        followed = np.abs(change_w) < MOST_LOAD_W * (1.0 / gain + 1.0 / self.memory_minutes)
        known_w = np.where(followed, meter_w + gain * (change_w + usual_w / self.memory_minutes), meter_w)
        share = gain / self.memory_minutes  # of the next minute's load in what is known of this one
        load_w = known_w.copy()
        for _ in range(_TERMS):
            next_w = np.append(load_w[:, 1:], load_w[:, -1:], axis=1)
            load_w = np.where(followed, known_w - share * next_w, meter_w)
        return np.clip(load_w, -MOST_LOAD_W, MOST_LOAD_W)


@dataclass(frozen=True)
class FlatDecoys:
    """Policy that holds the level of `Flat` and adds a random signature from time to time."""

    rate: float = 1 / 150
    """Probability to start a decoy in a minute without one: nine a day, which add about 2 kWh."""
    flat: Flat = Flat(refill_hours=6.0)
    """Level below the decoys; they move the SoC, so it is corrected faster than without them."""

    def initial(self, batch: int) -> Memory:
        return self.flat.initial(batch)

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Lower the level by the mean power of decoys, so that they do not fill the battery."""
        level, memory = self.flat.decide(view, memory)
        level_w = np.maximum(level.level_w - view.library.mean_w(self.rate), 0.0)
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        signature = np.where(starts, (which * view.library.size).astype(np.int64), view.library.size)
        return hold_meter_with_decoy(view.library, level_w, signature), memory

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Remove the decoys, whose signatures are public, and invert the level below them, (batch, minute)."""
        level_w = level_below_decoys(meter.reading_w, setup.library)
        return self.flat.invert_level(level_w, meter.reading_w)
