"""Certificate of a day for a reader of longer intervals or coarser steps than minutes in whole watts.

The description is that of `core.certificate`, with one kind of event more: readings that miss the plan by little are
told by their distance from it. docs/going-live.md has the proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.certificate import (
    DAY_MINUTES,
    KINDS,
    LARGER_BITS,
    LARGEST_READING,
    READING_BITS,
    Counts,
    Rules,
    code_bits,
)


class Reader(NamedTuple):
    """Reader of the mean of each interval, rounded to the nearest step."""

    name: str
    minutes: int
    step_w: float  # of the interval's mean: 10 Wh of half an hour are 20 W


class Day(NamedTuple):
    """One civil day so far, (minute,); NaN where the meter was not read."""

    meter_w: FloatArray
    level_w: FloatArray  # plan of the defence; NaN where it has none: spikes, open blocks
    decoy_w: FloatArray
    choice: BoolArray  # a scheduled choice is made in this minute


def reader_bits(rules: Rules, day: Day, reader: Reader) -> float:
    """Return the most that a day's readings tell this reader about the load, in bits.

    Only intervals that are over count as readings; the last one is still running.
    """
    count = len(day.meter_w) // reader.minutes
    read, planned = (
        np.round(_means(part, reader.minutes) / reader.step_w) for part in (day.meter_w, day.level_w + day.decoy_w)
    )
    missed = read != planned  # a reading without a plan, or that was not seen, is missed
    kinds, bits = _reading_codes(rules, read, planned, reader.step_w)
    kinds = np.where(missed, kinds, 0)
    level_w = _filled_forward(day.level_w)
    moved = np.diff(level_w, prepend=level_w[:1]) != 0.0
    sums = (day.choice, moved & ~day.choice, missed & (np.diff(kinds, prepend=0) != 0), False)
    counts = Counts(*(np.asarray(np.sum(part), dtype=np.float64) for part in sums))
    time_bits = np.log2(max(len(day.meter_w), DAY_MINUTES))
    place_bits = 2.0 * np.log2(max(count, DAY_MINUTES / reader.minutes))
    return float(code_bits(rules, counts, KINDS + 1, time_bits, place_bits, np.sum(bits[missed])))


def _reading_codes(
    rules: Rules, shown: FloatArray, planned: FloatArray, step_w: float
) -> tuple[FloatArray, FloatArray]:
    """Return kind and bits of each reading if it is missed: near the plan (1), on the grid (2) or far (3).

    Near readings are told by their distance in steps, as an Elias gamma code of 1, -1, 2, -2 and so on.
    """
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(shown - planned, nan=2.0**30)
        order = np.maximum(2.0 * np.abs(steps) - (steps > 0), 1.0)
        near = 2.0 * np.floor(np.log2(order)) + 1.0
        grid = np.where(rules.on_grid(shown * step_w), rules.grid_bits, np.inf)
        far = READING_BITS + LARGER_BITS * (np.abs(np.nan_to_num(shown)) > LARGEST_READING)
    lengths = np.stack([near, grid, far])
    return 1.0 + lengths.argmin(axis=0), lengths.min(axis=0)


def _means(values: FloatArray, width: int) -> FloatArray:
    whole = len(values) // width * width
    means: FloatArray = values[:whole].reshape(-1, width).mean(axis=1)
    return means


def _filled_forward(values: FloatArray) -> FloatArray:
    """Fill gaps with the value before; 0 before the first."""
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    filled: FloatArray = np.where(last >= 0, values[np.maximum(last, 0)], 0.0)
    return filled
