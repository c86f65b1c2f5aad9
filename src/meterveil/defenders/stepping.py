"""Yang et al., "Minimizing private data disclosures in the smart grid" (CCS 2012): LS1, LS2, LC and RC.

Published rule: the meter shows only multiples of a step. The next multiple above the load charges the
battery, the one below discharges it; the four variants differ in their choice (see each class). Where the
battery is full or empty, the other multiple is used.
Changed here: the step is the 0.5 kW of small batteries, not the rated power of this one (steps of 4 kW would
let the meter show 0 or 4 kW only); shares are those of the usable SoC range; a demand is a minute's mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.battery import charge_share, soc_after
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View
from meterveil.defenders.inversion import ALIKE_MINUTES, around, middle_w, within_a_step

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

VERSION = 1  # raise it when a change alters what this defence does

_OFTEN = 0.1
"""Share of readings of 0 W within an hour of a minute that shows that the battery discharges."""


class Memory(NamedTuple):
    """Choice of the last minute."""

    level_w: FloatArray  # (batch,) multiple that the meter was held at; NaN before the first reading
    charges: BoolArray  # (batch,) whether it was the multiple above the load when it was chosen


def _fresh(policy: object, batch: int) -> Memory:
    """Return no level, discharging."""
    return Memory(np.full(batch, np.nan), np.zeros(batch, dtype=np.bool_))


@dataclass(frozen=True)
class LazyStepping:
    """Policy that keeps a multiple until the load is more than a step away from it (LS1, LS2)."""

    coin: bool = False
    """How to choose: False charges below half of the range and discharges above (LS1), True draws (LS2)."""
    step_w: float = 500.0

    initial = _fresh

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Keep the level where the load is near it."""
        tossed = view.chance[:, 0] < 0.5
        choice = tossed if self.coin else charge_share(view.battery, view.state.soc) < 0.5
        far = np.abs(memory.level_w - view.load_w) > self.step_w
        charges = np.where(far, choice, memory.charges)
        moved_w = _multiple_w(self.step_w, view.load_w, charges)
        level_w = np.where(far | np.isnan(memory.level_w), moved_w, memory.level_w)
        return _hold(self.step_w, view, memory, Memory(level_w, charges))

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Take the middle of the loads that a level is kept for, (batch, minute)."""
        lowest_w, highest_w = within_a_step(self.step_w, meter.reading_w)
        return middle_w(self.step_w, meter.reading_w, lowest_w, highest_w)


@dataclass(frozen=True)
class LazyCharging:
    """Policy that charges until the battery is full, then discharges until it is empty (LC)."""

    step_w: float = 500.0

    initial = _fresh

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        level_w = _multiple_w(self.step_w, view.load_w, memory.charges)
        return _hold(self.step_w, view, memory, Memory(level_w, memory.charges))

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Take the middle of the step above or below the reading, (batch, minute).

        A load below one step shows as 0 W while the battery discharges, and never while it charges.
        """
        shown_w = meter.reading_w
        discharges = np.mean(around(shown_w, 60) == 0.0, axis=2) > _OFTEN
        lowest_w, highest_w = within_a_step(self.step_w, shown_w)
        lowest_w, highest_w = np.where(discharges, shown_w, lowest_w), np.where(discharges, highest_w, shown_w)
        return middle_w(self.step_w, shown_w, lowest_w, highest_w, ALIKE_MINUTES)


@dataclass(frozen=True)
class RandomCharging:
    """Policy that draws in every minute; the emptier the battery, the likelier it charges (RC)."""

    step_w: float = 500.0

    initial = _fresh

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        charges = view.chance[:, 0] < 1.0 - charge_share(view.battery, view.state.soc)
        level_w = _multiple_w(self.step_w, view.load_w, charges)
        return _hold(self.step_w, view, memory, Memory(level_w, charges))

    def invert(self, meter: Meter, setup: Setup) -> FloatArray:
        """Take the middle of the step that drawn readings jump around, (batch, minute)."""
        lowest_w, highest_w = within_a_step(self.step_w, meter.reading_w)
        return middle_w(self.step_w, meter.reading_w, lowest_w, highest_w, ALIKE_MINUTES)


def _multiple_w(step_w: float, load_w: FloatArray, charges: BoolArray) -> FloatArray:
    """Return the multiple above the load where it charges, else the one below."""
    return np.where(charges, np.ceil(load_w / step_w), np.floor(load_w / step_w)) * step_w


def _hold(step_w: float, view: View, before: Memory, wanted: Memory) -> tuple[Command, Memory]:
    """Hold the wanted level, or the other multiple where the battery is full or empty."""
    after = soc_after(view.battery, view.state.soc, wanted.level_w - view.load_w)
    full, empty = after > view.battery.soc_max, after < view.battery.soc_min
    charges = (wanted.charges | empty) & ~full
    turned_w = _multiple_w(step_w, view.load_w, charges)
    chosen = Memory(np.where(full | empty, turned_w, wanted.level_w), charges)
    known = ~np.isnan(view.load_w)
    kept = Memory(*(np.where(known, new, old) for new, old in zip(chosen, before, strict=True)))
    return hold_meter(view.library, chosen.level_w), kept
