"""Published rules that hold the meter at a level: best effort, NILL and the four stepping defences.

Each class names its paper and what is changed here; one-minute data need no change. A share of charge is that
of the usable SoC range, and a gap in the record changes no level.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import View

VERSION = 1
"""Raise it when a change alters what one of these defences does."""


@dataclass(frozen=True)
class BestEffort:
    """Policy that holds the meter at its last reading.

    Kalogridis et al., "Privacy for smart meters" (SmartGridComm 2010): the battery compensates every change
    of the load. Where it is full or empty, or its daily budget is spent, the result is held next.
    """

    def initial(self, batch: int) -> FloatArray:
        """Return an unknown reading."""
        return np.full(batch, np.nan)

    def decide(self, view: View, memory: FloatArray) -> tuple[Command, FloatArray]:
        """Hold the last reading; before the first one, the load itself."""
        last_w = np.where(np.isnan(view.meter_w), memory, view.meter_w)
        return hold_meter(view.library, np.where(np.isnan(last_w), view.load_w, last_w)), last_w


class NillMemory(NamedTuple):
    """State of each household: high recovery, low recovery or, without both, stable."""

    stable_w: FloatArray  # (batch,) level of the stable state; NaN before the first reading
    high: BoolArray  # (batch,)
    low: BoolArray  # (batch,)
    high_w: FloatArray  # (batch,) level of the high recovery
    sum_w: FloatArray  # (batch,) sum of the loads in this recovery
    minutes: FloatArray  # (batch,) minutes of this recovery


@dataclass(frozen=True)
class Nill:
    """Policy that holds a level and leaves it only to charge or discharge the battery.

    McLaughlin et al., "Protecting consumer privacy from electric load monitoring" (CCS 2011): where the level
    would overfill the battery, a high recovery holds the meter 0.5 A below the load of that moment until the
    battery is half empty or the load rises by 5 A; where it would run dry, a low recovery holds the battery's
    rated power until it is 80 % full. After a recovery the level moves half of the way to its mean load.
    Changed here: the level starts at the first load, because the mean of the whole record is unknown in
    advance; the low recovery uses the 0.5 kW of small batteries, because the 4 kW of this one would show as a
    spike and use most of a day's budget.
    """

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

    def initial(self, batch: int) -> NillMemory:
        """Start in the stable state without a level."""
        no, zero = np.zeros(batch, dtype=np.bool_), np.zeros(batch)
        return NillMemory(np.full(batch, np.nan), no, no, zero, zero, zero)

    def decide(self, view: View, memory: NillMemory) -> tuple[Command, NillMemory]:
        """End or begin recoveries, and hold the level of the state."""
        now = self._entered(view, self._left(view, memory))
        recovers = now.high | now.low
        now = now._replace(sum_w=now.sum_w + view.load_w * recovers, minutes=now.minutes + recovers)
        level_w = np.where(now.high, now.high_w, np.where(now.low, self.recovery_w, now.stable_w))
        return hold_meter(view.library, level_w), _where_known(view, now, memory)

    def _left(self, view: View, memory: NillMemory) -> NillMemory:
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

    def _entered(self, view: View, memory: NillMemory) -> NillMemory:
        """Begin recoveries where the level cannot be held; a high one follows a falling load."""
        battery, load_w = view.battery, view.load_w
        stable_w = np.where(np.isnan(memory.stable_w), load_w, memory.stable_w)
        held_w = np.where(memory.high, memory.high_w, stable_w)
        after = soc_after(battery, view.state.soc, held_w - load_w)
        too_full = ~memory.low & (held_w > load_w) & (after > battery.soc_max)
        too_empty = ~memory.low & ~memory.high & (held_w < load_w) & (after < battery.soc_min)
        below_w = np.maximum(load_w - self.below_a * self.volts, 0.0)
        return memory._replace(
            stable_w=stable_w,
            high=memory.high | too_full,
            low=memory.low | too_empty,
            high_w=np.where(too_full, below_w, memory.high_w),
        )


class Step(NamedTuple):
    """Choice of the last minute of a stepping defence."""

    level_w: FloatArray  # (batch,) multiple that the meter was held at; NaN before the first reading
    charges: BoolArray  # (batch,) whether it was the multiple above the load when it was chosen


@dataclass(frozen=True)
class _Stepping:
    """Policy that lets the meter show only multiples of a step.

    Yang et al., "Minimizing private data disclosures in the smart grid" (CCS 2012): the multiple above the
    load charges the battery, the one below discharges it; the variants differ in their choice. Where the
    battery is full or empty, the other multiple is used.
    Changed here: the step is the 0.5 kW of small batteries, not the rated power of this one (steps of 4 kW
    would let the meter show 0 or 4 kW only); a demand is a minute's mean.
    """

    step_w: float = 500.0

    def initial(self, batch: int) -> Step:
        """Return no level, discharging."""
        return Step(np.full(batch, np.nan), np.zeros(batch, dtype=np.bool_))

    def decide(self, view: View, memory: Step) -> tuple[Command, Step]:
        """Hold the level that the variant chooses, or the other multiple where it cannot be held."""
        wanted = self._chosen(view, memory)
        after = soc_after(view.battery, view.state.soc, wanted.level_w - view.load_w)
        full, empty = after > view.battery.soc_max, after < view.battery.soc_min
        charges = (wanted.charges | empty) & ~full
        turned_w = self._multiple_w(view.load_w, charges)
        chosen = Step(np.where(full | empty, turned_w, wanted.level_w), charges)
        return hold_meter(view.library, chosen.level_w), _where_known(view, chosen, memory)

    def _chosen(self, view: View, memory: Step) -> Step:
        raise NotImplementedError

    def _multiple_w(self, load_w: FloatArray, charges: BoolArray) -> FloatArray:
        """Return the multiple above the load where it charges, else the one below."""
        steps = load_w / self.step_w
        return np.where(charges, np.ceil(steps), np.floor(steps)) * self.step_w


@dataclass(frozen=True)
class LazyStepping(_Stepping):
    """Policy that keeps a multiple until the load is more than a step away from it (LS1, LS2)."""

    coin: bool = False
    """How to choose: False charges below half of the range and discharges above (LS1), True draws (LS2)."""

    def _chosen(self, view: View, memory: Step) -> Step:
        tossed = view.chance[:, 0] < 0.5
        choice = tossed if self.coin else charge_share(view.battery, view.state.soc) < 0.5
        far = np.abs(memory.level_w - view.load_w) > self.step_w
        charges = np.where(far, choice, memory.charges)
        moved_w = self._multiple_w(view.load_w, charges)
        return Step(np.where(far | np.isnan(memory.level_w), moved_w, memory.level_w), charges)


@dataclass(frozen=True)
class LazyCharging(_Stepping):
    """Policy that charges until the battery is full, then discharges until it is empty (LC)."""

    def _chosen(self, view: View, memory: Step) -> Step:
        return Step(self._multiple_w(view.load_w, memory.charges), memory.charges)


@dataclass(frozen=True)
class RandomCharging(_Stepping):
    """Policy that draws in every minute; the emptier the battery, the likelier it charges (RC)."""

    def _chosen(self, view: View, memory: Step) -> Step:
        charges = view.chance[:, 0] < 1.0 - charge_share(view.battery, view.state.soc)
        return Step(self._multiple_w(view.load_w, charges), charges)


Memory = TypeVar("Memory", NillMemory, Step)


def _where_known(view: View, now: Memory, before: Memory) -> Memory:
    """Keep the memory of households whose load is unknown."""
    known = ~np.isnan(view.load_w)
    return type(now)(*(np.where(known, new, old) for new, old in zip(now, before, strict=True)))


def charge_share(battery: Battery, soc: FloatArray) -> FloatArray:
    """Return the charged share of the usable range: 0 at `soc_min`, 1 at `soc_max`."""
    return (soc - battery.soc_min) / (np.asarray(battery.soc_max) - battery.soc_min)


def soc_after(battery: Battery, soc: FloatArray, power_w: FloatArray) -> FloatArray:
    """Return the SoC after a minute of this power, without the limits of its range."""
    limited_w = np.clip(power_w, -np.asarray(battery.discharge_w), battery.charge_w)
    efficiency = np.where(
        limited_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency)
    )
    return soc + limited_w * efficiency * (KWH_PER_W_MINUTE / battery.capacity_kwh)
