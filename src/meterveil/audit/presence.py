"""When a house seems asleep or empty, from its meter alone; also from half-hourly readings.

The rule: a half-hour is *quiet* if it lies in an hour and a half (in which a fridge evens out) whose mean is
within `MARGIN_W` of the base load, and no minute of its own rises `EVENT_W` above that. The base load is what
nine tenths of the record exceeds. Machines that run by themselves (washing, dishes) do not count. In the
night, two hours of quiet and more are sleep; by day, four hours and more are absence; nearly a day of quiet
is absence throughout.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from meterveil.audit.features import FloatArray
from meterveil.audit.uses import BoolArray

SLOT_MINUTES = 30
BASE_QUANTILE = 0.1
FRIDGE_SLOTS = 3
MARGIN_W = 100.0
"""A fridge and a router that happen to draw together are no sign of life."""
EVENT_W = 400.0
NIGHT = (22, 9)
"""Hours between which quiet is taken for sleep."""
AWAY_SLOTS = 40
"""Quiet of 20 hours and more is absence, also at night."""

State = Literal["asleep", "empty"]

LEAST_SLOTS: dict[State, int] = {"asleep": 4, "empty": 8}
"""Shorter quiet says nothing; by day people sit still longer than they are awake in a quiet night."""
SURE_SLOTS: dict[State, int] = {"asleep": 8, "empty": 12}
"""From here on a state is called likely, below unsure."""


class Quiet(NamedTuple):
    """A stretch of quiet, as minutes of the record from `start` up to, not including, `end`."""

    state: State
    start: int
    end: int
    sure: bool


def base_load_w(aggregate_w: FloatArray) -> float:
    """Return what the house draws when nobody does anything, its fridge included."""
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

    `unattended` marks the minutes in which only machines that run by themselves seem to work.
    """
    base_w = base_load_w(aggregate_w)
    reading_w = np.where(unattended & ~np.isnan(aggregate_w), base_w, aggregate_w)
    mean_w = _calmest(slot_means(reading_w))
    highest_w = np.nan_to_num(_slots(reading_w), nan=-np.inf).max(axis=1)
    quiet = (mean_w <= base_w + MARGIN_W) & (highest_w <= base_w + EVENT_W)
    hours = np.asarray(minutes[::SLOT_MINUTES].hour)
    night = (hours >= NIGHT[0]) | (hours < NIGHT[1])
    found = []
    for low, high in _runs(quiet, LEAST_SLOTS["asleep"]):
        found += _split(low, high, night, len(aggregate_w))
    return found


def _split(low: int, high: int, night: BoolArray, length: int) -> list[Quiet]:
    """Tell sleep from absence within one stretch of quiet slots."""
    if high - low >= AWAY_SLOTS:
        return [_quiet("empty", low, high, length)]
    turns = np.flatnonzero(np.diff(night[low:high])) + low + 1
    parts = pairwise([low, *(int(turn) for turn in turns), high])
    found = [_quiet("asleep" if night[start] else "empty", start, end, length) for start, end in parts]
    return [part for part in found if part.end - part.start >= LEAST_SLOTS[part.state] * SLOT_MINUTES]


def _quiet(state: State, low: int, high: int, length: int) -> Quiet:
    return Quiet(state, low * SLOT_MINUTES, min(high * SLOT_MINUTES, length), high - low >= SURE_SLOTS[state])


def _calmest(mean_w: FloatArray) -> FloatArray:
    """Return the mean of the calmest hour and a half that each slot lies in; NaN where it is unknown."""
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


def _runs(marked: BoolArray, least: int) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(marked.astype(np.int8), prepend=0, append=0))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2) if high - low >= least]
