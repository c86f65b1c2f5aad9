"""Counted energy as mean power: a meter's register, or the energy of each interval."""

from __future__ import annotations

import numpy as np

from meterveil.data.household import FloatArray
from meterveil.data.minutes import MAX_FILL_MINUTES, Series, check_seconds, minute_means
from meterveil.data.units import SECONDS_PER_HOUR
from meterveil.errors import InputError


def register_to_power(where: str, seconds: FloatArray, energy_wh: FloatArray) -> Series:
    """Turn a register's readings into the mean power of each whole minute between them.

    The register is read off at every full minute by interpolation, so energy is conserved to the last
    watt-hour. Minutes that touch a reset, or a pause much longer than usual, are unknown.
    """
    known = ~np.isnan(energy_wh) & ~np.isnan(seconds)
    order = np.argsort(seconds[known], kind="stable")
    stamps, counts = seconds[known][order], energy_wh[known][order]
    last = np.append(np.diff(stamps) > 0, True) if len(stamps) else np.zeros(0, dtype=bool)
    stamps, counts = stamps[last], counts[last]
    if len(stamps) < 2:
        raise InputError(f"{where}: a register needs at least two readings; {len(stamps)} came")
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
    notes = _register_notes(rises)
    return Series(edges[:-1][known_minute].astype(np.int64), watts[known_minute], notes)


def interval_to_power(where: str, seconds: FloatArray, energy_wh: FloatArray, step_s: float) -> Series:
    """Turn the energy of intervals of equal length into power, held from each stamp on."""
    series = minute_means(seconds, energy_wh * SECONDS_PER_HOUR / step_s, where)
    note = f"energy of intervals of {step_s:g} s as mean power; a stamp is the start of its interval"
    return Series(series.minute, series.watts, (*series.notes, note))


def _touched(edges: FloatArray, starts: FloatArray, ends: FloatArray) -> np.ndarray:
    """Mark the minutes between `edges` that overlap any of the stretches."""
    marks = np.zeros(len(edges) + 1, dtype=np.int64)
    first = np.clip(np.floor(starts / 60) - edges[0], 0, len(edges)).astype(np.int64)
    end = np.clip(np.ceil(ends / 60) - edges[0], 0, len(edges)).astype(np.int64)
    np.add.at(marks, first, 1)
    np.add.at(marks, end, -1)
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
