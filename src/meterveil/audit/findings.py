"""Audit of a household: everything that its meter reveals, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from meterveil.audit.model import Model, Reading
from meterveil.audit.presence import Quiet, base_load_w, quiet_stretches
from meterveil.audit.record import interval_minutes
from meterveil.audit.uses import SHAPES, Use, minutes_of
from meterveil.core.arrays import FloatArray
from meterveil.data.household import Household

FINE_MINUTES = 1
"""Longest interval between readings at which the shipped model can read appliances."""


@dataclass(frozen=True)
class Audit:
    """Findings of an audit; minutes are positions in `household.minutes`, which spans whole civil days."""

    household: Household
    interval_minutes: int
    reading: Reading | None
    """Output of the shipped model; None where the readings are too coarse for it."""
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
        """List the uses of one appliance."""
        return [use for use in self.reading.uses if use.appliance == name] if self.reading else []

    def uses_on(self, day: date) -> list[Use]:
        """List the uses that begin on a day."""
        low, high = self.day_bounds(day)
        return [use for use in self.reading.uses if low <= use.start < high] if self.reading else []

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
        marked = minutes_of(runs, len(self.household.minutes))
        return np.where(np.isnan(self.household.aggregate_w), np.nan, marked)

    def beginnings(self, name: str) -> FloatArray:
        """Sum the probabilities of the uses that begin in each minute; NaN where unknown."""
        begun = np.zeros(len(self.household.minutes))
        for use in self.uses(name):
            begun[use.start] += use.probability
        return np.where(np.isnan(self.household.aggregate_w), np.nan, begun)

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
    reading = model.read(household.aggregate_w) if step <= FINE_MINUTES else None
    machines = [use for use in reading.uses if _runs_unattended(use)] if reading else []
    unattended = minutes_of([(use.start, use.end) for use in machines], len(household.minutes))
    drawn_w = np.where(household.aggregate_w < 0, np.nan, household.aggregate_w)  # export hides the load
    quiet = quiet_stretches(household.minutes, drawn_w, unattended)
    return Audit(household, step, reading, tuple(quiet), base_load_w(drawn_w))


def _runs_unattended(use: Use) -> bool:
    return use.is_sure and not SHAPES[use.appliance].attended and use.appliance != "fridge"
