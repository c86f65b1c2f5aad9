"""What a decider of the veil knows when it chooses a level, and the record of recent days behind it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import DAY_MINUTES, SLOT_MINUTES, Rules

SLOTS = DAY_MINUTES // SLOT_MINUTES
"""Half hours of a day."""
_LEAST_KNOWN = SLOT_MINUTES // 2
"""Fewest known minutes of a half hour that is recorded."""
_LAST_OF_SLOT = np.arange(DAY_MINUTES) % SLOT_MINUTES == SLOT_MINUTES - 1
"""Whether a minute of the day is the last of a half hour; looked up in every minute, which is faster."""
_USUAL_DAYS = Path(__file__).with_name("usual_days.npy")
"""A week of the synthetic household in whole watts, (day, minute)."""


class Situation(NamedTuple):
    """State of some households that choose a level; one entry per household."""

    rules: Rules
    battery: Battery  # every field is an array
    soc: FloatArray  # (batch,)
    budget_left_kwh: FloatArray  # (batch,)
    minute_of_day: IntArray  # (batch,)
    records: FloatArray  # (record, day, half hour, 1 + M) of recent days, see `record_of`
    record: IntArray  # (batch,) number of the household's record
    price: FloatArray  # (half hour,) usual price per kWh
    decoy_w: float | FloatArray = 0.0  # mean power of decoys, which the battery charges in addition; or (batch,)

    @property
    def recent(self) -> FloatArray:
        """(batch, day, half hour, 1 + M) record of each household."""
        return self.records[self.record]

    @property
    def usual_w(self) -> FloatArray:
        """(batch, half hour) mean load of recent days."""
        mean: FloatArray = self.recent[..., 0].mean(axis=1)
        return mean


class Decider(Protocol):
    """Rule that rates the levels of the menu."""

    def scores(self, situation: Situation) -> FloatArray:
        """Return how good each level is until the next scheduled decision, (batch, M): more is better."""
        ...


def record_of(load_w: FloatArray, rules: Rules) -> FloatArray:
    """Summarise minutes for a decider, (..., minute) -> (..., half hour, 1 + M).

    Each half hour holds the mean load in watts, then the energy in kWh that a battery moves to hold the meter
    at each level of the menu. A half hour with few readings is NaN.
    """
    slots_w = load_w.reshape(*load_w.shape[:-1], -1, SLOT_MINUTES, 1)
    moved_kwh = np.abs(np.asarray(rules.menu_w) - slots_w) * (KWH_PER_W_MINUTE * SLOT_MINUTES)
    minutes = np.concatenate([slots_w, moved_kwh], axis=-1)
    known = ~np.isnan(slots_w)
    count = known.sum(axis=-2)
    mean = np.where(known, minutes, 0.0).sum(axis=-2) / np.maximum(count, 1)
    return np.where(count >= _LEAST_KNOWN, mean, np.nan)


def complete(record: FloatArray) -> FloatArray:
    """Fill unknown half hours of recorded days by the mean of the other days, else by the mean of the day."""
    counts = np.sum(~np.isnan(record), axis=0)
    by_slot = np.where(counts > 0, np.nansum(record, axis=0) / np.maximum(counts, 1), np.nan)
    overall = np.nanmean(record.reshape(-1, record.shape[-1]), axis=0)
    by_slot = np.where(np.isnan(by_slot), overall, by_slot)
    return np.where(np.isnan(record), by_slot, record)


@cache
def shipped_record(rules: Rules) -> FloatArray:
    """Return the record of the week that ships, for a household without a day of history."""
    return record_of(np.load(_USUAL_DAYS).astype(np.float64), rules)


class Diary(NamedTuple):
    """Record of recent days that a household carries on minute by minute; those with the same past share one."""

    records: FloatArray  # (record, day, half hour, 1 + M)
    record: IntArray  # (batch,) number of the household's record
    load_w: FloatArray  # (batch, 30) minutes of the present half hour; NaN where unknown or yet to come
    today: IntArray  # (batch,) day of the record that the present day replaces

    @property
    def recent(self) -> FloatArray:
        """(batch, day, half hour, 1 + M) record of each household."""
        return self.records[self.record]


def new_diary(record: FloatArray, batch: int) -> Diary:
    """Begin with a record of days, the same for all households or one for each."""
    records = record.reshape(-1, *record.shape[-3:])
    number = np.broadcast_to(np.arange(len(records)), batch)
    return Diary(records, number, np.full((batch, SLOT_MINUTES), np.nan), np.zeros(batch, np.int64))


def carried_on(diary: Diary, load_w: FloatArray, minute_of_day: IntArray, rules: Rules) -> Diary:
    """Add a minute; at the end of a half hour replace that of the oldest day."""
    records, record, slot_w, today = diary
    minute = minute_of_day % SLOT_MINUTES
    slot_w = slot_w.copy()
    if np.count_nonzero(minute == minute[0]) == len(minute):  # the usual case, and much faster
        slot_w[:, minute[0]] = load_w
    else:
        slot_w[np.arange(len(load_w)), minute] = load_w
    ends = _LAST_OF_SLOT[minute_of_day]
    if not np.count_nonzero(ends):
        return Diary(records, record, slot_w, today)
    first, kind = alike(record, today, minute_of_day, slot_w)
    fresh = record_of(slot_w[first], rules)[:, 0]
    records = records[record[first]]
    kinds = np.flatnonzero(ends[first] & ~np.isnan(fresh[:, 0]))
    rows = first[kinds]
    records[kinds, today[rows], minute_of_day[rows] // SLOT_MINUTES] = fresh[kinds]
    slot_w[ends] = np.nan
    last = minute_of_day == DAY_MINUTES - 1
    return Diary(records, kind, slot_w, np.where(last, (today + 1) % records.shape[1], today))


def alike(*parts: FloatArray | IntArray) -> tuple[IntArray, IntArray]:
    """Return the first household of each kind with the same values in all parts, and the kind of every household."""
    kinds: dict[bytes, int] = {}
    same = [kinds.setdefault(row.tobytes(), len(kinds)) for row in np.column_stack(parts)]
    _, first = np.unique(same, return_index=True)
    return first, np.array(same)


def quiet_need_kwh(
    records: FloatArray, record: IntArray, level: IntArray, minute_of_day: IntArray, rules: Rules
) -> FloatArray:
    """Return the energy that a day takes after each half hour from now on without large loads, (batch, half hour).

    Of each half hour it counts the median of recent days, which few large loads reach: at the present level to the
    next decision, then at the level that takes least.
    """
    used, record = np.unique(record, return_inverse=True)
    usual_kwh = np.median(records[used, :, :, 1:], axis=1)  # (record, half hour, M)
    decisions = np.array([*rules.choice_minutes, DAY_MINUTES]) // SLOT_MINUTES
    slot = (minute_of_day // SLOT_MINUTES)[:, None]
    following = np.min(np.where(decisions > slot, decisions, SLOTS), axis=1)
    at_level_kwh = usual_kwh[record, :, level]  # (batch, half hour)
    need_kwh = np.where(np.arange(SLOTS) < following[:, None], at_level_kwh, usual_kwh.min(axis=2)[record])
    need_kwh *= rules.protected(np.arange(SLOTS) * SLOT_MINUTES)
    return np.asarray(np.cumsum(need_kwh[:, ::-1], axis=1)[:, ::-1] - need_kwh)
