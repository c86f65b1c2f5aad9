"""Time stamps in any common format as Unix seconds, and the time zone of the household's civil days.

The zone is the one that the caller names, else the one that the stamps' own UTC offsets belong to, else the
computer's. A local clock repeats an hour in autumn and skips one in spring: the order of the rows tells the
repeated hours apart, and stamps in the skipped hour are moved forward.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from meterveil.data.household import EARLIEST_SECOND, LATEST_SECOND, FloatArray, IntArray
from meterveil.errors import InputError

UNIX_FACTORS = (1, 1_000, 1_000_000, 1_000_000_000)
"""Unix seconds, milliseconds, microseconds, nanoseconds."""

OFFSET = re.compile(r"(?:Z|UTC|GMT|[T :]\d{2,6}(?:[.,]\d+)?\s*[+-]\d{1,2}(?::?\d{2})?)$")
"""A UTC offset at the end of a stamp; digits after a sign are one only after a time of day."""

YEAR_FIRST = re.compile(r"^\d{4}([-/.])\d{1,2}\1\d{1,2}")
YEAR_LAST = re.compile(r"^(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?=\D|$)")
FIXED = re.compile(r"UTC[+-]\d{2}:\d{2}")

WELL_KNOWN_ZONES = (
    "Europe/London", "Europe/Berlin", "Europe/Athens", "America/New_York", "America/Chicago",
    "America/Denver", "America/Los_Angeles", "Australia/Sydney",
)  # fmt: skip
"""Zones tried first where several match a file's offsets; all that match give the same days."""


class Stamps(NamedTuple):
    """Unix seconds (UTC), NaN where a row has no stamp, with the household's time zone."""

    seconds: FloatArray
    timezone: str
    notes: tuple[str, ...]
    """Assumptions made about the stamps."""


def parse_stamps(where: str, column: pa.ChunkedArray, timezone: str | None) -> Stamps:
    """Read a column of stamps; `timezone` is the zone of the household's days and of its clock."""
    given = check_timezone(timezone) if timezone else None
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        index = pd.DatetimeIndex(column.to_pandas())
        return _from_index(index, given, _zone_name(index.tz) if index.tz else None)
    text = pd.Series(column.to_pandas())
    numbers = pd.to_numeric(text, errors="coerce")
    if numbers.notna().any() and (numbers.notna() | text.isna()).all():
        zone, notes = _zone(given, None)
        return Stamps(_unix_seconds(where, numbers.to_numpy(dtype=np.float64)), zone, notes)
    return _from_text(where, text.astype("string").str.strip(), given)


def check_timezone(timezone: str) -> str:
    """Reject a time zone that is neither in the tz database nor a fixed offset such as UTC+01:00."""
    if FIXED.fullmatch(timezone):
        return timezone
    try:
        return ZoneInfo(timezone).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"{timezone!r} is not a time zone; give a name of the tz database, such as Europe/London"
        ) from None


def computer_timezone() -> str:
    """Return the computer's time zone; a fixed offset where the system does not name it."""
    place = Path("/etc/localtime")
    linked = str(place.resolve()).rpartition("zoneinfo/")[2] if place.is_symlink() else ""
    for name in (os.environ.get("TZ", "").removeprefix(":"), linked):
        if name in available_timezones():
            return name
    return _fixed(datetime.now().astimezone().utcoffset())


def looks_like_stamps(column: pa.ChunkedArray) -> bool:
    """Tell from its first value whether a column holds stamps."""
    if pa.types.is_timestamp(column.type):
        return True
    value = next((item.as_py() for item in column.slice(0, 100) if item.is_valid), None)
    if isinstance(value, str):
        return bool(YEAR_FIRST.match(value.strip()) or YEAR_LAST.match(value.strip()))
    return isinstance(value, int) and any(EARLIEST_SECOND <= value / factor < LATEST_SECOND for factor in UNIX_FACTORS)


def _zone(given: str | None, own: str | None) -> tuple[str, tuple[str, ...]]:
    """Choose the zone of the civil days, and note it where the caller did not name it."""
    if given:
        return given, ()
    if own:
        return own, (f"time zone: {own}, from the UTC offsets of the stamps",)
    zone = computer_timezone()
    return zone, (f"time zone: {zone}, the computer's, as the stamps have none; name another if needed",)


def _zone_name(zone: tzinfo) -> str:
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    return str(name) if name else _fixed(zone.utcoffset(datetime(2000, 1, 1)))


def _fixed(offset: timedelta | int | None) -> str:
    """Name a fixed offset (seconds if a number), such as UTC+01:00."""
    seconds = int(offset.total_seconds() if isinstance(offset, timedelta) else offset or 0)
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"UTC{'+' if seconds > 0 else '-'}{hours:02d}:{minutes:02d}" if seconds else "UTC"


def _zone_of_offsets(text: pd.Series[str], index: pd.DatetimeIndex) -> str:
    """Find the zone that the offsets at the end of stamps belong to.

    One offset is a zone of its own. Several are those of a zone with summer time: the first zone with these
    offsets at every change in the file; failing that, the offset of most rows.
    """
    sign_hours_minutes = text.dropna().str.extract(r"(?:([+-])(\d{1,2})(?::?(\d{2}))?)?$")
    hours, minutes = (pd.to_numeric(sign_hours_minutes[n]).fillna(0) for n in (1, 2))
    size_s = (3600 * hours + 60 * minutes).to_numpy(dtype=np.int64)
    offset_s = np.where(sign_hours_minutes[0].fillna("") == "-", -size_s, size_s)
    index = index[np.flatnonzero(text.notna())]
    changes = np.flatnonzero(np.diff(offset_s))
    if len(changes):
        rows = np.unique(np.concatenate([[0], changes, changes + 1, [len(offset_s) - 1]]))
        utc = index[rows].tz_localize(None)
        for zone in (computer_timezone(), *WELL_KNOWN_ZONES, *sorted(available_timezones())):
            own_s = (index[rows].tz_convert(zone).tz_localize(None) - utc).total_seconds()
            if np.array_equal(own_s, offset_s[rows]):
                return zone
    values, counts = np.unique(offset_s, return_counts=True)
    return _fixed(int(values[counts.argmax()]))


def _unix_seconds(where: str, numbers: FloatArray) -> FloatArray:
    middle = float(np.nanmedian(numbers))
    for factor in UNIX_FACTORS:
        if EARLIEST_SECOND <= middle / factor < LATEST_SECOND:
            return numbers / factor
    raise InputError(
        f"{where}: {middle:g} is not a stamp between the years 1990 and 2100; "
        "give Unix seconds or milliseconds, or dates as 2024-01-31 13:00"
    )


def _from_text(where: str, text: pd.Series[str], given: str | None) -> Stamps:
    known = text.dropna()
    if known.empty:
        raise InputError(f"{where}: no stamps; give a column with a time in every row")
    has_offsets = bool(known.str.contains(OFFSET).any())
    notes: tuple[str, ...] = ()
    if has_offsets or YEAR_FIRST.match(known.iloc[0]):
        plain = text.str.replace("/", "-").str.replace(r"^(\d{4})\.(\d+)\.(\d+)", r"\1-\2-\3", regex=True)
        parsed = pd.to_datetime(plain, format="ISO8601", utc=has_offsets, errors="coerce")
    else:
        day_first, notes = _day_first(where, known)
        parsed = _parse_year_last(text, day_first)
    bad = text[parsed.isna() & text.notna()]
    if not bad.empty:
        raise _bad_stamp(where, bad)
    index = pd.DatetimeIndex(parsed)
    own = _zone_of_offsets(text, index) if has_offsets and not given else None
    return _from_index(index, given, own, notes)


def _parse_year_last(text: pd.Series[str], day_first: bool) -> pd.Series[pd.Timestamp]:
    order = r"\3-\2-\1" if day_first else r"\3-\1-\2"
    dates = text.str.replace(r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", order, regex=True)
    dates = dates.str.replace(r"-(\d)(?=\D)", r"-0\1", regex=True).str.replace(r",\s*", " ", regex=True)
    iso = pd.to_datetime(dates, format="ISO8601", errors="coerce")
    if iso.notna().all():
        return iso
    return pd.to_datetime(text, format="mixed", dayfirst=day_first, errors="coerce")


def _day_first(where: str, known: pd.Series[str]) -> tuple[bool, tuple[str, ...]]:
    """Tell day/month from month/day: by a number above 12, by dots, else by which days follow each other."""
    parts = known.str.extract(YEAR_LAST.pattern)
    if parts[0].isna().any():
        raise _bad_stamp(where, known[parts[0].isna()])
    first, second = parts[0].astype(int).max(), parts[2].astype(int).max()
    if first > 12 or parts[1].iloc[0] == ".":
        return True, ()
    if second > 12:
        return False, ("dates are read as month/day/year",)
    dates = parts[[0, 2, 3]].drop_duplicates().astype(int)
    if len(dates) == 1:
        return True, ("dates are read as day/month/year: a single date does not show their order",)
    for columns in (["day", "month", "year"], ["month", "day", "year"]):
        days = pd.to_datetime(dates.set_axis(columns, axis=1)).sort_values().diff().dt.days.dropna()
        if (days == 1).mean() > 0.5:
            return columns[0] == "day", (f"dates are read as {'/'.join(columns)}: so they follow each other",)
    raise InputError(
        f"{where}: {known.iloc[0]!r} may begin with the day or the month, and in neither order do the days "
        "follow each other; write the year first: 2024-01-31 13:00"
    )


def _bad_stamp(where: str, bad: pd.Series[str]) -> InputError:
    row = int(bad.index[0]) + 1
    return InputError(f"{where}, row {row}: {bad.iloc[0]!r} is not a stamp; write 2024-01-31 13:00")


def _from_index(index: pd.DatetimeIndex, given: str | None, own: str | None, notes: tuple[str, ...] = ()) -> Stamps:
    zone, zone_notes = _zone(given, own)
    notes += zone_notes
    if index.tz is None:
        index, clock_notes = _localised(index, zone)
        notes += clock_notes
    utc = index.tz_convert("UTC").tz_localize(None).to_numpy()
    seconds = (utc - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    return Stamps(np.asarray(seconds, dtype=np.float64), zone, notes)


def _localised(index: pd.DatetimeIndex, zone: str) -> tuple[pd.DatetimeIndex, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    given = np.asarray(index.notna())
    skipped = np.asarray(index.tz_localize(zone, ambiguous=True, nonexistent="NaT").isna()) & given
    if skipped.any():
        notes += (f"{int(skipped.sum()):,} stamps in the hour that the clocks skip in spring: put forward",)
        index = index.where(~skipped, index + pd.Timedelta(hours=1))
    repeated = np.asarray(index.tz_localize(zone, ambiguous="NaT").isna()) & given
    summer, doubtful = _summer_time(index, np.flatnonzero(repeated))
    if doubtful:
        notes += (f"{doubtful:,} stamps in the hour that the clocks repeat in autumn: taken as summer time",)
    return index.tz_localize(zone, ambiguous=summer), notes


def _summer_time(index: pd.DatetimeIndex, repeated: IntArray) -> tuple[npt.NDArray[np.bool_], int]:
    """Tell which rows of a repeated hour are still summer time: those before the clock steps back.

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
