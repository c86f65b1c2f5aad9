"""Household: readings of meter and sub-meters on one minute grid, and the names of its appliances.

Readers only find stamps and watts in their files. Sorting, averaging, gaps and signs are handled here, so
that two readers of the same readings give the same household.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from meterveil.errors import InputError, did_you_mean

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
"""Integers or floats, as in the file."""
Unit = Literal["W", "VA"]
Aggregate = Literal["mains", "submeters", "active"]
AGGREGATES: tuple[Aggregate, ...] = ("mains", "submeters", "active")
"""Sources of the load (D2): the meter, the sum of sub-meters, or an estimate of the meter's active power."""
SOURCE_NOTES = {"submeters": ", load summed from sub-meters", "active": ", load an estimate of active power"}
"""Source other than the meter -> end of a heading."""

REST_POWER_FACTOR = 0.57
"""Power factor of what no sub-meter measures, for `active`; docs/fidelity.md derives it for UK-DALE house 1."""

AGGREGATE = "aggregate"
"""Name of the whole house's load: in a masked household, what it was before the battery changed the meter."""

MAX_PLAUSIBLE_W = 100_000.0
"""Highest plausible power of a home; more is a wrong unit or a broken file."""

MAX_FILL_MINUTES = 3
"""Longest gap that is filled with the last known minute."""

MAX_NEGATIVE_NOISE_W = 50.0
"""Noise of a sub-meter below zero; a lower reading is a reversed clamp or a broken file."""

EARLIEST_SECOND = 631_152_000
"""1990-01-01."""

LATEST_SECOND = 4_102_444_800
"""2100-01-01."""


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
            raise InputError(f"{self.name} has no {', '.join(unknown)}; it has {', '.join(self.appliances_w)}")
        return replace(self, appliances_w={name: self.appliances_w[name] for name in wanted})

    def coverage(self) -> dict[str, float]:
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

    def metered_actively(self) -> Household:
        """Estimate the active power of a meter that reads apparent power (`aggregate="active"`).

        Sub-meters read active power; the rest of the load counts by its power factor.
        """
        known = self.metered_by_submeters()
        if self.units.get("aggregate", "W") == known.units["aggregate"]:
            raise InputError(
                f"{self.name}: meter and sub-meters both read {known.units['aggregate']}, so there is no active "
                "power to estimate; use the mains reading"
            )
        rest = np.maximum(self.aggregate_w - known.aggregate_w, 0.0)
        note = f"aggregate is estimated: the sub-meters plus {REST_POWER_FACTOR:g} of the apparent power of the rest"
        units: dict[str, Unit] = {**self.units, "aggregate": "W"}
        total = known.aggregate_w + REST_POWER_FACTOR * rest
        return replace(self, aggregate_w=total, units=units, notes=(*self.notes, note), aggregate="active")

    def metered_by(self, aggregate: Aggregate) -> Household:
        """Take the load from this source (D2)."""
        if aggregate == "submeters":
            return self.metered_by_submeters()
        return self.metered_actively() if aggregate == "active" else self

    def remedy(self) -> str:
        """Say what to do about a record without a reading of the load."""
        silent = [name for name, watts in self.appliances_w.items() if np.isnan(watts).all()]
        if self.aggregate == "mains" or not silent:
            return "choose other days"
        return f"its sum needs sub-meters that read nothing: leave {', '.join(silent)} out with --appliances"

    def _slice(self, part: slice) -> Household:
        appliances = {name: watts[part] for name, watts in self.appliances_w.items()}
        return replace(self, minutes=self.minutes[part], aggregate_w=self.aggregate_w[part], appliances_w=appliances)


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


@dataclass(frozen=True)
class Series:
    """Known minutes of one channel; absent minutes are unknown."""

    minute: IntArray
    """(known minute,) minutes since the Unix epoch (UTC), strictly increasing."""
    watts: FloatArray
    """(known minute,) mean over that minute, never NaN."""
    notes: tuple[str, ...] = ()
    """Irregularities of the samples, without the channel's name."""


def minute_means(seconds: Numbers, watts: FloatArray, where: str = "readings") -> Series:
    """Average samples of any rate over their minutes; `where` names the source in an error."""
    seconds, known_watts, backwards, duplicated = in_order(seconds, watts)
    if len(seconds) == 0:
        raise InputError(f"{where}: no readings; give a file with at least one value")
    check_seconds(float(seconds[0]), float(seconds[-1]), where)
    minute, total, count = minute_sums(seconds, known_watts)
    return Series(minute, total / count, order_notes(backwards, duplicated))


def minute_sums(seconds: Numbers, watts: Numbers) -> tuple[IntArray, FloatArray, IntArray]:
    """Sum sorted samples by minute: return minutes, sums and counts."""
    minute = np.floor_divide(seconds, 60).astype(np.int64, copy=False)
    starts = np.append(0, np.flatnonzero(minute[1:] != minute[:-1]) + 1)
    total = np.add.reduceat(watts, starts).astype(np.float64, copy=False)
    return minute[starts], total, np.diff(starts, append=len(minute))


def check_seconds(earliest: float, latest: float, where: str) -> None:
    """Reject stamps that cannot be Unix seconds of a metered household."""
    if earliest >= EARLIEST_SECOND and latest < LATEST_SECOND:
        return
    stamp = latest if earliest >= EARLIEST_SECOND else earliest
    advice = "give Unix seconds"
    for factor, unit in ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        if EARLIEST_SECOND <= stamp / factor < LATEST_SECOND:
            advice = f"these look like {unit}: divide them by {factor:,.0f}"
    raise InputError(f"{where}: the stamp {stamp:.0f} is not between the years 1990 and 2100; {advice}")


def fill_short_gaps(series: Series, max_fill_minutes: int = MAX_FILL_MINUTES) -> Series:
    """Fill gaps of at most `max_fill_minutes` with the minute before, and note how many."""
    if len(series.minute) == 0:
        return series
    steps = np.diff(series.minute, append=series.minute[-1] + 1)
    repeats = np.where(steps <= max_fill_minutes + 1, steps, 1)
    filled = int(repeats.sum()) - len(repeats)
    if filled == 0:
        return series
    starts = np.cumsum(repeats) - repeats
    offset = np.arange(len(repeats) + filled) - np.repeat(starts, repeats)
    note = f"{filled:,} minutes in gaps of up to {max_fill_minutes} filled with the minute before"
    return Series(np.repeat(series.minute, repeats) + offset, np.repeat(series.watts, repeats), (*series.notes, note))


def to_household(
    name: str,
    aggregate: Series | None,
    appliances: Mapping[str, Series],
    timezone: str,
    units: Mapping[str, Unit] | None = None,
    notes: tuple[str, ...] = (),
) -> Household:
    """Put channels on the consecutive minutes that the aggregate spans, short gaps filled.

    Without an aggregate the minutes span the appliances and the sum of the sub-meters takes its place (D2).
    """
    if "aggregate" in appliances:
        raise InputError(
            f"{name}: a sub-meter is named aggregate, as the whole house's reading is; give it another name"
        )
    if aggregate is not None and (exporting := int(np.sum(aggregate.watts < 0))):
        note = f"{exporting:,} minutes are negative: feed-in, or noise"
        aggregate = replace(aggregate, notes=(*aggregate.notes, note))
    appliances = {key: _without_noise(f"{name}: {key}", series) for key, series in appliances.items()}
    given = appliances if aggregate is None else {"aggregate": aggregate, **appliances}
    if not given:
        raise InputError(f"{name}: neither an aggregate nor an appliance; give at least one channel")
    spanning = given if aggregate is None else {"aggregate": aggregate}
    for key, series in spanning.items():
        if len(series.minute) == 0:
            raise InputError(f"{name}: {key} is all gaps; leave it out or give a file with readings")
    first = int(min(series.minute[0] for series in spanning.values()))
    last = int(max(series.minute[-1] for series in spanning.values()))
    channels = {key: fill_short_gaps(series) for key, series in given.items()}
    watts = {key: _on_grid(f"{name}: {key}", series, first, last) for key, series in channels.items()}
    household = Household(
        name=name,
        minutes=minute_index(first, last, timezone),
        aggregate_w=watts.pop("aggregate", np.full(last + 1 - first, np.nan)),
        appliances_w=watts,
        units=dict(units or {}),
        notes=(*notes, *(f"{key}: {note}" for key, series in channels.items() for note in series.notes)),
    )
    return household.metered_by_submeters() if aggregate is None else household


def minute_index(first_minute: int, last_minute: int, timezone: str) -> pd.DatetimeIndex:
    """Return the minutes from `first_minute` to `last_minute` since the epoch, inclusive, in a time zone."""
    seconds = np.arange(first_minute, last_minute + 1, dtype=np.int64) * 60
    return pd.DatetimeIndex(seconds.astype("datetime64[s]"), tz="UTC").tz_convert(timezone)


def in_order(seconds: Numbers, watts: Numbers) -> tuple[Numbers, Numbers, int, int]:
    """Sort the known samples by stamp and keep the last of each; count steps back and dropped samples."""
    known = ~np.isnan(watts)
    if not known.all():
        seconds, watts = seconds[known], watts[known]
    if np.all(seconds[1:] > seconds[:-1]):
        return seconds, watts, 0, 0
    backwards = int(np.sum(seconds[1:] < seconds[:-1]))
    if backwards:
        order = np.argsort(seconds, kind="stable")
        seconds, watts = seconds[order], watts[order]
    last = np.append(seconds[1:] > seconds[:-1], True)
    return seconds[last], watts[last], backwards, int(np.sum(~last))


def order_notes(backwards: int, duplicated: int) -> tuple[str, ...]:
    """Note steps back in time and replaced samples."""
    notes = []
    if backwards:
        notes.append(f"stamps went back in time {backwards:,} times: sorted")
    if duplicated:
        notes.append(f"{duplicated:,} samples had the stamp of another: the last one counts")
    return tuple(notes)


def _without_noise(where: str, series: Series) -> Series:
    negative = series.watts < 0
    if not negative.any():
        return series
    lowest = series.watts.min()
    if lowest < -MAX_NEGATIVE_NOISE_W:
        raise InputError(
            f"{where}: {lowest:,.0f} W is negative; an appliance draws 0 W or more "
            f"(noise down to -{MAX_NEGATIVE_NOISE_W:.0f} W is accepted): check the sign of the channel"
        )
    note = f"{int(negative.sum()):,} slightly negative minutes set to 0 W"
    return replace(series, watts=np.maximum(series.watts, 0.0), notes=(*series.notes, note))


def _on_grid(where: str, series: Series, first: int, last: int) -> FloatArray:
    watts = np.full(last + 1 - first, np.nan)
    low, high = np.searchsorted(series.minute, [first, last + 1])
    if low == high:
        raise InputError(f"{where} is all gaps in the minutes that the aggregate spans; leave it out")
    watts[series.minute[low:high] - first] = series.watts[low:high]
    return watts


CANONICAL = {
    "dish_washer": "dishwasher",
    "dishwaser": "dishwasher",
    "freezer_fridge": "fridge",
    "fridge_freezer": "fridge",
    "furance": "furnace",
    "hi_fi": "hifi",
    "kitchen_outlet": "kitchen_outlets",
    "lights": "lighting",
    "microwave_oven": "microwave",
    "miscellaeneous": "miscellaneous",
    "outlets_unknown": "unknown_outlets",
    "refrigerator": "fridge",
    "smoke_alarms": "smoke_alarm",
    "television": "tv",
    "washingmachine": "washing_machine",
}
"""Spelling of a data set (lower case, joined by `_`) -> canonical name; other names stay as they are."""


def canonical(label: str) -> str:
    """Return the canonical name: `Fridge-freezer`, `refrigerator` and `fridge` are the same."""
    name = "_".join(label.lower().replace("-", " ").split())
    return CANONICAL.get(name, name)


def kind(name: str) -> str:
    """Return the canonical name without number: `kitchen_outlets_2` is `kitchen_outlets`."""
    return canonical(re.sub(r"_\d+$", "", name))


def distinct(labels: Iterable[str]) -> list[str]:
    """Return canonical names in order, numbered `_1`, `_2`, ... where a house has several of a kind."""
    names = [canonical(label) for label in labels]
    several = {name for name, count in Counter(names).items() if count > 1}
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name}_{seen[name]}" if name in several else name)
    return result


def choose_appliances(where: str, known: Collection[str], wanted: Sequence[str] | None) -> list[str]:
    """Return the canonical names of the wanted appliances; all where `wanted` is None."""
    if wanted is None:
        return list(known)
    names = [name if name in known else canonical(name) for name in wanted]
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        ending = f"; {hint}" if hint else ""
        raise InputError(f"{where} has no {', '.join(unknown)}; it has {', '.join(known)}{ending}")
    return names
