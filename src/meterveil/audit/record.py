"""Preparation of a record for an audit: whole civil days, interval of the readings, checks."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from meterveil.core.arrays import FloatArray
from meterveil.data.household import Household, midnight
from meterveil.data.load import find_kind, load
from meterveil.errors import InputError

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


def load_any(path: str, house: int | None, options: dict[str, Any]) -> Household:
    """Read a household; a user's own table may be coarser than a minute."""
    if find_kind(path) == "table":
        return load(path, house, allow_coarse=True, **options)
    return load(path, house, **options)


def cut_out(household: Household, start: date | None, end: date | None) -> Household:
    """Take the days from `start` up to, not including, `end`; by default the last month."""
    whole = whole_days(household)
    first, last = whole.minutes[0].date(), whole.minutes[-1].date() + timedelta(days=1)
    stop = end or _end_of_full_days(whole)
    begin = start or max(first, stop - timedelta(days=DEFAULT_DAYS))
    if begin < first or stop > last:
        raise InputError(
            f"{household.name} does not record {begin} to {stop}; "
            f"it records {first} up to, not including, {last}"
        )
    part = whole.between(begin, stop)
    _check_readable(part)
    return part


def whole_days(household: Household) -> Household:
    """Cut or pad a record to the civil days from its first to its last reading."""
    known = np.flatnonzero(~np.isnan(household.aggregate_w))
    if len(known) == 0:
        raise InputError(f"{household.name} has no reading of the whole house; give the right column")
    kept = slice(int(known[0]), int(known[-1]) + 1)
    zone, minutes = household.timezone, household.minutes[kept]
    first, after = midnight(minutes[0].date(), zone), midnight(minutes[-1].date() + timedelta(days=1), zone)
    grid = pd.date_range(first, after, freq="min", inclusive="left")
    before = int(grid.searchsorted(minutes[0]))

    def padded(watts: FloatArray) -> FloatArray:
        return np.pad(watts[kept], (before, len(grid) - before - len(minutes)), constant_values=np.nan)

    appliances = {name: padded(watts) for name, watts in household.appliances_w.items()}
    return replace(
        household, minutes=grid, aggregate_w=padded(household.aggregate_w), appliances_w=appliances
    )


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


def _end_of_full_days(household: Household) -> date:
    """Leave out a last day with few readings, unless it is the only one."""
    last = household.minutes[-1].date()
    begun = np.mean(~np.isnan(household.day(last).aggregate_w)) >= FULL_DAY_SHARE
    alone = household.minutes[0].date() == last
    return last + timedelta(days=1) if begun or alone else last


def _check_readable(household: Household) -> None:
    known = household.aggregate_w[~np.isnan(household.aggregate_w)]
    if len(known) < LEAST_MINUTES:
        raise InputError(
            f"{household.name} has {len(known)} minutes of readings in these days; "
            f"an audit needs at least {LEAST_MINUTES}, better a month"
        )
    if known.min() == known.max():
        raise InputError(
            f"{household.name}: the meter reads {known[0]:g} W in every minute; give the right column"
        )
