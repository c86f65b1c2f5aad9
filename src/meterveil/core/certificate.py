"""Certificate of a veil (D18): the most that a day of meter readings can tell about the load, in bits.

Between decisions a veiled meter shows a level of a public menu plus a decoy that is independent of the load.
Everything else that the load does to the meter is an event: a rescue (an unscheduled decision), a spike of public
height and length (for a load beyond the battery's power), or a missed stretch (minutes in which the battery could
not follow, or that were left open on purpose). `certificate` is the length of a prefix code that describes choices
and events so completely that the readings follow from it, so no attacker can gain more from them (docs/veil.md has
the proof). It covers minute means in whole watts, and anything computed from them.
"""

from __future__ import annotations

import math
import re
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
LARGEST_READING = 32_766.0
"""In whole watts, or in steps of a coarser reader; larger ones have a longer code."""
LARGER_BITS = 64.0
"""Bits that follow the code of a larger reading: any number of a computer."""

_CACHED_MINUTES = 50_000
"""Minutes that are certified at a time: so many fit into the processor's cache."""

QUIET_BITS = math.log2(16 / 15)
"""Code of a day without an event; k events take 4 + k bits: 15/16 + (1/2 + 1/4 + ...)/16 = 1."""
EVENT_BITS = 4.0
KINDS = 3
"""An event is a rescue, a stretch on the grid, or a stretch of other readings; with spikes there is one kind more."""

GRID, REST = "grid", "rest"
"""Ways to leave a block open: show the load on the grid, or let the battery idle."""

HOURS = {"evenings": "17:00-23:00", "nights": "23:00-07:00", "away": "08:00-17:00"}
"""Names of hours that matter most to a household."""


@dataclass(frozen=True)
class Rules:
    """Public rules of a veil: all that an attacker must know to describe its meter."""

    decision_minutes: tuple[int, ...] = (0, 7 * 60, 17 * 60)
    """Minutes of the local day at which a level is chosen."""
    menu_w: tuple[float, ...] = (100.0, 150.0, 200.0, 300.0, 400.0, 500.0, 600.0, 750.0, 1000.0)
    """Levels to choose from, in whole watts."""
    grid_w: float = 500.0
    """Where the battery cannot follow, the meter shows a multiple of it, if one is in reach."""
    grid_top_w: float = 15_500.0
    """Highest reading on the grid."""
    grid_bottom_w: float = 0.0
    """Lowest reading on the grid, below 0 for a household that exports solar power."""
    epsilon: float | None = None
    """Scheduled choices are drawn so that each is epsilon-differentially private; None: the best level."""
    open_modes: tuple[str, ...] = ()
    """Further choices beside the levels, which leave the coming block open: "grid", "rest"."""
    protect: tuple[tuple[int, int], ...] = ()
    """Hours that matter most, as minutes of the day from and to; outside them the battery rests. Empty: all day."""
    spike_minutes: tuple[int, ...] = (1, 2, 3, 5, 10, 15, 20, 30)
    """Lengths of a spike, to which a load beyond the battery's power is brought; empty: no spikes."""
    spike_w: tuple[float, ...] = ()
    """Heights of a spike below the highest one, which is the battery's power."""

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
        whole = all(0.0 <= level <= LARGEST_READING and level == round(level) for level in menu)
        if len(menu) < 2 or not whole or list(menu) != sorted(set(menu)):
            raise InputError(f"menu {menu} is not two or more increasing levels in whole watts, 0 W or more")
        in_order = (
            1.0 <= self.grid_w <= self.grid_top_w <= LARGEST_READING and -LARGEST_READING <= self.grid_bottom_w <= 0.0
        )
        if not in_order or self.grid_w != round(self.grid_w):
            raise InputError(
                f"grid of {self.grid_w} W from {self.grid_bottom_w} to {self.grid_top_w} W: give whole watts, 1 W or "
                "more, a top above it, and a bottom of 0 or less"
            )
        if self.epsilon is not None and not 0.0 < self.epsilon < math.inf:
            raise InputError(f"epsilon is {self.epsilon}; give a number above 0, or None to take the best level")
        self._check_spikes()
        if not set(self.open_modes) <= {GRID, REST} or len(set(self.open_modes)) < len(self.open_modes):
            raise InputError(f"open modes {self.open_modes} are not from {GRID}, {REST}, each once")
        for begin, end in self.protect:
            _check_hours(begin, end)

    def _check_spikes(self) -> None:
        lengths, heights = self.spike_minutes, self.spike_w
        if list(lengths) != sorted(set(lengths)) or not all(1 <= length <= DAY_MINUTES for length in lengths):
            raise InputError(
                f"lengths of spikes {lengths} are not increasing minutes, 1..1440; leave them empty for none"
            )
        if list(heights) != sorted(set(heights)) or not all(0.0 < height == round(height) for height in heights):
            raise InputError(f"heights of spikes {heights} are not increasing whole watts, above 0")

    @property
    def choices(self) -> int:
        """Number of choices: the levels, then the open modes."""
        return len(self.menu_w) + len(self.open_modes)

    @cached_property
    def choice_minutes(self) -> tuple[int, ...]:
        """Minutes of the day with a scheduled choice: decision times in the protected hours, and their beginnings."""
        inside = [minute for minute in self.decision_minutes if self._protected[minute]]
        return tuple(sorted({*inside, *(begin for begin, _ in self.protect)}))

    @property
    def choice_bits(self) -> float:
        """Most bits that a scheduled choice tells: log2 of the choices, or less if drawn with a small epsilon.

        An epsilon-private choice tells at most epsilon tanh(epsilon / 2) nats: no two of its distributions
        differ by more (Kullback-Leibler).
        """
        counted = math.log2(self.choices)
        if self.epsilon is None:
            return counted
        return min(counted, self.epsilon * math.tanh(self.epsilon / 2.0) / math.log(2.0))

    @property
    def spike_bits(self) -> float:
        """Code of the length and height of a spike."""
        return math.log2(max(len(self.spike_minutes), 1) * (len(self.spike_w) + 1))

    @property
    def grid_bits(self) -> float:
        """Code of a reading on the grid."""
        return math.log2(self.grid_top_w // self.grid_w + -self.grid_bottom_w // self.grid_w + 1.0)

    def scheduled(self, minute_of_day: IntArray) -> BoolArray:
        """Tell which minutes begin with a scheduled choice."""
        at: BoolArray = self._timetable[minute_of_day]
        return at

    def protected(self, minute_of_day: IntArray) -> BoolArray:
        """Tell which minutes are veiled; in the others the battery rests, by a public schedule."""
        veiled: BoolArray = self._protected[minute_of_day]
        return veiled

    @cached_property
    def _timetable(self) -> BoolArray:
        return np.isin(np.arange(DAY_MINUTES), self.choice_minutes)

    @cached_property
    def _protected(self) -> BoolArray:
        minute = np.arange(DAY_MINUTES)
        hours = [(minute - begin) % DAY_MINUTES < (end - begin) % DAY_MINUTES for begin, end in self.protect]
        return np.any(hours, axis=0) if hours else np.ones(DAY_MINUTES, dtype=np.bool_)

    def on_grid(self, shown_w: FloatArray) -> BoolArray:
        """Tell which readings are on the grid."""
        with np.errstate(invalid="ignore"):
            inside = (shown_w >= self.grid_bottom_w) & (shown_w <= self.grid_top_w)
            return np.asarray(inside & (shown_w % self.grid_w == 0.0))


def hours_of(text: str) -> tuple[tuple[int, int], ...]:
    """Read hours that matter most: names and clock ranges, as in "evenings,06:30-08:00"."""
    return tuple(_range_of(part) for part in text.split(","))


def _range_of(text: str) -> tuple[int, int]:
    words = HOURS.get(text.strip(), text).strip()
    match = re.fullmatch(r"(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)", words)
    if not match:
        raise InputError(f"{text!r} are no hours; write {', '.join(HOURS)}, or a range such as 17:00-23:00")
    hour, minute, last_hour, last_minute = map(int, match.groups())
    begin, end = 60 * hour + minute, 60 * last_hour + last_minute
    _check_hours(begin, end % DAY_MINUTES if end == DAY_MINUTES else end)
    return begin, end % DAY_MINUTES


def _check_hours(begin: int, end: int) -> None:
    words = " to ".join(f"{minute // 60}:{minute % 60:02}" for minute in (begin, end))
    if not (0 <= begin < DAY_MINUTES and 0 <= end < DAY_MINUTES) or begin == end:
        raise InputError(f"protected hours from {words} are no part of a day; leave them out to protect the whole day")
    if begin % SLOT_MINUTES or end % SLOT_MINUTES:
        raise InputError(
            f"protected hours from {words} are not whole half hours; give multiples of {SLOT_MINUTES} minutes"
        )
    if begin in _CLOCK_CHANGE or end in _CLOCK_CHANGE:
        raise InputError(
            f"protected hours from {words} begin or end between 1:00 and 3:00, which a clock change skips or repeats; "
            "choose other times"
        )


def spoken_hours(protect: tuple[tuple[int, int], ...]) -> str:
    """Write protected hours as `hours_of` reads them."""
    return ",".join("-".join(f"{end // 60:02}:{end % 60:02}" for end in hours) for hours in protect)


class Certificate(NamedTuple):
    """Certificates of civil days, (batch, day) each; zero where a row has no such day."""

    bits: FloatArray  # most that the readings of the day tell about the load
    bound_bits: FloatArray  # the same if the battery follows in all protected hours: known in advance
    minutes: FloatArray  # of the day
    missed: FloatArray  # minutes in which the meter did not show level plus decoy
    off_grid: FloatArray  # missed minutes that are not on the grid either, or without a reading
    stretches: FloatArray  # runs of missed minutes
    spikes: FloatArray
    rescues: FloatArray
    epsilon: FloatArray  # of a day whose only choices are drawn and private; inf otherwise
    protected_bits: FloatArray  # most that the readings of the protected hours add to those of the others
    protected_minutes: FloatArray
    protected_missed: FloatArray


def shown(meter_w: FloatArray) -> FloatArray:
    """Return what a meter shows: whole watts (D17)."""
    return np.round(meter_w)


class Spikes(NamedTuple):
    """Log of the spikes that the load caused, (batch, minute)."""

    minute: IntArray  # number of the minute within its spike, from 1; 0 outside
    height_w: FloatArray
    highest_w: float | FloatArray  # public height beside those of the rules; one for all, or (batch, 1)


def certificate(
    rules: Rules,
    meter_w: FloatArray,
    level_w: FloatArray,
    decoy_w: FloatArray,
    minute_of_day: IntArray,
    day: IntArray,
    spikes: Spikes | None = None,
) -> Certificate:
    """Certify each civil day of a meter from what it really showed; all arrays are (batch, minute).

    `level_w` and `decoy_w` are the log of the veil; a level that the menu lacks (NaN in an open block) describes
    no reading. A minute with a negative number as its day is left out. Days are numbered from the first one of each
    row. A day is described alone: if it does not begin with a scheduled choice, the level that it begins with counts
    as one more.
    """
    first = np.where(day >= 0, day, day.max(initial=0)).min(axis=1, keepdims=True)
    number = np.where(day >= 0, day - first, -1)
    days = int(number.max(initial=0)) + 1
    spikes = spikes or Spikes(np.zeros_like(day), np.zeros(day.shape), 0.0)
    highest_w = np.broadcast_to(spikes.highest_w, (len(day), 1))
    count = max(_CACHED_MINUTES // day.shape[1], 1)
    parts = []
    for begin in range(0, len(day), count):
        rows = slice(begin, begin + count)
        of_rows = Spikes(spikes.minute[rows], spikes.height_w[rows], highest_w[rows])
        log = _Log(meter_w[rows], level_w[rows], decoy_w[rows], minute_of_day[rows], of_rows)
        parts.append(_certified(rules, log, number[rows], days))
    return Certificate(*map(np.concatenate, zip(*parts, strict=True)))


def _certified(rules: Rules, log: _Log, number: IntArray, days: int) -> Certificate:
    """Certify the days of some meters, numbered from 0."""
    known_w = np.where(np.isin(log.level_w, rules.menu_w), log.level_w, np.nan)
    log = log._replace(shown_w=shown(log.shown_w), level_w=known_w)
    whole = _described(rules, log, number, days)
    if not rules.protect:
        return whole
    hours = _described(rules, log, np.where(rules.protected(log.minute_of_day), number, -1), days)
    return whole._replace(
        bound_bits=hours.bound_bits,
        protected_bits=hours.bits,
        protected_minutes=hours.minutes,
        protected_missed=hours.missed,
    )


class _Log(NamedTuple):
    shown_w: FloatArray
    level_w: FloatArray
    decoy_w: FloatArray
    minute_of_day: IntArray
    spikes: Spikes


class Counts(NamedTuple):
    """Numbers of what a description names, an entry per day."""

    choices: FloatArray
    rescues: FloatArray
    stretches: FloatArray
    spikes: FloatArray

    @property
    def events(self) -> FloatArray:
        """Everything that is no scheduled choice."""
        return self.rescues + self.stretches + self.spikes


def code_bits(
    rules: Rules, counts: Counts, kinds: int, time_bits: FloatArray, place_bits: FloatArray, missed_bits: FloatArray
) -> FloatArray:
    """Return the length of the description of some days: choices, events with kind, time and place, missed readings."""
    kind_bits = math.log2(kinds)
    count_bits = np.where(counts.events > 0, EVENT_BITS + counts.events, QUIET_BITS)
    rescue_bits = kind_bits + time_bits + math.log2(rules.choices)
    spike_bits = kind_bits + time_bits + rules.spike_bits
    bits: FloatArray = (
        counts.choices * rules.choice_bits
        + count_bits
        + counts.rescues * rescue_bits
        + counts.stretches * (kind_bits + place_bits)
        + counts.spikes * spike_bits
        + missed_bits
    )
    return bits


def _described(rules: Rules, log: _Log, number: IntArray, days: int) -> Certificate:
    """Return the length of the description of the minutes that have the number of a day."""
    shown_w, level_w, decoy_w, minute_of_day, spikes = log
    exists = number >= 0
    new_day = np.diff(number, axis=1, prepend=-1) != 0

    # the last cell of each row is that of minutes without a day
    cell = (np.arange(len(number))[:, None] * (days + 1) + np.where(exists, number, days)).ravel()

    def total(minutes: FloatArray | BoolArray) -> FloatArray:
        sums = np.bincount(cell, minutes.ravel().astype(np.float64), len(number) * (days + 1))
        return np.asarray(sums.reshape(len(number), -1)[:, :days], dtype=np.float64)

    spike, in_spike = _described_spikes(rules, spikes, number)
    missed = shown_w != np.where(in_spike, spikes.height_w, level_w + decoy_w)  # an unknown reading is missed
    grid = missed & rules.on_grid(shown_w)
    kind = missed.astype(np.int64) + grid
    begins = missed & (new_day | (np.diff(kind, axis=1, prepend=0) != 0))
    protected = rules.protected(minute_of_day)
    choice = protected & (new_day | rules.scheduled(minute_of_day))
    before_w = np.concatenate([level_w[:, :1], level_w[:, :-1]], axis=1)
    rescue = protected & ~choice & (level_w != before_w) & ~(np.isnan(level_w) & np.isnan(before_w))
    larger = np.abs(np.nan_to_num(shown_w)) > LARGEST_READING
    reading_bits = np.where(grid, rules.grid_bits, READING_BITS + LARGER_BITS * larger)

    minutes, *sums = map(total, (exists, choice, rescue, begins, spike))
    counts = Counts(*sums)
    time_bits = np.log2(np.maximum(minutes, DAY_MINUTES))
    kinds = KINDS + bool(rules.spike_minutes)
    described = code_bits(rules, counts, kinds, time_bits, 2.0 * time_bits, total(missed * reading_bits))
    bits = np.where(minutes > 0, described, 0.0)
    bound_bits = np.where(minutes > 0, counts.choices * rules.choice_bits + QUIET_BITS, 0.0)
    private = np.full(bits.shape, math.inf) if rules.epsilon is None else counts.choices * rules.epsilon
    private = np.where(counts.events > 0, math.inf, private)
    missed_minutes, off_grid = total(missed), total(missed & ~grid)
    events_of_day = (missed_minutes, off_grid, counts.stretches, counts.spikes, counts.rescues, private)
    return Certificate(bits, bound_bits, minutes, *events_of_day, bits, minutes, missed_minutes)


def _described_spikes(rules: Rules, spikes: Spikes, number: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return the first minutes and all minutes of the spikes that a description may name.

    A spike begins and ends on the described part of one day and has one public height. Its length is public, or cut by
    the end of this part.
    """
    is_public = np.isin(spikes.height_w, rules.spike_w) | (spikes.height_w == spikes.highest_w)
    spike = np.where(is_public, spikes.minute, 0)
    none = np.zeros(spike.shape, dtype=np.bool_)
    if not rules.spike_minutes or not spike.any():
        return none, none
    before, part_before = (np.pad(part[:, :-1], ((0, 0), (1, 0)), constant_values=-1) for part in (spike, number))
    part_after = np.pad(number[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
    inside = ((spike > 0) & (number >= 0)).ravel()
    same_w = np.diff(spikes.height_w, axis=1, prepend=np.nan) == 0.0
    goes_on = ((spike == before + 1) & (before > 0) & (number == part_before) & same_w).ravel()
    minutes = np.flatnonzero(inside)
    first = np.flatnonzero(~goes_on[minutes])  # place in `minutes` of each run's first minute
    run = np.cumsum(~goes_on[minutes]) - 1
    length = np.diff(first, append=len(minutes))
    last = minutes[first + length - 1]
    cut = (part_after != number).ravel()[last] & (length < rules.spike_minutes[-1])
    named = (spike.ravel()[minutes[first]] == 1) & (np.isin(length, rules.spike_minutes) | cut)
    starts, within = none.ravel().copy(), none.ravel().copy()
    starts[minutes[first]] = named
    within[minutes] = named[run]
    return starts.reshape(spike.shape), within.reshape(spike.shape)
