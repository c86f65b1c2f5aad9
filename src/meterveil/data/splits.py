"""Civil days that train, validate and test, and windows of minutes within them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from meterveil.data.household import FloatArray, Household
from meterveil.errors import InputError

VALIDATION_SHARE = 0.2
"""Share of the training days, at their end, that validates (the paper's 80:20)."""

HELD_OUT_DAYS = 14
"""Fewest held-out days of the same house for a headline figure (D16)."""

HELD_OUT_COVERAGE = 0.95
"""Smallest share of known minutes of every channel on a held-out day."""

Days = tuple[date, ...]


def day_range(start: date, end: date) -> Days:
    """List the days from `start` up to, not including, `end` (D1)."""
    return tuple(start + timedelta(days=n) for n in range((end - start).days))


def check_recorded(household: Household, days: Iterable[date]) -> None:
    """Reject a day that is not wholly recorded, or without any meter reading."""
    recorded = set(household.days())
    for day in days:
        if day not in recorded:
            raise InputError(
                f"{household.name} does not record {day} from midnight to midnight; "
                f"it records {min(recorded, default=None)} to {max(recorded, default=None)}"
            )
        known = household.day(day)
        if np.isnan(known.aggregate_w).all():
            raise InputError(f"{household.name} has no aggregate reading on {day}; {known.remedy()}")


def day_coverage(household: Household) -> dict[date, float]:
    """Return the share of known minutes of each recorded day, for the channel that knows the fewest."""
    return {day: min(household.day(day).coverage().values()) for day in household.days()}


def held_out_days(household: Household, seen: Iterable[date], min_days: int = HELD_OUT_DAYS) -> Days:
    """List the well covered days that were not `seen` in training, validation or selection (D16).

    All channels of the household count, so `select` the appliances that matter first.
    """
    excluded = set(seen)
    coverage = day_coverage(household)
    days = tuple(day for day in coverage if day not in excluded and coverage[day] >= HELD_OUT_COVERAGE)
    if len(days) < min_days:
        raise InputError(
            f"{household.name} has {len(days)} held-out days with {HELD_OUT_COVERAGE:.0%} of their minutes known; "
            f"{min_days} are needed: accept fewer days or a lower coverage"
        )
    return days


def days_with_readings(household: Household) -> Days:
    """List the recorded days with at least one meter reading."""
    return tuple(day for day in household.days() if not np.isnan(household.day(day).aggregate_w).all())


def training_and_validation_days(household: Household) -> tuple[Days, Days]:
    """Split the days with readings into training days and the last fifth, which validates.

    Random days would not do: neighbouring days are alike, and an attacker is used on later days than it saw.
    """
    days = days_with_readings(household)
    count = max(round(len(days) * VALIDATION_SHARE), 1)
    if len(days) <= count:
        raise InputError(f"{household.name} has {len(days)} days with readings; an attacker needs two")
    return days[:-count], days[-count:]


def only_days(household: Household, days: Iterable[date]) -> Household:
    """Return a household in which all other days are unknown, so that no window spans two kept days."""
    kept = tuple(days)
    check_recorded(household, kept)
    part = household.between(min(kept), max(kept) + timedelta(days=1))
    local_days = part.minutes.tz_localize(None).normalize()
    hidden = ~local_days.isin(np.array(kept, dtype="datetime64[D]"))
    return replace(
        part,
        aggregate_w=np.where(hidden, np.nan, part.aggregate_w),
        appliances_w={name: np.where(hidden, np.nan, watts) for name, watts in part.appliances_w.items()},
    )


def consecutive_pieces(household: Household, days: Sequence[date]) -> list[Household]:
    """Cut out runs of consecutive days, so that no window spans a day that is left out."""
    ordered = sorted(days)
    if not ordered:
        return []
    breaks = [n + 1 for n, (day, after) in enumerate(pairwise(ordered)) if after - day != timedelta(days=1)]
    bounds = [0, *breaks, len(ordered)]
    return [household.between(ordered[low], ordered[high - 1] + timedelta(days=1)) for low, high in pairwise(bounds)]


def sliding_windows(values: FloatArray, length: int) -> FloatArray:
    """View (..., minute) as (..., window, minute in window) without copying; the view is read-only."""
    if length > values.shape[-1]:
        raise InputError(f"a window of {length} minutes does not fit into {values.shape[-1]}; give a longer record")
    return np.lib.stride_tricks.sliding_window_view(values, length, axis=-1)


def complete_starts(channels: FloatArray, length: int) -> npt.NDArray[np.int64]:
    """Return the first minute of every window in which all minutes of (minute,) or (channel, minute) are known."""
    unknown = np.asarray(np.isnan(np.atleast_2d(channels)).any(axis=0), dtype=np.float64)
    return np.flatnonzero(~sliding_windows(unknown, length).any(axis=-1))


@dataclass(frozen=True)
class Scaler:
    """Scaling of watts to zero mean and unit spread, from training days alone."""

    mean: float
    std: float

    @classmethod
    def fit(cls, training: FloatArray) -> Self:
        """Measure mean and spread of training values; unknown minutes are ignored.

        A channel that never changes gets a spread of 1 W, so that it is scaled to zeros.
        """
        known = training[~np.isnan(training)]
        if known.size == 0:
            raise InputError("the training values of a scaler are all unknown; give days with readings")
        return cls(float(known.mean()), float(known.std()) or 1.0)

    def transform(self, watts: FloatArray) -> FloatArray:
        return (watts - self.mean) / self.std
