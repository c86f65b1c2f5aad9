"""Units of a table's columns, and counted energy as mean power."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from meterveil.core.arrays import BoolArray
from meterveil.data.household import MAX_PLAUSIBLE_W, FloatArray, Unit
from meterveil.data.minutes import MAX_FILL_MINUTES, Series, check_seconds, minute_means
from meterveil.errors import InputError

ColumnUnit = Literal["W", "kW", "VA", "kVA", "Wh", "kWh"]

UNITS: dict[ColumnUnit, float] = {"W": 1.0, "kW": 1e3, "VA": 1.0, "kVA": 1e3, "Wh": 1.0, "kWh": 1e3}
"""Unit -> watts, volt-amperes or watt-hours."""

SPELLINGS: dict[str, ColumnUnit] = {
    "w": "W", "watt": "W", "watts": "W", "kw": "kW", "kilowatt": "kW", "kilowatts": "kW",
    "va": "VA", "kva": "kVA", "wh": "Wh", "kwh": "kWh",
}  # fmt: skip

CAMEL_ENDING = re.compile(r"[a-jl-z](k?Wh?|k?VA|KWH?)$")

SUSPECT_KW_BELOW = 60.0
"""Highest reading below which a column is more likely in kilowatts than in watts."""

MIN_COUNTER_STEPS = 20
"""Fewest readings that show a register, if few of them rise."""

MIN_COUNTER_RISES = 10
"""Fewest rises of a register, for each of its resets."""

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class FoundUnit:
    """Unit of a column, where it comes from, and how the column counts energy."""

    unit: ColumnUnit
    source: Literal["option", "name", "guess"]
    is_register: bool | None = None
    """Whether energy adds up from reading to reading; None for a power."""

    @property
    def is_energy(self) -> bool:
        """Whether the column counts energy."""
        return self.unit in ("Wh", "kWh")

    @property
    def of_power(self) -> Unit:
        """Unit of the mean power that the column becomes."""
        return "VA" if self.unit in ("VA", "kVA") else "W"

    @property
    def scale(self) -> float:
        """Watts (or watt-hours) in one of the unit."""
        return UNITS[self.unit]


def unit_in_name(column: str) -> ColumnUnit | None:
    """Find a unit among the words of a column's name: "Power (kW)", "mains_w", "energyKWh"."""
    words = re.findall(r"[A-Za-z]+", column)
    ends = [ending.group(1) for word in words if (ending := CAMEL_ENDING.search(word))]
    units = [SPELLINGS[word.lower()] for word in (*ends, *words) if word.lower() in SPELLINGS]
    return units[-1] if units else None


def find_unit(where: str, column: str, values: FloatArray, unit: str | None) -> FoundUnit:
    """Find the unit of the whole-house column: the option wins, then the name, then the values.

    Small values and values that only rise may be in any unit: they are an error without option and name.
    """
    if unit is not None:
        known = {name.lower(): name for name in UNITS}
        if unit.lower() not in known:
            raise InputError(f"the unit {unit!r} is not known; give one of {', '.join(UNITS)}")
        return FoundUnit(known[unit.lower()], "option")
    named = unit_in_name(column)
    if named is not None:
        return FoundUnit(named, "name")
    largest = float(np.nanmax(np.abs(values)))
    if is_counter(values):
        raise InputError(
            f"{where} only ever rises, to {largest:g}, as a meter's register does; "
            'name its unit: unit="kWh" or unit="Wh" (or unit="W" if it is power)'
        )
    if largest < SUSPECT_KW_BELOW:
        raise InputError(
            f"{where} has no unit and never exceeds {largest:g}, too little for watts; "
            'name it: unit="kW" if these are kilowatts, unit="W" if they are watts'
        )
    return FoundUnit("W", "guess")


def unit_notes(where: str, column: str, found: FoundUnit, values: FloatArray) -> tuple[str, ...]:
    """Note an assumed or doubtful unit; reject an impossible one."""
    largest = float(np.nanmax(np.abs(values)))
    if found.is_energy:
        return ()
    if largest * found.scale > MAX_PLAUSIBLE_W:
        raise InputError(
            f"{where} reaches {largest:,.0f} {found.unit}, more than a home can draw "
            f"({MAX_PLAUSIBLE_W:,.0f} W); name the right unit, one of {', '.join(UNITS)}"
        )
    if found.source == "guess":
        return (f"{column}: no unit given; values reach {largest:,.0f}, so taken as W",)
    if found.scale == 1.0 and largest < SUSPECT_KW_BELOW:
        return (f'{column}: never exceeds {largest:g} {found.unit}; if these are kW, give unit="kW"',)
    return ()


def is_counter(values: FloatArray) -> bool:
    """Tell a register, which only rises, from a power; values are in order of their stamps."""
    falls, rises, steps = _steps(values)
    if _falls_too_often(falls, steps) or rises < MIN_COUNTER_RISES * falls:
        return False
    return rises >= MIN_COUNTER_RISES or (steps >= MIN_COUNTER_STEPS and rises > 0)


def is_register(energy_wh: FloatArray, step_s: float, mains: bool | None = None) -> bool:
    """Tell a register from the energy of each interval; values are in order of their stamps.

    A register may stand still, so its shape alone is not enough. A value that no home reaches within an
    interval is a register; otherwise a sub-meter counts as the mains of the same table do (`mains`).
    """
    falls, rises, steps = _steps(energy_wh)
    if _falls_too_often(falls, steps):
        return False
    if np.nanmax(energy_wh, initial=0.0) * SECONDS_PER_HOUR / step_s > MAX_PLAUSIBLE_W:
        return True
    return is_counter(energy_wh) if mains is None else mains and rises >= MIN_COUNTER_RISES * falls


def _steps(values: FloatArray) -> tuple[int, int, int]:
    """Count falls, rises and all steps between known values."""
    steps = np.diff(values[~np.isnan(values)])
    return int(np.sum(steps < 0)), int(np.sum(steps > 0)), len(steps)


def _falls_too_often(falls: int, steps: int) -> bool:
    """Allow for an occasional reset of a register."""
    return falls > max(1, steps // 1000)


def register_to_power(where: str, seconds: FloatArray, energy_wh: FloatArray) -> Series:
    """Turn a register's readings into the mean power of each whole minute between them.

    The register is interpolated at every full minute, so energy is conserved. Minutes that touch a reset, or
    a pause much longer than usual, are unknown.
    """
    known = ~np.isnan(energy_wh) & ~np.isnan(seconds)
    order = np.argsort(seconds[known], kind="stable")
    stamps, counts = seconds[known][order], energy_wh[known][order]
    last = np.append(np.diff(stamps) > 0, True) if len(stamps) else np.zeros(0, dtype=bool)
    stamps, counts = stamps[last], counts[last]
    if len(stamps) < 2:
        raise InputError(f"{where}: a register needs at least two readings; there are {len(stamps)}")
    check_seconds(float(stamps[0]), float(stamps[-1]), where)
    pauses, rises = np.diff(stamps), np.diff(counts)
    longest_s = max(60.0 * (MAX_FILL_MINUTES + 1), 1.5 * float(np.median(pauses)))
    total_wh = np.concatenate([[0.0], np.cumsum(np.maximum(rises, 0.0))])
    edges = np.arange(np.ceil(stamps[0] / 60), np.floor(stamps[-1] / 60) + 1)
    if len(edges) < 2:
        raise InputError(f"{where}: the readings span less than a full minute; give a longer record")
    watts = np.diff(np.interp(edges * 60, stamps, total_wh)) * 60.0
    doubtful = (pauses > longest_s) | (rises < 0)
    known_minute = ~_touched(edges, stamps[:-1][doubtful], stamps[1:][doubtful])
    return Series(edges[:-1][known_minute].astype(np.int64), watts[known_minute], _register_notes(rises))


def interval_to_power(where: str, seconds: FloatArray, energy_wh: FloatArray, step_s: float) -> Series:
    """Turn the energy of intervals of equal length into power, held from each stamp on."""
    series = minute_means(seconds, energy_wh * SECONDS_PER_HOUR / step_s, where)
    note = f"energy of intervals of {step_s:g} s as mean power; a stamp is the start of its interval"
    return Series(series.minute, series.watts, (*series.notes, note))


def _touched(edges: FloatArray, starts: FloatArray, ends: FloatArray) -> BoolArray:
    """Mark the minutes between `edges` that overlap any of the stretches."""
    marks = np.zeros(len(edges) + 1, dtype=np.int64)
    np.add.at(marks, np.clip(np.floor(starts / 60) - edges[0], 0, len(edges)).astype(np.int64), 1)
    np.add.at(marks, np.clip(np.ceil(ends / 60) - edges[0], 0, len(edges)).astype(np.int64), -1)
    return np.cumsum(marks)[: len(edges) - 1] > 0


def _register_notes(rises: FloatArray) -> tuple[str, ...]:
    notes = []
    resets = int(np.sum(rises < 0))
    if resets:
        notes.append(f"register fell {resets:,} times: counted as resets, those minutes are unknown")
    positive = rises[rises > 1e-9]
    if len(positive):
        smallest_wh = float(positive.min())
        notes.append(
            f"power from a register that moves by {smallest_wh:g} Wh at least: "
            f"a minute is known to about {smallest_wh * 60:,.0f} W"
        )
    return tuple(notes)
