"""McLaughlin et al., "Protecting consumer privacy from electric load monitoring" (CCS 2011): NILL.

Published rule: hold the meter at a constant level. Where that would overfill the battery, a high recovery
holds it 0.5 A below the load of that moment until the battery is half empty or the load rises by 5 A; where
it would run dry, a low recovery holds it at the battery's rated power until the battery is 80 % full. After a
recovery the level moves half of the way to the mean load of the recovery.
Changed here: the level starts at the first load, because the mean of the whole record is unknown in advance;
shares are those of the usable SoC range; the low recovery uses the 0.5 kW of small batteries, because the
4 kW of this one would show as a spike and use most of a day's budget. One-minute data need no change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.battery import charge_share, soc_after
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View
from meterveil.defenders.inversion import load_beside_levels

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

VERSION = 1  # raise it when a change alters what this defence does


class Memory(NamedTuple):
    """State of each household: high recovery, low recovery or, without both, stable."""

    stable_w: FloatArray  # (batch,) level of the stable state; NaN before the first reading
    high: BoolArray  # (batch,)
    low: BoolArray  # (batch,)
    high_w: FloatArray  # (batch,) level of the high recovery
    sum_w: FloatArray  # (batch,) sum of the loads in this recovery
    minutes: FloatArray  # (batch,) minutes of this recovery


@dataclass(frozen=True)
class Nill:
    """Policy that holds a level and leaves it only to charge or discharge the battery."""

    volts: float = 230.0
    """Mains voltage, to convert the published amperes to watts."""
    below_a: float = 0.5
    rise_a: float = 5.0
    recovery_w: float = 500.0
    """Level of the low recovery."""
    high_until: float = 0.5
    low_until: float = 0.8
    alpha: float = 0.5
    """Weight of the recovery's mean load in the next level."""

    def initial(self, batch: int) -> Memory:
        """Start in the stable state without a level."""
        no, zero = np.zeros(batch, dtype=np.bool_), np.zeros(batch)
        return Memory(np.full(batch, np.nan), no, no, zero, zero, zero)

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """End or begin recoveries, and hold the level of the state."""
        known = ~np.isnan(view.load_w)
        now = self._entered(view, self._left(view, memory))
        recovers = now.high | now.low
        now = now._replace(sum_w=now.sum_w + view.load_w * recovers, minutes=now.minutes + recovers)
        level_w = np.where(now.high, now.high_w, np.where(now.low, self.recovery_w, now.stable_w))
        kept = Memory(*(np.where(known, new, old) for new, old in zip(now, memory, strict=True)))
        return hold_meter(view.library, level_w), kept

    def _left(self, view: View, memory: Memory) -> Memory:
        """End recoveries whose SoC is reached or whose load rose."""
        share = charge_share(view.battery, view.state.soc)
        rose = view.load_w - memory.high_w >= self.rise_a * self.volts
        ends = (memory.high & (rose | (share <= self.high_until))) | (memory.low & (share >= self.low_until))
        mean_w = memory.sum_w / np.maximum(memory.minutes, 1.0)
        moved_w = (1.0 - self.alpha) * memory.stable_w + self.alpha * mean_w
        return memory._replace(
            stable_w=np.where(ends, moved_w, memory.stable_w),
            high=memory.high & ~ends,
            low=memory.low & ~ends,
            sum_w=np.where(ends, 0.0, memory.sum_w),
            minutes=np.where(ends, 0.0, memory.minutes),
        )

    def _entered(self, view: View, memory: Memory) -> Memory:
        """Begin recoveries where the level cannot be held; a high one follows a falling load."""
        battery, soc, load_w = view.battery, view.state.soc, view.load_w
        stable_w = np.where(np.isnan(memory.stable_w), load_w, memory.stable_w)
        held_w = np.where(memory.high, memory.high_w, stable_w)
        after = soc_after(battery, soc, held_w - load_w)
        too_full = ~memory.low & (held_w > load_w) & (after > battery.soc_max)
        too_empty = ~memory.low & ~memory.high & (held_w < load_w) & (after < battery.soc_min)
        below_w = np.maximum(load_w - self.below_a * self.volts, 0.0)
        return memory._replace(
            stable_w=stable_w,
            high=memory.high | too_full,
            low=memory.low | too_empty,
            high_w=np.where(too_full, below_w, memory.high_w),
        )

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Read the minutes in which the battery does not follow, (batch, minute)."""
        return load_beside_levels(meter.reading_w, setup.battery)
