"""A household: readings of its meter and sub-meters, minute by minute.

Every reader returns this type, and it checks itself once: the minutes are consecutive and have a time zone,
and every array has one value for each minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from meterveil.errors import InputError

FloatArray = npt.NDArray[np.float64]
Unit = Literal["W", "VA"]
Aggregate = Literal["mains", "submeters"]

AGGREGATE = "aggregate"
"""Name of the whole house's load: in a masked household, what it was before the battery changed the meter."""

MAX_PLAUSIBLE_W = 100_000.0
"""Highest plausible power of a home; more is a wrong unit or a broken file."""


@dataclass(frozen=True)
class Household:
    """Readings of one household as means over consecutive minutes; NaN where a minute is unknown."""

    name: str
    minutes: pd.DatetimeIndex
    """Start of each minute, with the household's time zone; one minute apart without exception."""
    aggregate_w: FloatArray
    """(minute,) meter reading, in the unit `units["aggregate"]`."""
    appliances_w: Mapping[str, FloatArray] = field(default_factory=dict)
    """Name -> (minute,) sub-metered power."""
    units: Mapping[str, Unit] = field(default_factory=dict)
    """Name (and "aggregate") -> "W" (active) or "VA" (apparent); a name that is absent is in W."""
    notes: tuple[str, ...] = ()
    """What the reader filled, dropped or assumed, one sentence each."""
    aggregate: Aggregate = "mains"
    """Source of the aggregate (D2)."""

    def __post_init__(self) -> None:
        _check_minutes(self.name, self.minutes)
        for name, watts in {"aggregate": self.aggregate_w, **self.appliances_w}.items():
            _check_channel(f"{self.name}: {name}", watts, len(self.minutes))

    @property
    def timezone(self) -> str:
        """Name of the time zone in which this household's civil days begin and end."""
        return str(self.minutes.tz)

    def days(self) -> list[date]:
        """List the civil days that are wholly inside the record, with or without gaps."""
        first, last = self.minutes[0], self.minutes[-1] + pd.Timedelta(minutes=1)
        whole = first == midnight(first.date(), self.timezone)
        start = first.date() if whole else first.date() + timedelta(days=1)
        return [start + timedelta(days=n) for n in range((last.date() - start).days)]

    def between(self, start: date, end: date) -> Household:
        """Cut out the civil days from `start` up to, not including, `end` (D1)."""
        if end <= start:
            raise InputError(f"{self.name}: there are no days from {start} to {end}; end must be after start")
        low, high = (self.minutes.searchsorted(midnight(day, self.timezone)) for day in (start, end))
        expected = (midnight(end, self.timezone) - midnight(start, self.timezone)) // pd.Timedelta(minutes=1)
        if high - low != expected:
            raise InputError(
                f"{self.name}: {start} to {end} is not wholly recorded; "
                f"the record holds {self.minutes[0]} to {self.minutes[-1]}"
            )
        return self._slice(slice(int(low), int(high)))

    def day(self, day: date) -> Household:
        """Cut out one civil day: 1,440 minutes, or 1,380 or 1,500 where the clocks change."""
        return self.between(day, day + timedelta(days=1))

    def select(self, appliances: Iterable[str]) -> Household:
        """Keep only these appliances, in this order."""
        wanted = list(appliances)
        unknown = [name for name in wanted if name not in self.appliances_w]
        if unknown:
            raise InputError(
                f"{self.name} has no {', '.join(unknown)}; it has {', '.join(self.appliances_w)}"
            )
        return replace(self, appliances_w={name: self.appliances_w[name] for name in wanted})

    def coverage(self) -> dict[str, float]:
        """Return the share of known minutes of the aggregate and each appliance."""
        channels = {"aggregate": self.aggregate_w, **self.appliances_w}
        return {name: float(np.mean(~np.isnan(watts))) for name, watts in channels.items()}

    def metered_by_submeters(self) -> Household:
        """Replace the mains reading by the sum of the sub-meters (D2, `aggregate="submeters"`).

        A minute that any sub-meter lacks is unknown: a partial sum would look like an appliance switched off.
        """
        if not self.appliances_w:
            raise InputError(f"{self.name} has no sub-meters to sum; use the mains reading")
        total = np.sum(list(self.appliances_w.values()), axis=0)
        apparent = "VA" in {self.units.get(name) for name in self.appliances_w}
        units: dict[str, Unit] = {**self.units, "aggregate": "VA" if apparent else "W"}
        notes = (*self.notes, "aggregate is the sum of the sub-meters")
        return replace(self, aggregate_w=total, units=units, notes=notes, aggregate="submeters")

    def _slice(self, part: slice) -> Household:
        appliances = {name: watts[part] for name, watts in self.appliances_w.items()}
        return replace(
            self, minutes=self.minutes[part], aggregate_w=self.aggregate_w[part], appliances_w=appliances
        )


def midnight(day: date, timezone: str) -> pd.Timestamp:
    """Return the first minute of a civil day, also where the clocks change at midnight."""
    return pd.Timestamp(day).tz_localize(timezone, ambiguous=True, nonexistent="shift_forward")


def _check_minutes(name: str, minutes: pd.DatetimeIndex) -> None:
    if len(minutes) == 0:
        raise InputError(f"{name}: no minutes; a household needs at least one reading")
    if minutes.tz is None:
        raise InputError(f"{name}: the minutes have no time zone; name one, such as Europe/London")
    seconds = minutes.as_unit("s").asi8
    if seconds[0] % 60 or np.any(np.diff(seconds) != 60):
        raise InputError(f"{name}: the minutes are not consecutive; put the readings on a full minute grid")


def _check_channel(name: str, watts: FloatArray, length: int) -> None:
    if watts.shape != (length,):
        raise InputError(f"{name}: {watts.shape} values for {length} minutes; give one value for each minute")
    if watts.dtype != np.float64:
        raise InputError(f"{name}: values are {watts.dtype}; give float64 watts")
    if np.any(np.abs(watts) > MAX_PLAUSIBLE_W):
        worst = np.nanmax(np.abs(watts))
        raise InputError(
            f"{name}: {worst:,.0f} W is more than a home can draw "
            f"({MAX_PLAUSIBLE_W:,.0f} W); check the unit of the file"
        )
