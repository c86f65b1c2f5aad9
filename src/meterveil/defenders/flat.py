"""Flat meter: a slowly moving level that keeps the battery half full."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View

VERSION = 1
"""Raise it when a change alters what this defence does."""


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
        """Return an empty mean."""
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
