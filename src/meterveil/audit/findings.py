"""Audit of a household: preparation of its record, and everything that its meter reveals.

A rule tells sleep and absence from the readings, also from half-hourly ones (docs/audit.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from meterveil.audit.model import MACHINES, Model, Reading, Shape, Use, minutes_of, runs_of
from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.data.household import Household, midnight
from meterveil.data.load import find_kind, load
from meterveil.data.table import TRACE, is_trace
from meterveil.errors import InputError

FINE_MINUTES = 1
"""Longest interval between readings at which the shipped model can read appliances."""
ONE_DAY = timedelta(days=1)
DEFAULT_DAYS = 31
"""Days at the end of a record that are read by default."""
LEAST_MINUTES = 360
FULL_DAY_SHARE = 0.5
COARSE_STEPS = (60, 30, 20, 15, 10, 5, 3, 2)
"""Intervals in minutes that are recognised in readings, the longest first."""
LEAST_CHANGE_W = 0.01
BLENDED_FROM = 5
"""Shortest interval at which a change may take two minutes, because a reading falls within a minute."""
LEAST_CHANGES = 12
"""Fewest changes from which an interval is told; fewer may coincide by chance."""
HELD_SHARE = 0.99
"""Share of the changes of coarse readings that fall on the same minute of their interval."""

SLOT_MINUTES = 30
BASE_QUANTILE = 0.1
FRIDGE_SLOTS = 3
MARGIN_W = 100.0
"""A fridge and a router together stay below this."""
EVENT_W = 400.0
NIGHT = (22, 9)
"""Hours between which quiet counts as sleep."""
AWAY_SLOTS = 40
"""Quiet of 20 hours and more is absence, also at night."""

State = Literal["asleep", "empty"]

LEAST_SLOTS: dict[State, int] = {"asleep": 4, "empty": 8}
"""Fewest quiet slots of each state; by day, people at home may cause little load for hours."""
SURE_SLOTS: dict[State, int] = {"asleep": 8, "empty": 12}
"""Quiet slots from which a state is called likely; below, it is unsure."""


class Quiet(NamedTuple):
    """Quiet stretch, as minutes of the record from `start` up to, not including, `end`."""

    state: State
    start: int
    end: int
    sure: bool


@dataclass(frozen=True)
class Audit:
    """Findings of an audit; minutes are positions in `household.minutes`, which spans whole civil days."""

    household: Household
    interval_minutes: int
    reading: Reading
    """Output of the shipped model; empty where the readings are too coarse for it."""
    quiet: tuple[Quiet, ...]
    base_w: float

    @property
    def is_coarse(self) -> bool:
        """Whether the readings are too far apart to show appliances."""
        return self.interval_minutes > FINE_MINUTES

    def day_bounds(self, day: date) -> tuple[int, int]:
        """Return the first minute of a day and the first minute after it."""
        part = self.household.day(day)
        start = int(self.household.minutes.searchsorted(part.minutes[0]))
        return start, start + len(part.minutes)

    def uses(self, name: str) -> list[Use]:
        return [use for use in self.reading.uses if use.appliance == name]

    def uses_on(self, day: date) -> list[Use]:
        low, high = self.day_bounds(day)
        return [use for use in self.reading.uses if low <= use.start < high]

    def quiet_on(self, day: date) -> list[Quiet]:
        """List the quiet stretches of a day, cut at its midnights, as minutes of the record."""
        low, high = self.day_bounds(day)
        return [
            part._replace(start=max(part.start, low), end=min(part.end, high))
            for part in self.quiet
            if part.start < high and part.end > low
        ]

    def state_minutes(self, state: str) -> FloatArray:
        """Mark the minutes in which the house seems asleep or empty; NaN where the meter was unknown."""
        runs = [(part.start, part.end) for part in self.quiet if part.state == state]
        return self._where_known(minutes_of(runs, len(self.household.minutes)))

    def beginnings(self, name: str) -> FloatArray:
        """Sum the probabilities of the uses that begin in each minute; NaN where unknown."""
        begun = np.zeros(len(self.household.minutes))
        for use in self.uses(name):
            begun[use.start] += use.probability
        return self._where_known(begun)

    def _where_known(self, values: FloatArray | BoolArray) -> FloatArray:
        return np.where(np.isnan(self.household.aggregate_w), np.nan, values)

    def by_hour_and_weekday(self, values: FloatArray) -> FloatArray:
        """Average values, (minute,), over each hour of each weekday, (7, 24); NaN where none is known."""
        minutes = self.household.minutes
        cell = np.asarray(minutes.day_of_week) * 24 + np.asarray(minutes.hour)
        known = ~np.isnan(values)
        total = np.bincount(cell[known], values[known], minlength=168)
        count = np.bincount(cell[known], minlength=168)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(7, 24)


def audit(household: Household, model: Model) -> Audit:
    """Read a record of whole civil days."""
    step = interval_minutes(household.aggregate_w)
    reading = model.read(household.aggregate_w) if step <= FINE_MINUTES else Reading({}, ())
    uses = [use for use in reading.uses if use.is_sure and use.appliance in MACHINES]
    unattended = minutes_of([(use.start, use.end) for use in uses], len(household.minutes))
    drawn_w = np.where(household.aggregate_w < 0, np.nan, household.aggregate_w)  # export hides the load
    quiet = quiet_stretches(household.minutes, drawn_w, unattended)
    return Audit(household, step, reading, tuple(quiet), base_load_w(drawn_w))


def load_any(path: str, house: int | None, options: dict[str, Any]) -> Household:
    """Read a household; a user's own table may be coarser than a minute."""
    coarse = {"allow_coarse": True} if find_kind(path) == "table" else {}
    return load(path, house, **coarse, **options)


def load_undefended(path: str, options: dict[str, Any]) -> Household | None:
    """Read what the meter would show without the battery, where the file is a trace of a simulation."""
    if find_kind(path) != "table" or "power" in options or not is_trace(path):
        return None
    return load_any(path, None, {**options, "power": TRACE[0]})


def cut_out(household: Household, start: date | None, end: date | None) -> Household:
    """Take the days from `start` up to, not including, `end`; by default the last month."""
    whole = whole_days(household)
    first, last = whole.minutes[0].date(), whole.minutes[-1].date() + ONE_DAY
    stop = end or (last - ONE_DAY if _has_hardly_begun(whole) else last)
    begin = start or max(first, stop - timedelta(days=DEFAULT_DAYS))
    if begin < first or stop > last:
        recorded = f"it records {first} up to, not including, {last}"
        raise InputError(f"{household.name} does not record {begin} to {stop}; {recorded}")
    part = whole.between(begin, stop)
    known = part.aggregate_w[~np.isnan(part.aggregate_w)]
    if len(known) < LEAST_MINUTES:
        needed = f"an audit needs at least {LEAST_MINUTES}, better a month"
        raise InputError(f"{part.name} has {len(known)} minutes of readings in these days; {needed}")
    if known.min() == known.max():
        raise InputError(f"{part.name}: the meter reads {known[0]:g} W in every minute; name another column")
    return part


def whole_days(household: Household) -> Household:
    """Cut or pad a record to the civil days from its first to its last reading."""
    known = np.flatnonzero(~np.isnan(household.aggregate_w))
    if len(known) == 0:
        raise InputError(f"{household.name} has no reading of the whole house; give the right column")
    kept = slice(int(known[0]), int(known[-1]) + 1)
    zone, minutes = household.timezone, household.minutes[kept]
    first, after = midnight(minutes[0].date(), zone), midnight(minutes[-1].date() + ONE_DAY, zone)
    grid = pd.date_range(first, after, freq="min", inclusive="left")
    before = int(grid.searchsorted(minutes[0]))

    def padded(watts: FloatArray) -> FloatArray:
        return np.pad(watts[kept], (before, len(grid) - before - len(minutes)), constant_values=np.nan)

    appliances_w = {name: padded(watts) for name, watts in household.appliances_w.items()}
    total_w = padded(household.aggregate_w)
    return replace(household, minutes=grid, aggregate_w=total_w, appliances_w=appliances_w)


def interval_minutes(aggregate_w: FloatArray) -> int:
    """Return the interval of the readings in minutes: 1 for minutes, 30 for half-hours."""
    known = ~np.isnan(aggregate_w)
    steps_w = np.abs(np.diff(np.where(known, aggregate_w, 0.0)))
    changes = np.flatnonzero((steps_w > LEAST_CHANGE_W) & known[1:] & known[:-1]) + 1
    if len(changes) < LEAST_CHANGES:
        return 1
    for step in COARSE_STEPS:
        at = np.bincount(changes % step, minlength=step)
        together = at + np.roll(at, -1) if step >= BLENDED_FROM else at
        if together.max() >= HELD_SHARE * len(changes):
            return step
    return 1


def _has_hardly_begun(household: Household) -> bool:
    """Whether the last of several days has few readings."""
    days = household.days()
    known = np.mean(~np.isnan(household.day(days[-1]).aggregate_w))
    return len(days) > 1 and bool(known < FULL_DAY_SHARE)


def base_load_w(aggregate_w: FloatArray) -> float:
    """Return the power of the house when nobody uses anything, fridge included."""
    return float(np.nanquantile(_calmest(slot_means(aggregate_w)), BASE_QUANTILE))


def slot_means(values: FloatArray) -> FloatArray:
    """Average over half-hours, (minute,) -> (slot,); NaN where less than half of one is known."""
    slots = _slots(values)
    known = ~np.isnan(slots)
    enough = known.sum(axis=1) * 2 >= SLOT_MINUTES
    mean = np.where(known, slots, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(enough, mean, np.nan)


def quiet_stretches(minutes: pd.DatetimeIndex, aggregate_w: FloatArray, unattended: BoolArray) -> list[Quiet]:
    """Find sleep and absence in a record of whole civil days.

    `unattended` marks the minutes of washing machines and dishwashers, which run by themselves.
    """
    base_w = base_load_w(aggregate_w)
    reading_w = np.where(unattended & ~np.isnan(aggregate_w), base_w, aggregate_w)
    mean_w = _calmest(slot_means(reading_w))
    highest_w = np.nan_to_num(_slots(reading_w), nan=-np.inf).max(axis=1)
    quiet = (mean_w <= base_w + MARGIN_W) & (highest_w <= base_w + EVENT_W)
    hours = np.asarray(minutes[::SLOT_MINUTES].hour)
    night = (hours >= NIGHT[0]) | (hours < NIGHT[1])
    return [
        part
        for low, high in runs_of(quiet, Shape(0, LEAST_SLOTS["asleep"], len(quiet)))
        for part in _split(low, high, night, len(aggregate_w))
    ]


def _split(low: int, high: int, night: BoolArray, length: int) -> list[Quiet]:
    """Split one run of quiet slots into sleep and absence."""
    away = high - low >= AWAY_SLOTS
    turns = [] if away else (np.flatnonzero(np.diff(night[low:high])) + low + 1).tolist()
    parts: list[Quiet] = []
    for start, end in pairwise([low, *turns, high]):
        state: State = "asleep" if night[start] and not away else "empty"
        if (slots := end - start) >= LEAST_SLOTS[state]:
            stop = min(end * SLOT_MINUTES, length)
            parts.append(Quiet(state, start * SLOT_MINUTES, stop, slots >= SURE_SLOTS[state]))
    return parts


def _calmest(mean_w: FloatArray) -> FloatArray:
    """Return the lowest mean of an hour and a half around each slot; NaN where the slot is unknown."""
    reach = FRIDGE_SLOTS - 1
    filled = np.pad(mean_w, reach, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(filled, FRIDGE_SLOTS)
    known = (~np.isnan(windows)).sum(axis=-1)
    total = np.where(np.isnan(windows), 0.0, windows).sum(axis=-1)
    means = np.where(known > 0, total / np.maximum(known, 1), np.inf)
    calmest = np.lib.stride_tricks.sliding_window_view(means, FRIDGE_SLOTS).min(axis=-1)
    return np.where(np.isnan(mean_w), np.nan, calmest)


def _slots(values: FloatArray) -> FloatArray:
    padded = np.pad(values, (0, -len(values) % SLOT_MINUTES), constant_values=np.nan)
    return padded.reshape(-1, SLOT_MINUTES)
