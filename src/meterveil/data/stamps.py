"""Stamps of any common writing as Unix seconds: numbers, ISO 8601, day-first dates, local clocks.

A local clock repeats an hour in autumn and skips one in spring. The repeated hour is told apart by the
order of the rows; a stamp in the skipped hour comes from a clock that was not put forward, so it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from meterveil.data.household import FloatArray
from meterveil.data.minutes import EARLIEST_SECOND, LATEST_SECOND, IntArray
from meterveil.errors import InputError

UNIX_FACTORS = (1, 1_000, 1_000_000, 1_000_000_000)
"""Unix seconds, milliseconds, microseconds, nanoseconds."""

OFFSET = re.compile(r"(?:Z|UTC|GMT|[T :]\d{2,6}(?:[.,]\d+)?\s*[+-]\d{1,2}(?::?\d{2})?)$")
"""A zone at the end; digits after a sign are one only where a time of day precedes them."""

YEAR_FIRST = re.compile(r"^\d{4}([-/.])\d{1,2}\1\d{1,2}")
YEAR_LAST = re.compile(r"^(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?=\D|$)")


@dataclass(frozen=True)
class Stamps:
    """Hold Unix seconds (UTC), NaN where a row has no stamp, and what had to be assumed."""

    seconds: FloatArray
    timezone: str
    notes: tuple[str, ...] = ()


def parse_stamps(where: str, column: pa.ChunkedArray, timezone: str | None) -> Stamps:
    """Read a column of stamps; `timezone` is that of the household's clock, UTC if not given."""
    zone = check_timezone(timezone or "UTC")
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _from_index(where, pd.DatetimeIndex(column.to_pandas()), zone, timezone)
    text = pd.Series(column.to_pandas())
    numbers = pd.to_numeric(text, errors="coerce")
    if numbers.notna().any() and (numbers.notna() | text.isna()).all():
        return Stamps(_unix_seconds(where, numbers.to_numpy(dtype=np.float64)), zone, _zone_note(timezone))
    return _from_text(where, text.astype("string").str.strip(), zone, timezone)


def check_timezone(timezone: str) -> str:
    """Reject a time zone that the tz database does not know."""
    try:
        return ZoneInfo(timezone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"{timezone!r} is not a time zone; give a name of the tz database, such as Europe/London"
        ) from None


def looks_like_stamps(column: pa.ChunkedArray) -> bool:
    """Tell from its first value whether a column holds stamps."""
    if pa.types.is_timestamp(column.type):
        return True
    value = next((item.as_py() for item in column.slice(0, 100) if item.is_valid), None)
    if isinstance(value, str):
        return bool(YEAR_FIRST.match(value.strip()) or YEAR_LAST.match(value.strip()))
    return isinstance(value, int) and any(
        EARLIEST_SECOND <= value / factor < LATEST_SECOND for factor in UNIX_FACTORS
    )


def _unix_seconds(where: str, numbers: FloatArray) -> FloatArray:
    middle = float(np.nanmedian(numbers))
    for factor in UNIX_FACTORS:
        if EARLIEST_SECOND <= middle / factor < LATEST_SECOND:
            return numbers / factor
    raise InputError(
        f"{where}: {middle:g} is not a stamp between the years 1990 and 2100; "
        "give Unix seconds or milliseconds, or dates as 2024-01-31 13:00"
    )


def _from_text(where: str, text: pd.Series[str], zone: str, timezone: str | None) -> Stamps:
    known = text.dropna()
    if known.empty:
        raise InputError(f"{where}: no stamps; give a column with a time in every row")
    has_offsets = bool(known.str.contains(OFFSET).any())
    if has_offsets or YEAR_FIRST.match(known.iloc[0]):
        plain = text.str.replace("/", "-").str.replace(r"^(\d{4})\.(\d+)\.(\d+)", r"\1-\2-\3", regex=True)
        parsed = pd.to_datetime(plain, format="ISO8601", utc=has_offsets, errors="coerce")
        return _from_index(where, _parsed(where, text, parsed), zone, timezone)
    day_first, notes = _day_first(where, known)
    parsed = _parse_year_last(text, day_first)
    return _from_index(where, _parsed(where, text, parsed), zone, timezone, notes)


def _parse_year_last(text: pd.Series[str], day_first: bool) -> pd.Series[pd.Timestamp]:
    order = r"\3-\2-\1" if day_first else r"\3-\1-\2"
    dates = text.str.replace(r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", order, regex=True)
    dates = dates.str.replace(r"-(\d)(?=\D)", r"-0\1", regex=True).str.replace(r",\s*", " ", regex=True)
    iso = pd.to_datetime(dates, format="ISO8601", errors="coerce")
    if iso.notna().all():
        return iso
    return pd.to_datetime(text, format="mixed", dayfirst=day_first, errors="coerce")


def _day_first(where: str, known: pd.Series[str]) -> tuple[bool, tuple[str, ...]]:
    parts = known.str.extract(YEAR_LAST.pattern)
    if parts[0].isna().any():
        bad = known[parts[0].isna()]
        raise InputError(
            f"{where}, row {bad.index[0] + 1}: {bad.iloc[0]!r} is not a stamp; write 2024-01-31 13:00"
        )
    first, second = parts[0].astype(int).max(), parts[2].astype(int).max()
    if first > 12 or parts[1].iloc[0] == ".":
        return True, ()
    if second > 12:
        return False, ("dates are read as month/day/year",)
    return _day_first_by_neighbours(where, known.iloc[0], parts[[0, 2, 3]].drop_duplicates().astype(int))


def _day_first_by_neighbours(where: str, example: str, dates: pd.DataFrame) -> tuple[bool, tuple[str, ...]]:
    """Choose the order in which most days follow the day before: the other puts months between them."""
    if len(dates) == 1:
        return True, ("dates are read as day/month/year: a single date says nothing about their order",)
    if _mostly_neighbours(dates.set_axis(["day", "month", "year"], axis=1)):
        return True, ("dates are read as day/month/year: so they follow each other",)
    if _mostly_neighbours(dates.set_axis(["month", "day", "year"], axis=1)):
        return False, ("dates are read as month/day/year: so they follow each other",)
    raise InputError(
        f"{where}: whether {example!r} begins with the day or the month is not clear: in neither order do "
        "the days follow each other; write the year first: 2024-01-31 13:00"
    )


def _mostly_neighbours(dates: pd.DataFrame) -> bool:
    days = pd.to_datetime(dates).sort_values().diff().dt.days.dropna()
    return bool((days == 1).mean() > 0.5)


def _parsed(where: str, text: pd.Series[str], parsed: pd.Series[pd.Timestamp]) -> pd.DatetimeIndex:
    bad = text[parsed.isna() & text.notna()]
    if not bad.empty:
        raise InputError(
            f"{where}, row {bad.index[0] + 1}: {bad.iloc[0]!r} is not a stamp; write 2024-01-31 13:00"
        )
    return pd.DatetimeIndex(parsed)


def _from_index(
    where: str, index: pd.DatetimeIndex, zone: str, timezone: str | None, notes: tuple[str, ...] = ()
) -> Stamps:
    if index.tz is None:
        index, local_notes = _localised(index, zone)
        missing = () if timezone else ("stamps have no time zone: taken as UTC; name one if they are local",)
        notes = (*notes, *missing, *local_notes)
    else:
        notes = (*notes, *_zone_note(timezone))
    seconds = (index.tz_convert("UTC").tz_localize(None).to_numpy() - np.datetime64(0, "s")) / np.timedelta64(
        1, "s"
    )
    return Stamps(np.asarray(seconds, dtype=np.float64), zone, notes)


def _localised(index: pd.DatetimeIndex, zone: str) -> tuple[pd.DatetimeIndex, tuple[str, ...]]:
    notes: list[str] = []
    lost = index.tz_localize(zone, ambiguous=True, nonexistent="NaT").isna()
    skipped = np.asarray(lost) & np.asarray(index.notna())
    if skipped.any():
        notes.append(f"{int(skipped.sum()):,} stamps in the hour that the clocks skip in spring: put forward")
        index = index.where(~skipped, index + pd.Timedelta(hours=1))
    repeated = np.asarray(index.tz_localize(zone, ambiguous="NaT").isna()) & np.asarray(index.notna())
    summer, doubtful = _summer_time(index, np.flatnonzero(repeated))
    if doubtful:
        notes.append(
            f"{doubtful:,} stamps in the hour that the clocks repeat in autumn: taken as summer time"
        )
    return index.tz_localize(zone, ambiguous=summer), tuple(notes)


def _summer_time(index: pd.DatetimeIndex, repeated: IntArray) -> tuple[npt.NDArray[np.bool_], int]:
    """Tell which of the rows in a repeated hour are still summer time: those before the clock steps back.

    A file may run backwards; then the clock steps forward once. The second result counts the rows of the
    days on which neither happens exactly once.
    """
    summer, doubtful = np.ones(len(index), dtype=bool), 0
    days = index[repeated].normalize()
    for day in days.unique():
        rows = repeated[np.asarray(days == day)]
        steps = np.diff(index[rows].asi8)
        back, forward = np.flatnonzero(steps < 0), np.flatnonzero(steps > 0)
        if len(back) == 1:
            summer[rows[back[0] + 1 :]] = False
        elif len(forward) == 1 and len(back) > 1:
            summer[rows[: forward[0] + 1]] = False
        else:
            doubtful += len(rows)
    return summer, doubtful


def _zone_note(timezone: str | None) -> tuple[str, ...]:
    return () if timezone else ("no time zone named: days begin at midnight UTC",)
