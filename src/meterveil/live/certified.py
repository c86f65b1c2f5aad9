"""Certificates of a live day: what the readings of a named reader tell at most, from what the meter showed (D18).

A real battery is some watts off the plan in every minute, so a reader of minutes in whole watts learns much. Most
meters send coarser readings. `reader_bits` is the certificate of `core.certificate` for the readings of such a reader:
the mean of each interval, rounded to a step. docs/going-live.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.certificate import (
    DAY_MINUTES,
    EVENT_BITS,
    LARGER_BITS,
    LARGEST_READING,
    QUIET_BITS,
    READING_BITS,
    Rules,
)
from meterveil.core.rollout import Policy
from meterveil.live.records import MinuteRecord

WHOLE_S = 58.0
"""A minute with fewer seconds of good readings counts as unknown."""
_KINDS = 4.0
"""An event is a rescue or a stretch of readings that are all near, on the grid, or far."""


class Reader(NamedTuple):
    """Reader of the mean of each interval, rounded to the nearest step."""

    name: str
    minutes: int
    step_w: float  # of the interval's mean: 10 Wh of half an hour are 20 W


READERS = (
    Reader("half hours in 10 Wh", 30, 20.0),
    Reader("half hours in 1 Wh", 30, 2.0),
    Reader("quarter hours in 1 Wh", 15, 4.0),
    Reader("minutes in 10 W", 1, 10.0),
    Reader("minutes in 1 W", 1, 1.0),
)
"""Usual readers, the coarsest first: suppliers in Britain, in Germany, in-home displays."""


class Day(NamedTuple):
    """One civil day so far, (minute,); NaN where the meter was not read."""

    meter_w: FloatArray
    level_w: FloatArray  # plan of the defence; NaN where it has none: spikes, open blocks
    decoy_w: FloatArray
    choice: BoolArray  # a scheduled choice is made in this minute


def day_so_far(rules: Rules, minutes: Sequence[MinuteRecord], timezone: str) -> Day:
    """Lay the stored minutes of one civil day on its clock, from midnight to the last of them.

    A minute that was not recorded is unknown; a level is valid until another one is recorded.
    """
    zone = ZoneInfo(timezone)
    midnight = datetime.fromisoformat(minutes[-1].day).replace(tzinfo=zone)
    first = int(midnight.timestamp()) // 60
    count = minutes[-1].utc_minute - first + 1
    meter_w, level_w, decoy_w = (np.full(count, math.nan) for _ in range(3))
    for minute in minutes:
        at = minute.utc_minute - first
        if not 0 <= at < count:  # a clock that was set back
            continue
        known = minute.known_s >= WHOLE_S and minute.meter_w is not None
        meter_w[at] = minute.meter_w if known else math.nan
        level_w[at], decoy_w[at] = (math.nan if value is None else value for value in (minute.level_w, minute.decoy_w))
    local = [datetime.fromtimestamp(60 * (first + at), zone) for at in range(count)]
    clock = np.array([moment.hour * 60 + moment.minute for moment in local])
    choice = rules.scheduled(clock)
    choice[0] = True  # a day is described alone
    return Day(meter_w, level_w, np.nan_to_num(decoy_w), choice)


def reader_bits(rules: Rules, day: Day, reader: Reader) -> float:
    """Return the most that a day's readings tell this reader about the load, in bits.

    Only intervals that are over count as readings; the last one is still running.
    """
    count = len(day.meter_w) // reader.minutes
    shown, planned = (
        np.round(_means(part, reader.minutes) / reader.step_w) for part in (day.meter_w, day.level_w + day.decoy_w)
    )
    missed = shown != planned  # a reading without a plan, or that was not seen, is missed
    kinds, bits = _reading_codes(rules, shown, planned, reader.step_w)
    kinds = np.where(missed, kinds, 0)
    stretches = int(np.sum(missed & (np.diff(kinds, prepend=0) != 0)))
    level_w = _filled_forward(day.level_w)
    moved = np.diff(level_w, prepend=level_w[:1]) != 0.0
    rescues = int(np.sum(moved & ~day.choice))
    events = rescues + stretches
    time_bits = math.log2(max(len(day.meter_w), DAY_MINUTES))
    place_bits = 2.0 * math.log2(max(count, DAY_MINUTES / reader.minutes))
    return float(
        day.choice.sum() * rules.choice_bits
        + (EVENT_BITS + events if events else QUIET_BITS)
        + rescues * (math.log2(_KINDS) + time_bits + math.log2(rules.choices))
        + stretches * (math.log2(_KINDS) + place_bits)
        + np.sum(bits[missed])
    )


def certificates(policy: Policy, minutes: Sequence[MinuteRecord], timezone: str) -> dict[str, float]:
    """Return the bits of one civil day for every usual reader, by name; nothing for a defence without a plan."""
    rules = getattr(policy, "rules", None)
    if not isinstance(rules, Rules) or not minutes:
        return {}
    day = day_so_far(rules, minutes, timezone)
    return {reader.name: reader_bits(rules, day, reader) for reader in READERS}


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
        grid = np.where(rules.on_grid(shown * step_w), rules.grid_bits, math.inf)
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
