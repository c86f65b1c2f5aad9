"""Reader of a user's own table (CSV, TSV, Parquet): stamps, and power or counted energy.

Columns and units are detected by name where that is safe; otherwise the user must name them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meterveil.data.delimited import column_names, is_number_column, read_columns, to_numbers
from meterveil.data.files import readable_file
from meterveil.data.household import FloatArray, Household, Unit
from meterveil.data.minutes import Series, fill_short_gaps, minute_means, to_household
from meterveil.data.stamps import Stamps, looks_like_stamps, parse_stamps
from meterveil.data.units import (
    FoundUnit,
    find_unit,
    interval_to_power,
    is_register,
    register_to_power,
    unit_in_name,
    unit_notes,
)
from meterveil.errors import InputError

STAMP_NAMES = re.compile(
    r"^(date[ _-]?time|time[ _-]?stamp|stamp|time|utc|unix|epoch|ts|start|last_changed|zeit|datum|date)", re.I
)
SOURCE_NAMES = re.compile(
    r"^(entity|entity_id|statistic_id|sensor|sensor_id|device|device_id|meter|meter_id|name)$", re.I
)
"""Columns that name the sensor of each row, as in exports of home automation."""
WHOLE_HOUSE = re.compile(r"aggregate|mains?\b|mains?_|total|whole|house|grid|import|global_active", re.I)
POWER = re.compile(r"power|consumption|load|demand|usage|energy|state|value|watt|\bk?wh?\b|_k?wh?\b", re.I)
NOT_POWER = re.compile(
    r"reactive|volt|current|ampere|freq|temp|humid|price|cost|tariff|factor|intensity|index|export|solar|issues",
    re.I,
)


def read_table(
    path: str | Path,
    *,
    timestamp: str | None = None,
    power: str | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    appliances: Sequence[str] | str | None = None,
    name: str | None = None,
    allow_coarse: bool = False,
) -> Household:
    """Read a table of one's own.

    `timestamp` and `power` name columns. `unit` is W, kW, VA, kVA, Wh or kWh (energy: a register, or the
    energy of each interval). `timezone` is the zone of the civil days and of stamps without UTC offset; by
    default that of the offsets in the file, else the computer's. `appliances` names columns of sub-meters,
    or is "all". Readings further apart than a minute are refused unless `allow_coarse`, which holds each of
    them: appliances cannot be told apart in such data.
    """
    path = readable_file(path)
    columns = _Columns(path)
    stamp_columns = columns.stamps(timestamp)
    table = read_columns(path, columns.names, {column: pa.string() for column in stamp_columns})
    if table.num_rows == 0:
        raise InputError(f"{path} has a header but no rows; give a file with readings")
    _check_one_source(path, table)
    stamps = parse_stamps(f"{path}: {'+'.join(stamp_columns)}", _joined(table, stamp_columns), timezone)
    if np.isnan(stamps.seconds).all():
        raise InputError(f"{path}: {'+'.join(stamp_columns)} has no stamps; name another column")
    mains = columns.power(power, table, stamp_columns)
    chosen = columns.appliances(appliances, table, (*stamp_columns, mains))
    reader = _Reader(path, table, stamps, allow_coarse)
    aggregate, found, notes = reader.mains(mains, unit)
    submeters, units = {}, {"aggregate": found.of_power}
    for column in chosen:
        submeters[column], units[column] = reader.submeter(column, found)
    return to_household(
        name or path.stem, aggregate, submeters, stamps.timezone, units, (*stamps.notes, *notes)
    )


def _check_one_source(path: Path, table: pa.Table) -> None:
    """Refuse a table with the readings of several sensors in one column."""
    for name in filter(SOURCE_NAMES.match, table.column_names):
        sources = [str(value) for value in pc.unique(table[name]).to_pylist() if value is not None]
        if len(sources) > 1:
            listed = ", ".join(sources[:5]) + (", ..." if len(sources) > 5 else "")
            raise InputError(
                f"{path}: column {name} lists {len(sources)} sources ({listed}); "
                "keep only the rows of the whole house's meter"
            )


class _Columns:
    """Columns of a table, found by the given names or by common ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = [name for name in column_names(path) if name]

    def stamps(self, given: str | None) -> tuple[str, ...]:
        """Return the column of stamps, or the two of date and time of day."""
        if given is not None:
            return (self._known(given),)
        lowered = {name.lower(): name for name in self.names}
        if "date" in lowered and "time" in lowered:
            return (lowered["date"], lowered["time"])
        matching = [name for name in self.names if STAMP_NAMES.match(name.strip())]
        if matching:
            return (max(matching, key=_stamp_rank),)
        head = read_columns(self.path, self.names, {})
        by_value = [name for name in self.names if looks_like_stamps(head[name])]
        if by_value:
            return (by_value[0],)
        raise InputError(f"{self.path}: no column of stamps among {self._list()}; name it: timestamp=...")

    def power(self, given: str | None, table: pa.Table, stamps: Sequence[str]) -> str:
        """Return the column of the whole house's power or energy."""
        if given is not None:
            return self._known(given)
        others = [name for name in self.names if name not in stamps]
        candidates = [name for name in others if not NOT_POWER.search(name)] or others
        for pattern in (WHOLE_HOUSE, POWER):
            matching = [name for name in candidates if pattern.search(name)]
            if len(matching) == 1:
                return matching[0]
        numeric = [name for name in candidates if is_number_column(table[name])]
        if len(candidates) == 1 or len(numeric) == 1:
            return (numeric or candidates)[0]
        raise InputError(
            f"{self.path}: the column of the whole house's power is not clear among {self._list(others)}; "
            "name it: power=..."
        )

    def appliances(
        self, given: Sequence[str] | str | None, table: pa.Table, taken: Sequence[str]
    ) -> list[str]:
        """Return the columns of the wanted sub-meters."""
        if given is None:
            return []
        if given == "all":
            free = [name for name in self.names if name not in taken and not NOT_POWER.search(name)]
            return [
                name for name in free if is_number_column(table[name]) and table[name].null_count < len(table)
            ]
        return [self._known(name) for name in ([given] if isinstance(given, str) else given)]

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise InputError(f"{self.path} has no column {name!r}; it has {self._list()}")
        return name

    def _list(self, names: Sequence[str] | None = None) -> str:
        return ", ".join(names or self.names) or "none"


class _Reader:
    """Columns of one table as minutes, all on the same stamps."""

    def __init__(self, path: Path, table: pa.Table, stamps: Stamps, allow_coarse: bool) -> None:
        self.path, self.table, self.stamps = path, table, stamps
        self.order = np.argsort(stamps.seconds, kind="stable")
        unique = np.unique(stamps.seconds[~np.isnan(stamps.seconds)])
        self.step_s = float(np.median(np.diff(unique))) if len(unique) > 1 else 60.0
        if self.step_s > 60.0 and not allow_coarse:
            raise InputError(
                f"{path}: readings are {self.step_s:g} s apart; a minute or less is needed to simulate; "
                "meterveil audit reads such data (in Python: allow_coarse=True, which hides appliances)"
            )

    def mains(self, column: str, unit: str | None) -> tuple[Series, FoundUnit, tuple[str, ...]]:
        values = self._values(column)
        found = self._counted(find_unit(f"{self.path}: {column}", column, values[self.order], unit), values)
        notes = unit_notes(f"{self.path}: {column}", column, found, values)
        if self.step_s > 60.0:
            notes = (*notes, f"readings are {self.step_s:g} s apart: each is held, appliances are blurred")
        return self._series(column, values, found), found, notes

    def submeter(self, column: str, mains: FoundUnit) -> tuple[Series, Unit]:
        named = unit_in_name(column)
        found, values = FoundUnit(named, "name") if named else mains, self._values(column)
        series = self._series(column, values, self._counted(found, values, mains.is_register))
        return series, found.of_power

    def _counted(self, found: FoundUnit, values: FloatArray, mains: bool | None = None) -> FoundUnit:
        """Tell a register from the energy of intervals."""
        if not found.is_energy:
            return found
        return replace(found, is_register=is_register(values[self.order] * found.scale, self.step_s, mains))

    def _values(self, column: str) -> FloatArray:
        values = to_numbers(f"{self.path}: {column}", self.table[column])
        if np.isnan(values).all():
            raise InputError(f"{self.path}: {column} is all gaps; name a column with readings")
        return np.where(np.isnan(self.stamps.seconds), np.nan, values)

    def _series(self, column: str, values: FloatArray, found: FoundUnit) -> Series:
        where, scaled = f"{self.path}: {column}", values * found.scale
        if not found.is_energy:
            return self._held(minute_means(*self._padded(scaled), where))
        if found.is_register:
            return register_to_power(where, self.stamps.seconds, scaled)
        return self._held(interval_to_power(where, *self._padded(scaled), self.step_s))

    def _padded(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Repeat the last coarse reading at the end of its interval, so that it is held like the others."""
        if self.step_s <= 60.0:
            return self.stamps.seconds, values
        last = int(np.nanargmax(self.stamps.seconds))
        end_s = self.stamps.seconds[last] + self.step_s - 60.0
        return np.append(self.stamps.seconds, end_s), np.append(values, values[last])

    def _held(self, series: Series) -> Series:
        if self.step_s <= 60.0:
            return series
        held = fill_short_gaps(series, int(np.ceil(self.step_s / 60.0)) - 1)
        return replace(held, notes=series.notes)


def _joined(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    if len(columns) == 1:
        return table[columns[0]]
    return pc.binary_join_element_wise(*(pc.cast(table[name], pa.string()) for name in columns), " ")


def _stamp_rank(name: str) -> int:
    """Prefer stamps that need no time zone (Unix, UTC) to local text, and both to a date alone."""
    lowered = name.lower()
    if re.search(r"unix|utc|epoch", lowered):
        return 2
    return 0 if lowered in ("date", "datum", "start") else 1
