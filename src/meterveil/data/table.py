"""Reader of a user's own table (CSV, TSV, Parquet): stamps, and power or counted energy.

Columns and units are detected by name where that is safe; otherwise the user must name them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meterveil.data.delimited import column_names, is_number_column, read_columns, to_numbers
from meterveil.data.files import readable_file
from meterveil.data.household import (
    MAX_FILL_MINUTES,
    MAX_PLAUSIBLE_W,
    FloatArray,
    Household,
    Series,
    Unit,
    check_seconds,
    fill_short_gaps,
    in_order,
    minute_means,
    to_household,
)
from meterveil.data.stamps import looks_like_stamps, parse_stamps
from meterveil.errors import InputError

STAMP_NAMES = re.compile(
    r"^(date[ _-]?time|time[ _-]?stamp|stamp|time|utc|unix|epoch|ts|start|last_changed|zeit|datum|date)", re.I
)
SOURCE_NAMES = re.compile(r"^(entity|statistic_id|sensor|device|meter|name|(entity|sensor|device|meter)_id)$", re.I)
"""Columns that name the sensor of each row, as in exports of home automation."""
WHOLE_HOUSE = re.compile(r"aggregate|mains?\b|mains?_|total|whole|house|grid|import|global_active", re.I)
POWER = re.compile(r"power|consumption|load|demand|usage|energy|state|value|watt|\bk?wh?\b|_k?wh?\b", re.I)
NOT_POWER = re.compile(
    r"reactive|volt|current|ampere|freq|temp|humid|price|cost|tariff|factor|intensity|index|export|solar|issues", re.I
)

TRACE = ("load_w", "battery_w", "meter_w")
"""Columns of trace.parquet, which `meterveil simulate` writes: the last one is what the meter shows."""

UNITS: dict[str, float] = {"W": 1.0, "kW": 1e3, "VA": 1.0, "kVA": 1e3, "Wh": 1.0, "kWh": 1e3}
"""Unit -> watts, volt-amperes or watt-hours."""
SPELLINGS = {name.lower(): name for name in UNITS} | {
    "watt": "W", "watts": "W", "kilowatt": "kW", "kilowatts": "kW"
}  # fmt: skip
CAMEL_ENDING = re.compile(r"[a-jl-z](k?Wh?|k?VA|KWH?)$")
SUSPECT_KW_BELOW = 60.0
"""Highest reading below which a column is more likely in kilowatts than in watts."""
MIN_COUNTER_STEPS = 20
"""Fewest readings that show a register, if few of them rise."""
MIN_COUNTER_RISES = 10
"""Fewest rises of a register, for each of its resets."""


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
    where = f"{path}: {'+'.join(stamp_columns)}"
    stamps = parse_stamps(where, _joined(table, stamp_columns), timezone)
    if np.isnan(stamps.seconds).all():
        raise InputError(f"{where} has no stamps; name another column")
    mains = columns.power(power, table, stamp_columns)
    chosen = columns.appliances(appliances, table, (*stamp_columns, mains))
    reader = _Reader(path, table, stamps.seconds, allow_coarse)
    values = reader.values(mains)
    mains_unit, notes = find_unit(f"{path}: {mains}", mains, values[reader.order], unit)
    if columns.is_trace and power is None:
        notes += ("a trace of meterveil simulate: read as its meter shows it, with the battery",)
    if appliances is None and (further := columns.appliances("all", table, (*stamp_columns, mains))):
        named = ", ".join(further)
        notes += (
            f'columns not read as appliances: {named}; list those to read in `appliances`, or give appliances="all"',
        )
    if reader.step_s > 60.0:
        notes += (f"readings are {reader.step_s:g} s apart: each is held, appliances are blurred",)
    counts_up = reader.is_register(values, mains_unit)
    aggregate = reader.series(mains, values, mains_unit, counts_up)
    submeters, units = {}, {"aggregate": _power_unit(mains_unit)}
    for column in chosen:
        own, values = unit_in_name(column) or mains_unit, reader.values(column)
        submeters[column] = reader.series(column, values, own, reader.is_register(values, own, counts_up))
        units[column] = _power_unit(own)
    return to_household(name or path.stem, aggregate, submeters, stamps.timezone, units, (*stamps.notes, *notes))


def is_trace(path: str | Path) -> bool:
    """Tell whether a table is the trace of a simulation."""
    return _Columns(readable_file(path)).is_trace


def _joined(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    if len(columns) == 1:
        return table[columns[0]]
    return pc.binary_join_element_wise(*(pc.cast(table[name], pa.string()) for name in columns), " ")


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
        self.is_trace = set(TRACE) <= set(self.names)

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
        for name in self.names:
            if looks_like_stamps(head[name]):
                return (name,)
        raise InputError(f"{self.path}: no column of stamps among {self._list()}; name it: timestamp=...")

    def power(self, given: str | None, table: pa.Table, stamps: Sequence[str]) -> str:
        """Return the column of the whole house's power or energy."""
        if given is not None:
            return self._known(given)
        if self.is_trace:
            return TRACE[-1]
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

    def appliances(self, given: Sequence[str] | str | None, table: pa.Table, taken: Sequence[str]) -> list[str]:
        if given == "all" and self.is_trace:
            return []
        if given == "all":
            free = [name for name in self.names if name not in taken and not NOT_POWER.search(name)]
            numeric = [name for name in free if is_number_column(table[name])]
            return [name for name in numeric if table[name].null_count < len(table)]
        return [self._known(name) for name in ([given] if isinstance(given, str) else given or ())]

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise InputError(f"{self.path} has no column {name!r}; it has {self._list()}")
        return name

    def _list(self, names: Sequence[str] | None = None) -> str:
        return ", ".join(names or self.names) or "none"


def _stamp_rank(name: str) -> int:
    """Prefer stamps that need no time zone (Unix, UTC) to local text, and both to a date alone."""
    if re.search(r"unix|utc|epoch", name, re.I):
        return 2
    return 0 if name.lower() in ("date", "datum", "start") else 1


class _Reader:
    """Columns of one table as minutes, all on the same stamps."""

    def __init__(self, path: Path, table: pa.Table, seconds: FloatArray, allow_coarse: bool) -> None:
        self.path, self.table, self.seconds = path, table, seconds
        self.order = np.argsort(seconds, kind="stable")
        unique = np.unique(seconds[~np.isnan(seconds)])
        self.step_s = float(np.median(np.diff(unique))) if len(unique) > 1 else 60.0
        if self.step_s > 60.0 and not allow_coarse:
            raise InputError(
                f"{path}: readings are {self.step_s:g} s apart; a minute or less is needed to simulate; "
                "meterveil audit reads such data (in Python: allow_coarse=True, which hides appliances)"
            )

    def values(self, column: str) -> FloatArray:
        """Return a column as numbers, NaN where value or stamp is missing."""
        values = to_numbers(f"{self.path}: {column}", self.table[column])
        if np.isnan(values).all():
            raise InputError(f"{self.path}: {column} is all gaps; name a column with readings")
        return np.where(np.isnan(self.seconds), np.nan, values)

    def is_register(self, values: FloatArray, unit: str, mains: bool | None = None) -> bool | None:
        """Tell a register from the energy of each interval; None for a power.

        A register may stand still, so its shape alone is not enough. A value that no home reaches within an
        interval is a register; otherwise a sub-meter counts as the mains of the same table do (`mains`).
        """
        if not unit.endswith("h"):
            return None
        energy_wh = values[self.order] * UNITS[unit]
        falls, rises, steps = _steps(energy_wh)
        if falls > max(1, steps // 1000):
            return False
        if np.nanmax(energy_wh, initial=0.0) * 3600.0 / self.step_s > MAX_PLAUSIBLE_W:
            return True
        return is_counter(energy_wh) if mains is None else mains and rises >= MIN_COUNTER_RISES * falls

    def series(self, column: str, values: FloatArray, unit: str, is_register: bool | None) -> Series:
        """Return a column as mean power of minutes; a reading coarser than a minute is held."""
        where, seconds, watts = f"{self.path}: {column}", self.seconds, values * UNITS[unit]
        notes: tuple[str, ...] = ()
        if is_register:
            return register_to_power(where, seconds, watts)
        if is_register is not None:
            watts = watts * 3600.0 / self.step_s
            note = f"energy of intervals of {self.step_s:g} s as mean power"
            notes = (f"{note}; a stamp is the start of its interval",)
        if self.step_s > 60.0:  # hold the last reading as long as the others
            last = int(np.nanargmax(seconds))
            seconds = np.append(seconds, seconds[last] + self.step_s - 60.0)
            watts = np.append(watts, watts[last])
        series = minute_means(seconds, watts, where)
        held = fill_short_gaps(series, int(np.ceil(self.step_s / 60.0)) - 1) if self.step_s > 60.0 else series
        return Series(held.minute, held.watts, (*series.notes, *notes))


def unit_in_name(column: str) -> str | None:
    """Find a unit among the words of a column's name: "Power (kW)", "mains_w", "energyKWh"."""
    words = re.findall(r"[A-Za-z]+", column)
    ends = [ending.group(1) for word in words if (ending := CAMEL_ENDING.search(word))]
    units = [SPELLINGS[word.lower()] for word in (*ends, *words) if word.lower() in SPELLINGS]
    return units[-1] if units else None


def _power_unit(unit: str) -> Unit:
    return "VA" if unit.endswith("VA") else "W"


def find_unit(where: str, column: str, values: FloatArray, given: str | None) -> tuple[str, tuple[str, ...]]:
    """Find the unit of the whole-house column, and note a doubtful one.

    The option wins, then the name, then the values, which are in order of their stamps. Small values and
    values that only rise may be in any unit: they are an error without option and name.
    """
    if given is not None and given.lower() not in SPELLINGS:
        raise InputError(f"the unit {given!r} is not known; give one of {', '.join(UNITS)}")
    largest = float(np.nanmax(np.abs(values)))
    unit = SPELLINGS[given.lower()] if given is not None else unit_in_name(column)
    if unit is None and is_counter(values):
        raise InputError(
            f"{where} only ever rises, to {largest:g}, as a meter's register does; "
            'name its unit: unit="kWh" or unit="Wh" (or unit="W" if it is power)'
        )
    if unit is None and largest < SUSPECT_KW_BELOW:
        raise InputError(
            f"{where} has no unit and never exceeds {largest:g}, too little for watts; "
            'name it: unit="kW" if these are kilowatts, unit="W" if they are watts'
        )
    if unit in ("Wh", "kWh"):
        return unit, ()
    if largest * UNITS[unit or "W"] > MAX_PLAUSIBLE_W:
        raise InputError(
            f"{where} reaches {largest:,.0f} {unit or 'W'}, more than a home can draw "
            f"({MAX_PLAUSIBLE_W:,.0f} W); name the right unit, one of {', '.join(UNITS)}"
        )
    if unit is None:
        return "W", (f"{column}: no unit given; values reach {largest:,.0f}, so taken as W",)
    if UNITS[unit] == 1.0 and largest < SUSPECT_KW_BELOW:
        return unit, (f'{column}: never exceeds {largest:g} {unit}; if these are kW, give unit="kW"',)
    return unit, ()


def _steps(values: FloatArray) -> tuple[int, int, int]:
    """Count falls, rises and all steps between known values."""
    steps = np.diff(values[~np.isnan(values)])
    return int(np.sum(steps < 0)), int(np.sum(steps > 0)), len(steps)


def is_counter(values: FloatArray) -> bool:
    """Tell a register, which rises but for an occasional reset, from a power."""
    falls, rises, steps = _steps(values)
    if falls > max(1, steps // 1000) or rises < MIN_COUNTER_RISES * falls:
        return False
    return rises >= MIN_COUNTER_RISES or (steps >= MIN_COUNTER_STEPS and rises > 0)


def register_to_power(where: str, seconds: FloatArray, energy_wh: FloatArray) -> Series:
    """Turn a register's readings into the mean power of each whole minute between them.

    The register is interpolated at every full minute, so energy is conserved. Minutes that touch a reset, or
    a pause much longer than usual, are unknown.
    """
    stamps, counts, _, _ = in_order(seconds, energy_wh)
    if len(stamps) < 2:
        raise InputError(f"{where}: a register needs at least two readings; there are {len(stamps)}")
    check_seconds(float(stamps[0]), float(stamps[-1]), where)
    pauses, rises = np.diff(stamps), np.diff(counts)
    edges = np.arange(np.ceil(stamps[0] / 60), np.floor(stamps[-1] / 60) + 1)
    if len(edges) < 2:
        raise InputError(f"{where}: the readings span less than a full minute; give a longer record")
    total_wh = np.concatenate([[0.0], np.cumsum(np.maximum(rises, 0.0))])
    watts = np.diff(np.interp(edges * 60, stamps, total_wh)) * 60.0
    longest_s = max(60.0 * (MAX_FILL_MINUTES + 1), 1.5 * float(np.median(pauses)))
    doubtful = (pauses > longest_s) | (rises < 0)
    marks = np.zeros(len(edges) + 1, dtype=np.int64)  # +1 where a doubtful stretch begins, -1 after its end
    for bounds, change in ((np.floor(stamps[:-1] / 60), 1), (np.ceil(stamps[1:] / 60), -1)):
        np.add.at(marks, np.clip(bounds[doubtful] - edges[0], 0, len(edges)).astype(np.int64), change)
    known = np.cumsum(marks)[: len(edges) - 1] == 0
    notes = []
    if resets := int(np.sum(rises < 0)):
        notes.append(f"register fell {resets:,} times: counted as resets, those minutes are unknown")
    positive = rises[rises > 1e-9]
    if len(positive):
        smallest_wh = float(positive.min())
        notes.append(
            f"power from a register that moves by {smallest_wh:g} Wh at least: "
            f"a minute is known to about {smallest_wh * 60:,.0f} W"
        )
    return Series(edges[:-1][known].astype(np.int64), watts[known], tuple(notes))
