"""Planner: value the charge and the budget at each coming decision from recent days, and choose what costs least.

The value of a state is found backwards in time (stochastic dynamic programming): a block costs its energy, its wear
and its misses, averaged over the recent days, plus the value of the state in which it ends, where the next level is
chosen anew.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import SLOT_MINUTES
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.defenders.veil.situation import SLOTS, Situation

_HOURS = SLOT_MINUTES / 60.0
_ENDLESS_KWH = 1000.0
"""Budget that counts as unlimited."""
_HOUSEHOLDS = 8
"""Households that are planned at a time, so that their arrays fit into the processor's cache."""


class Course(NamedTuple):
    """What holding each level does up to each half hour of recent days, (batch, M, day, 1 + half hour) each."""

    stored_kwh: FloatArray
    moved_kwh: FloatArray
    cost: FloatArray
    veiled_hours: FloatArray  # those in which a miss counts, (1, 1, 1, 1 + half hour)


class Range(NamedTuple):
    """Stored energy that a plan may use, in steps of the value's grid; one entry per household."""

    low_kwh: FloatArray
    step_kwh: FloatArray
    steps: int


class Outlook(NamedTuple):
    """Coming block, and what the states at its end are worth."""

    value: FloatArray  # (batch, budget, M, SoC)
    block: Course
    full_kwh: FloatArray  # (batch, 1) budget of a day
    usable: Range


@dataclass(frozen=True)
class Planner:
    """Decider that minimises the mean cost of the coming days, with a new choice at every decision."""

    hour_cost: float = 0.2
    """Cost of an hour that the budget leaves open."""
    kwh_cost: float = 0.6
    """Cost of each kWh that the SoC range lacks."""
    rescue_cost: float = 0.1
    """Cost of a rescue: paid where a plan uses the reserve of the SoC range."""
    reserve_kwh: float = 0.3
    """Part of the SoC range at each end, and of the budget, that a plan should not use."""
    days: int = 2
    """Days to look ahead."""
    soc_steps: int = 16
    budget_steps: int = 8

    def scores(self, situation: Situation) -> FloatArray:
        """Rate each level by the mean cost of the coming days that begin with it."""
        scores = np.empty((len(situation.soc), len(situation.rules.menu_w)))
        slot = situation.minute_of_day // SLOT_MINUTES
        for now in np.unique(slot):
            rows = np.flatnonzero(slot == now)
            for first in range(0, len(rows), _HOUSEHOLDS):
                part = rows[first : first + _HOUSEHOLDS]
                scores[part] = -self._cost(rows_of(situation, part), int(now))
        return scores

    def grid_costs(self, situation: Situation) -> FloatArray:
        """Return the mean cost of the coming days on a grid, (batch, 1 + budget steps, M, 1 + SoC steps).

        Charge and budget of the situation do not matter; all its households choose at the same time of day.
        """
        outlook = self._outlook(situation, int(situation.minute_of_day[0]) // SLOT_MINUTES)
        return self._before(*outlook[:2], self._budgets_kwh(outlook.full_kwh), *outlook[2:])

    def _cost(self, situation: Situation, now: int) -> FloatArray:
        """Return the mean cost of the coming days for each first level, (batch, M)."""
        value, block, full_kwh, usable = self._outlook(situation, now)
        start = (situation.soc * situation.battery.capacity_kwh - usable.low_kwh) / usable.step_kwh
        left_kwh = situation.budget_left_kwh[:, None]
        return np.asarray(self._before(value, block, left_kwh, full_kwh, usable, start)[:, 0, :, 0])

    def _outlook(self, situation: Situation, now: int) -> Outlook:
        """Value the states at the end of the coming block, backwards from the end of the plan."""
        battery, course = situation.battery, _course(situation)
        low_kwh, high_kwh = (np.asarray(end) * battery.capacity_kwh for end in (battery.soc_min, battery.soc_max))
        usable = Range(low_kwh, np.maximum(high_kwh - low_kwh, 1e-3) / self.soc_steps, self.soc_steps)
        full_kwh = np.minimum(np.asarray(battery.budget_kwh), _ENDLESS_KWH)[:, None]
        times = {minute // SLOT_MINUTES for minute in situation.rules.choice_minutes}
        ahead = range(now + 1, now + self.days * SLOTS)
        bounds = [now, *(slot for slot in ahead if slot % SLOTS in times or slot % SLOTS == 0), ahead.stop]
        stored_kwh = usable.step_kwh[:, None] * np.arange(self.soc_steps + 1)
        value = (-situation.price.min() - DEGRADATION_PER_KWH) * stored_kwh[:, None, None]  # (batch, budget, M, SoC)
        value = np.repeat(value, len(situation.rules.menu_w), axis=2)
        for begin, end in zip(bounds[-2:0:-1], bounds[:1:-1], strict=True):
            budget_kwh = full_kwh if begin % SLOTS == 0 else self._budgets_kwh(full_kwh)
            value = self._before(value, _block(course, begin, end), budget_kwh, full_kwh, usable)
            if begin % SLOTS in times:
                value = np.broadcast_to(value.min(axis=2, keepdims=True), value.shape)
        return Outlook(value, _block(course, now, bounds[1]), full_kwh, usable)

    def _budgets_kwh(self, full_kwh: FloatArray) -> FloatArray:
        return full_kwh * np.linspace(0.0, 1.0, self.budget_steps + 1)

    def _before(
        self,
        value: FloatArray,
        block: Course,
        budget_kwh: FloatArray,
        full_kwh: FloatArray,
        usable: Range,
        start: FloatArray | None = None,
    ) -> FloatArray:
        """Return the value before a block, (batch, budget, M, SoC), from that after it; at one SoC if it is given."""
        net_kwh, left_kwh, cost = self._block_end(block, budget_kwh)  # (batch, budget, M, day)
        soc = np.arange(usable.steps + 1.0)[None] if start is None else start[:, None]
        after = net_kwh / _wide(usable.step_kwh) + (0.0 if start is None else _wide(start))
        pad = int(np.abs(after).max()) + 2
        ends = value[..., :1], value[..., -1:]
        wide = np.concatenate([np.repeat(ends[0], pad, -1), value, np.repeat(ends[1], pad, -1)], axis=-1)
        windows = np.lib.stride_tricks.sliding_window_view(wide, soc.shape[1] + 1, axis=-1)
        whole = np.floor(after).astype(np.int64)
        household, level = np.ogrid[: len(value), : value.shape[2]]
        step_kwh = np.maximum(full_kwh / max(value.shape[1] - 1, 1), 1e-9)
        position = np.minimum(left_kwh / _wide(step_kwh[:, 0]), value.shape[1] - 1.0)
        row = np.minimum(position.astype(np.int64), max(value.shape[1] - 2, 0))
        total = cost.mean(axis=3)[..., None] + self._lacking(block, soc, usable)[:, None]
        upper = position - row
        for step, weight in ((0, 1.0 - upper), (1, upper))[: value.shape[1]]:
            later = windows[household[:, None, :, None], row + step, level[:, None, :, None], whole + pad]
            share = weight * (after - whole)
            mean = np.stack([weight - share, share], axis=3) @ later / later.shape[3]  # (batch, budget, M, 2, SoC + 1)
            total = total + mean[..., 0, :-1] + mean[..., 1, 1:]
        return np.asarray(total)

    def _block_end(self, block: Course, budget_kwh: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return net energy, budget left and cost of a block, (batch, budget, M, day) each."""
        budget_kwh = budget_kwh[:, :, None, None]
        covered = np.sum(block.moved_kwh[:, None, ..., 1:] <= budget_kwh[..., None], axis=4)  # half hours
        net_kwh, cost, hours = (
            np.take_along_axis(np.broadcast_to(part, block.cost.shape)[:, None], covered[..., None], axis=4)[..., 0]
            for part in (block.stored_kwh, block.cost, block.veiled_hours)
        )
        left_kwh = np.maximum(budget_kwh - block.moved_kwh[:, None, ..., -1], 0.0)
        reserve_kwh = np.maximum(self.reserve_kwh - left_kwh, 0.0)
        missed_hours = block.veiled_hours[..., -1] - hours
        return net_kwh, left_kwh, cost + self.hour_cost * (missed_hours + 0.5 * reserve_kwh)

    def _lacking(self, block: Course, soc: FloatArray, usable: Range) -> FloatArray:
        """Return the mean cost of what the SoC range lacks within a block, (batch, M, SoC)."""
        start_kwh = (usable.step_kwh[:, None] * soc)[:, None, None]  # (batch, 1, 1, SoC)
        lowest_kwh = start_kwh + block.stored_kwh.min(axis=3)[..., None]
        highest_kwh = start_kwh + block.stored_kwh.max(axis=3)[..., None]
        room_kwh = np.minimum(lowest_kwh, _wide(usable.step_kwh) * usable.steps - highest_kwh)
        rescued = np.clip(1.0 - room_kwh / max(self.reserve_kwh, 1e-9), 0.0, 1.0)
        lacking_cost = self.kwh_cost * np.maximum(-room_kwh, 0.0) + self.rescue_cost * rescued
        return np.asarray(lacking_cost.mean(axis=2))


def _course(situation: Situation) -> Course:
    """Add up stored energy, moved energy and cost of recent days from midnight on."""
    battery = situation.battery
    recent = np.moveaxis(situation.recent, 3, 1)  # (batch, 1 + M, day, half hour)
    decoys_kwh = situation.decoy_w * (_HOURS / 1000.0)
    levels_w = np.asarray(situation.rules.menu_w)[:, None, None]
    veiled = situation.rules.protected(np.arange(SLOTS) * SLOT_MINUTES)  # in the other hours the battery rests
    added_kwh = ((levels_w - recent[:, :1]) * (_HOURS / 1000.0) + decoys_kwh) * veiled
    moved_kwh = (recent[:, 1:] + decoys_kwh) * veiled
    charge_kwh, discharge_kwh = (moved_kwh + added_kwh) / 2.0, (moved_kwh - added_kwh) / 2.0
    stored_kwh = charge_kwh * _wide(battery.charge_efficiency) - discharge_kwh / _wide(battery.discharge_efficiency)
    cost = added_kwh * situation.price + moved_kwh * DEGRADATION_PER_KWH
    hours = (veiled * _HOURS)[None, None, None]
    sums = (np.insert(part.cumsum(axis=3), 0, 0.0, axis=3) for part in (stored_kwh, moved_kwh, cost, hours))
    return Course(*sums)


def _block(course: Course, begin: int, end: int) -> Course:
    """Cut out a block within one day, from its own beginning on; times count half hours from some midnight."""
    first, last = begin % SLOTS, (end - 1) % SLOTS + 1
    return Course(*(part[..., first : last + 1] - part[..., first : first + 1] for part in course))


def _wide(field: float | FloatArray) -> FloatArray:
    """Align one number per household with three more dimensions."""
    return np.asarray(field)[:, None, None, None]


def rows_of(situation: Situation, rows: IntArray) -> Situation:
    """Return some households of a situation."""
    battery = Battery(
        **{part.name: np.asarray(getattr(situation.battery, part.name))[rows] for part in fields(Battery)}
    )
    return situation._replace(
        battery=battery,
        soc=situation.soc[rows],
        budget_left_kwh=situation.budget_left_kwh[rows],
        minute_of_day=situation.minute_of_day[rows],
        recent=situation.recent[rows],
    )
