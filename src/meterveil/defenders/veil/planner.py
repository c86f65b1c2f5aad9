"""Planner: try the levels of the coming blocks on recent days, and take what misses and costs least."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import SLOT_MINUTES
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.defenders.veil.situation import SLOTS, Situation

_HOURS = SLOT_MINUTES / 60.0


class Block(NamedTuple):
    """What holding each level does in one block of each recent day, (batch, day, M) each."""

    lowest_kwh: FloatArray  # of the stored energy within the block, relative to its start
    highest_kwh: FloatArray
    net_kwh: FloatArray
    moved_kwh: FloatArray  # before midnight
    moved_later_kwh: FloatArray  # after it
    cost: FloatArray


@dataclass(frozen=True)
class Planner:
    """Decider that simulates recent days for a day ahead, one level for each coming block."""

    blocks: int = 3
    """Blocks to look ahead; at most a day."""
    penalty: float = 2.0
    """Cost of each kWh that the SoC range or the budget lacks."""
    reserve_kwh: float = 0.3
    """Part of the SoC range at each end, and of the budget, that a plan should not use."""

    def scores(self, situation: Situation) -> FloatArray:
        """Rate each level by the least cost of a plan that begins with it."""
        scores = np.empty((len(situation.soc), len(situation.rules.menu_w)))
        slot = situation.minute_of_day // SLOT_MINUTES
        for now in np.unique(slot):
            rows = np.flatnonzero(slot == now)
            part = situation if len(rows) == len(slot) else _rows(situation, rows)
            scores[rows] = -self._cost(part, int(now))
        return scores

    def _cost(self, situation: Situation, now: int) -> FloatArray:
        """Return the least cost of a plan that begins with each level, (batch, M)."""
        blocks = _blocks(situation, now)[: self.blocks]
        battery, levels = situation.battery, len(situation.rules.menu_w)
        low_kwh, high_kwh = (
            (np.asarray(end) * battery.capacity_kwh)[:, None, None, None] for end in (battery.soc_min, battery.soc_max)
        )
        stored_kwh = (situation.soc * battery.capacity_kwh)[:, None, None]
        left_kwh = situation.budget_left_kwh[:, None, None]
        later_kwh = np.asarray(battery.budget_kwh)[:, None, None]
        total = np.zeros((1, 1, 1))
        for block in blocks:  # every plan so far goes on with each level: (batch, day, plan, M)
            stored_kwh, left_kwh, later_kwh, total = (
                part[..., None] for part in (stored_kwh, left_kwh, later_kwh, total)
            )
            level = Block(*(part[:, :, None] for part in block))
            lacks_kwh = _short(stored_kwh + level.lowest_kwh - low_kwh, self.reserve_kwh)
            lacks_kwh += _short(high_kwh - stored_kwh - level.highest_kwh, self.reserve_kwh)
            stored_kwh, left_kwh, later_kwh, total = (
                part.reshape(*part.shape[:2], -1)
                for part in (
                    np.clip(stored_kwh + level.net_kwh, low_kwh, high_kwh),
                    left_kwh - level.moved_kwh,
                    later_kwh - level.moved_later_kwh,
                    total + level.cost + self.penalty * lacks_kwh,
                )
            )
        total = total + self.penalty * (_short(left_kwh, self.reserve_kwh) + _short(later_kwh, self.reserve_kwh))
        total = total - situation.price.min() * stored_kwh
        mean = total.mean(axis=1)  # (batch, plan)
        least: FloatArray = np.min(mean.reshape(len(mean), levels, -1), axis=2)
        return least


def _short(left_kwh: FloatArray, reserve_kwh: float) -> FloatArray:
    """Return what is missing, and half of what is taken from the reserve."""
    return np.maximum(-left_kwh, 0.0) + 0.5 * np.maximum(reserve_kwh - np.maximum(left_kwh, 0.0), 0.0)


def _blocks(situation: Situation, now: int) -> list[Block]:
    """Return the blocks from now on, up to a day ahead."""
    battery = situation.battery
    slots = (now + np.arange(SLOTS)) % SLOTS
    recent = situation.recent[:, :, slots]  # (batch, day, half hour from now, 1 + M)
    decoys_kwh = situation.decoy_w * (_HOURS / 1000.0)
    added_kwh = (np.asarray(situation.rules.menu_w) - recent[..., :1]) * (_HOURS / 1000.0) + decoys_kwh
    moved_kwh = recent[..., 1:] + decoys_kwh
    veiled = situation.rules.protected(slots * SLOT_MINUTES)[:, None]  # in the other hours the battery rests
    added_kwh, moved_kwh = added_kwh * veiled, moved_kwh * veiled
    charge_kwh, discharge_kwh = (moved_kwh + added_kwh) / 2.0, (moved_kwh - added_kwh) / 2.0
    gain, loss = (_column(part) for part in (battery.charge_efficiency, battery.discharge_efficiency))
    stored_kwh = charge_kwh * gain - discharge_kwh / loss
    cost = added_kwh * situation.price[slots][:, None] + moved_kwh * DEGRADATION_PER_KWH
    before_midnight = (np.arange(SLOTS) < SLOTS - now)[:, None]
    decisions = np.array(situation.rules.choice_minutes) // SLOT_MINUTES
    bounds = sorted({0, *((decisions - now) % SLOTS).tolist(), SLOTS})
    blocks = []
    for begin, end in pairwise(bounds):
        part = slice(begin, end)
        path_kwh = np.cumsum(stored_kwh[:, :, part], axis=2)
        today_kwh = (moved_kwh * before_midnight)[:, :, part].sum(axis=2)
        blocks.append(
            Block(
                lowest_kwh=np.minimum(path_kwh.min(axis=2), 0.0),
                highest_kwh=np.maximum(path_kwh.max(axis=2), 0.0),
                net_kwh=path_kwh[:, :, -1],
                moved_kwh=today_kwh,
                moved_later_kwh=moved_kwh[:, :, part].sum(axis=2) - today_kwh,
                cost=cost[:, :, part].sum(axis=2),
            )
        )
    return blocks


def _column(field: float | FloatArray) -> FloatArray:
    return np.asarray(field)[:, None, None, None]


def _rows(situation: Situation, rows: IntArray) -> Situation:
    battery = Battery(**{name: np.asarray(value)[rows] for name, value in vars(situation.battery).items()})
    return situation._replace(
        battery=battery,
        soc=situation.soc[rows],
        budget_left_kwh=situation.budget_left_kwh[rows],
        minute_of_day=situation.minute_of_day[rows],
        recent=situation.recent[rows],
    )
