"""Rule that tells sleep and absence from a meter, also from half-hourly readings (docs/audit.md)."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from meterveil.audit.model import Shape, runs_of
from meterveil.core.arrays import BoolArray, FloatArray

SLOT_MINUTES = 30
BASE_QUANTILE = 0.1
FRIDGE_SLOTS = 3
MARGIN_W = 100.0
"""A fridge and a router together stay below this."""
EVENT_W = 400.0
NIGHT = (22, 9)
"""Hours between which quiet counts as sleep."""
AWAY_SLOTS = 40
"""Quiet of 20 hours and more is absence, also at night."""

State = Literal["asleep", "empty"]

LEAST_SLOTS: dict[State, int] = {"asleep": 4, "empty": 8}
"""Fewest quiet slots of each state; by day, people at home may cause little load for hours."""
SURE_SLOTS: dict[State, int] = {"asleep": 8, "empty": 12}
"""Quiet slots from which a state is called likely; below, it is unsure."""


class Quiet(NamedTuple):
    """Quiet stretch, as minutes of the record from `start` up to, not including, `end`."""

    state: State
    start: int
    end: int
    sure: bool


def base_load_w(aggregate_w: FloatArray) -> float:
    """Return the power of the house when nobody uses anything, fridge included."""
    return float(np.nanquantile(_calmest(slot_means(aggregate_w)), BASE_QUANTILE))


def slot_means(values: FloatArray) -> FloatArray:
    """Average over half-hours, (minute,) -> (slot,); NaN where less than half of one is known."""
    slots = _slots(values)
    known = ~np.isnan(slots)
    enough = known.sum(axis=1) * 2 >= SLOT_MINUTES
    mean = np.where(known, slots, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(enough, mean, np.nan)


def quiet_stretches(minutes: pd.DatetimeIndex, aggregate_w: FloatArray, unattended: BoolArray) -> list[Quiet]:
    """Find sleep and absence in a record of whole civil days.

    `unattended` marks the minutes of washing machines and dishwashers, which run by themselves.
    """
    base_w = base_load_w(aggregate_w)
    reading_w = np.where(unattended & ~np.isnan(aggregate_w), base_w, aggregate_w)
    mean_w = _calmest(slot_means(reading_w))
    highest_w = np.nan_to_num(_slots(reading_w), nan=-np.inf).max(axis=1)
    quiet = (mean_w <= base_w + MARGIN_W) & (highest_w <= base_w + EVENT_W)
    hours = np.asarray(minutes[::SLOT_MINUTES].hour)
    night = (hours >= NIGHT[0]) | (hours < NIGHT[1])
    return [
        part
        for low, high in runs_of(quiet, Shape(0, LEAST_SLOTS["asleep"], len(quiet)))
        for part in _split(low, high, night, len(aggregate_w))
    ]


def _split(low: int, high: int, night: BoolArray, length: int) -> list[Quiet]:
    """Split one run of quiet slots into sleep and absence."""
    away = high - low >= AWAY_SLOTS
    turns = [] if away else (np.flatnonzero(np.diff(night[low:high])) + low + 1).tolist()
    parts: list[Quiet] = []
    for start, end in pairwise([low, *turns, high]):
        state: State = "asleep" if night[start] and not away else "empty"
        if (slots := end - start) >= LEAST_SLOTS[state]:
            stop = min(end * SLOT_MINUTES, length)
            parts.append(Quiet(state, start * SLOT_MINUTES, stop, slots >= SURE_SLOTS[state]))
    return parts


def _calmest(mean_w: FloatArray) -> FloatArray:
    """Return the lowest mean of an hour and a half around each slot; NaN where the slot is unknown."""
    reach = FRIDGE_SLOTS - 1
    filled = np.pad(mean_w, reach, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(filled, FRIDGE_SLOTS)
    known = (~np.isnan(windows)).sum(axis=-1)
    total = np.where(np.isnan(windows), 0.0, windows).sum(axis=-1)
    means = np.where(known > 0, total / np.maximum(known, 1), np.inf)
    calmest = np.lib.stride_tricks.sliding_window_view(means, FRIDGE_SLOTS).min(axis=-1)
    return np.where(np.isnan(mean_w), np.nan, calmest)


def _slots(values: FloatArray) -> FloatArray:
    padded = np.pad(values, (0, -len(values) % SLOT_MINUTES), constant_values=np.nan)
    return padded.reshape(-1, SLOT_MINUTES)
