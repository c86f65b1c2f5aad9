"""Fast model of a veiled household by half hours, for training: what each choice does to charge, budget, cost and bits.

Days are summarised once (`tables_of`), then thousands of households advance together from one decision to the next.
The model adds up half hours where the veil follows minutes: it knows the order of half hours, not that of minutes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.core.certificate import DAY_MINUTES, GRID, READING_BITS, SLOT_MINUTES, Rules
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.defenders.veil.situation import SLOTS

_TIME_BITS = math.log2(DAY_MINUTES)
_EVENT_BITS = 3.0 + _TIME_BITS
"""Bits of an event's kind and first minute, and one for the number of events."""
_STRETCH_BITS = _EVENT_BITS + _TIME_BITS
"""The same with the length of a missed stretch."""


class Tables(NamedTuple):
    """What each choice does in each half hour of some days, (day, half hour, choice) each."""

    moved_kwh: FloatArray  # in and out together
    drawn_kwh: FloatArray  # out of the battery
    drawn_minutes: FloatArray
    large_kwh: FloatArray  # part of `drawn_kwh` that is not hidden where the budget is saved
    large_minutes: FloatArray
    large_runs: FloatArray
    open_bits: FloatArray  # of the readings of an open block


def tables_of(days_w: FloatArray, rules: Rules, large_w: float) -> Tables:
    """Summarise days, (day, 1440)."""
    slots_w = np.nan_to_num(days_w).reshape(len(days_w), SLOTS, SLOT_MINUTES, 1)
    levels_w = np.array([*rules.menu_w, *[np.nan] * len(rules.open_modes)])
    power_w = levels_w - slots_w  # (day, half hour, minute, choice)
    open_bits = np.zeros(len(levels_w))
    for number, mode in enumerate(rules.open_modes, len(rules.menu_w)):
        grid_w = np.round(slots_w[..., 0] / rules.grid_w) * rules.grid_w if mode == GRID else slots_w[..., 0]
        power_w[..., number] = grid_w - slots_w[..., 0]
        open_bits[number] = SLOT_MINUTES * (rules.grid_bits if mode == GRID else READING_BITS)
    large = (power_w < -large_w) & (open_bits == 0.0)
    drawn_w = np.maximum(-power_w, 0.0)
    runs = large & ~np.concatenate([np.zeros_like(large[:, :, :1]), large[:, :, :-1]], axis=2)
    kwh = KWH_PER_W_MINUTE
    return Tables(
        np.abs(power_w).sum(axis=2) * kwh,
        drawn_w.sum(axis=2) * kwh,
        (drawn_w > 0.0).sum(axis=2).astype(np.float64),
        (drawn_w * large).sum(axis=2) * kwh,
        large.sum(axis=2).astype(np.float64),
        runs.sum(axis=2).astype(np.float64),
        np.broadcast_to(open_bits, (len(days_w), SLOTS, len(open_bits))),
    )


class Limits(NamedTuple):
    """Battery and settings of a model."""

    range_kwh: float
    budget_kwh: FloatArray  # (batch,) of a day
    rescue_kwh: float
    rescue_slots: int
    charge_efficiency: float = 1.0
    discharge_efficiency: float = 1.0


class Homes(NamedTuple):
    """State of some households between two half hours; one entry per household."""

    slot: IntArray  # half hour of the day
    stored_kwh: FloatArray  # above the lowest SoC
    left_kwh: FloatArray  # of the day's budget


class Block(NamedTuple):
    """What a choice led to until the next decision; one entry per household."""

    cost: FloatArray  # energy and wear; stored energy counts at the cheapest price
    bits: FloatArray  # beyond those of the scheduled choice
    slots: IntArray  # half hours until the next decision
    rescued: BoolArray  # the next decision is a rescue
    missed_minutes: FloatArray
    moved_kwh: FloatArray


def block(
    tables: Tables,
    rules: Rules,
    limits: Limits,
    price: FloatArray,
    homes: Homes,
    day: IntArray,
    choice: IntArray,
    kept_kwh: FloatArray,
) -> tuple[Homes, Block]:
    """Hold a choice until the next decision, scheduled or not.

    `day` is the row of the tables that the load follows, `kept_kwh` the budget that is kept from each half hour of
    the day on, (batch, half hour).
    """
    scheduled = rules.scheduled(np.arange(SLOTS) * SLOT_MINUTES)
    slot, stored, left = homes.slot.copy(), homes.stored_kwh.copy(), homes.left_kwh.copy()
    cost, bits, missed, moved = (np.zeros(len(slot)) for _ in range(4))
    lasted, rescued = np.zeros(len(slot), np.int64), np.zeros(len(slot), np.bool_)
    stuck = np.zeros(len(slot), np.bool_)
    row, levels = np.arange(len(slot)), len(rules.menu_w)
    while len(row):
        at = day[row], slot[row], choice[row]
        move, draw, minutes, large, large_minutes, runs, open_bits = (part[at] for part in tables)
        saves = (left[row] < kept_kwh[row, slot[row]]) & (large > 0.0)
        gone = np.where(saves, large, 0.0)
        move, draw = move - gone, draw - gone
        lost = np.where(saves, large_minutes, 0.0)
        leaked = lost * rules.grid_bits + np.where(saves, runs, 0.0) * _STRETCH_BITS
        share = np.minimum(left[row] / np.maximum(move, 1e-9), 1.0)
        draw, charge = draw * share, (move - draw) * share
        end = stored[row] + charge * limits.charge_efficiency - draw / limits.discharge_efficiency
        lack = np.clip(-end * limits.discharge_efficiency, 0.0, draw)
        spare = np.clip((end - limits.range_kwh) / limits.charge_efficiency, 0.0, charge)
        unmet = minutes * lack / np.maximum(draw, 1e-9) + (SLOT_MINUTES - minutes) * spare / np.maximum(charge, 1e-9)
        draw, charge = draw - lack, charge - spare
        idle = SLOT_MINUTES * (1.0 - share)
        fails = (unmet + idle) > 0.5
        leaked += unmet * rules.grid_bits + idle * READING_BITS + open_bits
        leaked += (fails & ~stuck[row]) * _STRETCH_BITS
        stuck[row] = fails
        stored[row] = np.clip(end, 0.0, limits.range_kwh)
        left[row] -= charge + draw
        cost[row] += (price[slot[row]] - price.min()) * (charge - draw) + DEGRADATION_PER_KWH * (charge + draw)
        bits[row] += leaked
        missed[row] += lost + unmet + idle + np.where(open_bits > 0.0, SLOT_MINUTES, 0.0)
        moved[row] += charge + draw
        lasted[row] += 1
        slot[row] += 1
        midnight = row[slot[row] == SLOTS]
        slot[midnight], left[midnight], stuck[midnight] = 0, limits.budget_kwh[midnight], False
        row = row[~scheduled[slot[row]]]
        late = (lasted[row] >= limits.rescue_slots) & (choice[row] < levels) & (left[row] > 0.0)
        at = day[row], slot[row], choice[row]
        draws, charges = tables.drawn_kwh[at] > 0.0, tables.moved_kwh[at] > tables.drawn_kwh[at]
        low, high = stored[row] < limits.rescue_kwh, limits.range_kwh - stored[row] < limits.rescue_kwh
        due = late & ((low & draws) | (high & charges))
        rescued[row[due]] = True
        row = row[~due]
    bits += rescued * (_EVENT_BITS + math.log2(rules.choices))
    return Homes(slot, stored, left), Block(cost, bits, lasted, rescued, missed, moved)
