"""Certificate of a veil (D18): the most that a day of meter readings can tell about the load, in bits.

Between decisions a veiled meter shows a level of a public menu plus a decoy that knows nothing of the load.
Everything else that the load does to the meter is an event: a rescue (an unscheduled decision) or a missed
stretch (minutes in which the battery could not follow). `certificate` is the length of a prefix code that
describes choices and events so completely that the readings follow from it, so no attacker can gain more from
them (docs/veil.md has the proof). It covers minute means in whole watts, and anything computed from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.errors import InputError

DAY_MINUTES = 1440
SLOT_MINUTES = 30
"""Decision times are multiples of it."""
_CLOCK_CHANGE = range(60, 180)
"""Minutes of the day that a clock change skips or repeats somewhere in Europe or America."""

READING_BITS = 16.0
"""Code of a reading off the grid: one of 65,533 readings in whole watts, no reading, or a larger one."""
_LARGEST_W = 32_766.0
_LARGER_BITS = 64.0
"""Bits that follow the code of a larger reading: any number of a computer."""

_QUIET_BITS = math.log2(16 / 15)
"""Code of a day without an event; k events take 4 + k bits: 15/16 + (1/2 + 1/4 + ...)/16 = 1."""
_EVENT_BITS = 4.0
_KIND_BITS = math.log2(3)
"""An event is a rescue, a stretch on the grid, or a stretch of other readings."""


@dataclass(frozen=True)
class Rules:
    """Public rules of a veil: all that an attacker must know to describe its meter."""

    decision_minutes: tuple[int, ...] = (0, 7 * 60, 17 * 60)
    """Minutes of the local day at which a level is chosen."""
    menu_w: tuple[float, ...] = (100.0, 200.0, 300.0, 400.0, 550.0, 750.0, 1000.0)
    """Levels to choose from, in whole watts."""
    grid_w: float = 500.0
    """Where the battery cannot follow, the meter shows a multiple of it, if one is in reach."""
    grid_top_w: float = 15_500.0
    """Highest reading on the grid."""
    epsilon: float | None = None
    """Scheduled choices are drawn so that each is epsilon-differentially private; None: the best level."""

    def __post_init__(self) -> None:
        times, menu = self.decision_minutes, self.menu_w
        if not times or list(times) != sorted(set(times)) or not 0 <= times[0] <= times[-1] < DAY_MINUTES:
            raise InputError(
                f"decision times {times} are not increasing minutes of the day, 0..1439; give at least one"
            )
        if any(time % SLOT_MINUTES for time in times):
            raise InputError(
                f"decision times {times} are not whole half hours; give multiples of {SLOT_MINUTES} minutes"
            )
        if any(time in _CLOCK_CHANGE for time in times):
            raise InputError(
                f"decision times {times} fall into the hours from 1:00 to 3:00, which a clock change skips or repeats; "
                "choose other times"
            )
        whole = all(0.0 <= level <= _LARGEST_W and level == round(level) for level in menu)
        if len(menu) < 2 or not whole or list(menu) != sorted(set(menu)):
            raise InputError(f"menu {menu} is not two or more increasing levels in whole watts, 0 W or more")
        if not 1.0 <= self.grid_w <= self.grid_top_w <= _LARGEST_W or self.grid_w != round(self.grid_w):
            raise InputError(
                f"grid of {self.grid_w} W up to {self.grid_top_w} W: give whole watts, 1 W or more, and a top above it"
            )
        if self.epsilon is not None and not 0.0 < self.epsilon < math.inf:
            raise InputError(f"epsilon is {self.epsilon}; give a number above 0, or None to take the best level")

    @property
    def choice_bits(self) -> float:
        """Most bits that a scheduled choice tells: log2 M, or less where it is drawn with a small epsilon.

        An epsilon-private choice tells at most epsilon tanh(epsilon / 2) nats: no two of its distributions
        differ by more (Kullback-Leibler).
        """
        counted = math.log2(len(self.menu_w))
        if self.epsilon is None:
            return counted
        return min(counted, self.epsilon * math.tanh(self.epsilon / 2.0) / math.log(2.0))

    @property
    def grid_bits(self) -> float:
        """Code of a reading on the grid."""
        return math.log2(self.grid_top_w // self.grid_w + 1.0)

    def scheduled(self, minute_of_day: IntArray) -> BoolArray:
        """Tell which minutes begin with a scheduled choice."""
        at: BoolArray = self._timetable[minute_of_day]
        return at

    @cached_property
    def _timetable(self) -> BoolArray:
        return np.isin(np.arange(DAY_MINUTES), self.decision_minutes)

    def on_grid(self, shown_w: FloatArray) -> BoolArray:
        """Tell which readings are on the grid."""
        with np.errstate(invalid="ignore"):
            return np.asarray((shown_w >= 0.0) & (shown_w <= self.grid_top_w) & (shown_w % self.grid_w == 0.0))


class Certificate(NamedTuple):
    """Certificates of civil days, (batch, day) each; zero where a row has no such day."""

    bits: FloatArray  # most that the readings of the day tell about the load
    bound_bits: FloatArray  # the same if the battery follows all day: known in advance
    minutes: FloatArray  # of the day
    missed: FloatArray  # minutes in which the meter did not show level plus decoy
    off_grid: FloatArray  # missed minutes that are not on the grid either, or without a reading
    stretches: FloatArray  # runs of missed minutes
    rescues: FloatArray
    epsilon: FloatArray  # of a day whose only choices are drawn and private; inf otherwise


def shown(meter_w: FloatArray) -> FloatArray:
    """Return what a meter shows: whole watts (D17)."""
    return np.round(meter_w)


def certificate(
    rules: Rules, meter_w: FloatArray, level_w: FloatArray, decoy_w: FloatArray, minute_of_day: IntArray, day: IntArray
) -> Certificate:
    """Certify each civil day of a meter from what it really showed; all arrays are (batch, minute).

    `level_w` and `decoy_w` are the log of the veil. A minute with a negative number as its day is left out.
    Days are numbered from the first one of each row. A day is described alone: if it does not begin with a
    scheduled choice, the level that it begins with counts as one more.
    """
    exists = day >= 0
    new_day = np.diff(day, axis=1, prepend=-1) != 0
    number = np.where(exists, day - day[:, :1], 0)
    days = int(number.max(initial=0)) + 1

    def total(minutes: FloatArray | BoolArray) -> FloatArray:
        cell = np.arange(len(day))[:, None] * days + number
        weights = np.where(exists, minutes, 0.0).ravel()
        sums = np.bincount(cell.ravel(), weights, minlength=len(day) * days)
        return sums.astype(np.float64).reshape(len(day), days)

    shown_w = shown(meter_w)
    missed = shown_w != level_w + decoy_w  # an unknown reading is missed
    grid = missed & rules.on_grid(shown_w)
    kind = missed.astype(np.int64) + grid
    begins = missed & (new_day | (np.diff(kind, axis=1, prepend=0) != 0))
    choice = new_day | rules.scheduled(minute_of_day)
    rescue = ~choice & (np.diff(level_w, axis=1, prepend=level_w[:, :1]) != 0.0)
    larger = np.abs(np.nan_to_num(shown_w)) > _LARGEST_W
    reading_bits = np.where(grid, rules.grid_bits, READING_BITS + _LARGER_BITS * larger)

    minutes, choices, rescues, stretches = map(total, (exists, choice, rescue, begins))
    events = rescues + stretches
    count_bits = np.where(events > 0, _EVENT_BITS + events, _QUIET_BITS)
    time_bits = np.log2(np.maximum(minutes, DAY_MINUTES))
    rescue_bits = _KIND_BITS + time_bits + math.log2(len(rules.menu_w))
    stretch_bits = _KIND_BITS + 2.0 * time_bits
    bound_bits = np.where(minutes > 0, choices * rules.choice_bits + _QUIET_BITS, 0.0)
    bits = np.where(
        minutes > 0,
        choices * rules.choice_bits
        + count_bits
        + rescues * rescue_bits
        + stretches * stretch_bits
        + total(missed * reading_bits),
        0.0,
    )
    private = np.full(bits.shape, math.inf) if rules.epsilon is None else choices * rules.epsilon
    private = np.where(events > 0, math.inf, private)
    return Certificate(bits, bound_bits, minutes, total(missed), total(missed & ~grid), stretches, rescues, private)
