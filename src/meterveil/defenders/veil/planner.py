"""Planner: value the charge and the budget at each coming decision from recent days, and choose what costs least.

The value of a state is found backwards in time (stochastic dynamic programming): a block costs its energy, its wear
and its misses, averaged over the recent days, plus the value of the state in which it ends, where the next level is
chosen anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import batteries_of
from meterveil.core.certificate import SLOT_MINUTES
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.defenders.veil.situation import SLOTS, Situation, alike

_HOURS = SLOT_MINUTES / 60.0
_ENDLESS_KWH = 1000.0
"""Budget that counts as unlimited."""
_HOUSEHOLDS = 64
"""Households that are planned at a time, a bound on memory."""


class Course(NamedTuple):
    """What holding each level does up to each half hour of recent days, (1 + half hour, course, M, day) each."""

    number: IntArray  # (batch,) course of each household: those with the same recent days share one
    stored_kwh: FloatArray
    moved_kwh: FloatArray
    cost: FloatArray
    veiled_hours: FloatArray  # those in which a miss counts, (1 + half hour,)


class Range(NamedTuple):
    """Stored energy that a plan may use, in steps of the value's grid; one entry per household."""

    low_kwh: FloatArray
    step_kwh: FloatArray
    steps: int


class Block(NamedTuple):
    """Cost and end of a block on each recent day, from some budgets and states of charge.

    Where a day takes more than the budget, the battery rests from then on: these cases are listed.
    """

    cost: FloatArray  # (batch, M, budget, SoC) mean over days
    gain: FloatArray  # (batch, M, day) steps of SoC, if the budget lasts
    row: IntArray  # (batch, M, day) row of the value's budgets that the first budget ends in, below 0 if it is used up
    above: FloatArray  # (batch, M, day) how far it ends above this row, 0..1; 0 if all budgets are used up
    cut: tuple[IntArray, ...]  # household, level, budget and day of the listed cases, (case,) each
    cut_gain: FloatArray  # (case,) steps of SoC


class Ahead(NamedTuple):
    """Coming block, and what the states at its end are worth."""

    value: FloatArray  # (batch, M or 1, budget, SoC)
    course: Course
    hours: tuple[int, int]  # first half hour of the block, and the one after its last
    budgets_kwh: FloatArray  # (batch, budget)
    full_kwh: FloatArray  # (batch, 1) budget of a day
    usable: Range
    soc: FloatArray  # (1, SoC) steps of the grid


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
                scores[part] = -self._cost(situation if len(part) == len(slot) else rows_of(situation, part), int(now))
        return scores

    def grid_costs(self, situation: Situation) -> FloatArray:
        """Return the mean cost of the coming days on a grid, (batch, 1 + budget steps, M, 1 + SoC steps).

        Charge and budget of the situation do not matter; all its households choose at the same time of day.
        """
        ahead = self._ahead(situation, int(situation.minute_of_day[0]) // SLOT_MINUTES)
        block = self._block(ahead.course, ahead.hours, ahead.budgets_kwh, ahead.full_kwh, ahead.usable, ahead.soc)
        return _before(ahead.value, block, self.soc_steps + 1).swapaxes(1, 2)

    def _cost(self, situation: Situation, now: int) -> FloatArray:
        """Return the mean cost of the coming days for each first level, (batch, M)."""
        kinds, same = _alike(situation)
        repeated = len(kinds) < len(same)
        planned = rows_of(situation, kinds) if repeated else situation
        value, course, hours, _, full_kwh, usable, _ = self._ahead(planned, now)
        if repeated:
            value, full_kwh, course = value[same], full_kwh[same], course._replace(number=course.number[same])
            usable = Range(usable.low_kwh[same], usable.step_kwh[same], usable.steps)
        start = ((situation.soc * situation.battery.capacity_kwh - usable.low_kwh) / usable.step_kwh)[:, None]
        block = self._block(course, hours, situation.budget_left_kwh[:, None], full_kwh, usable, start)
        ends = block._replace(gain=block.gain + start[..., None], cut_gain=block.cut_gain + start[block.cut[0], 0])
        return np.asarray(_before(value, ends, 1)[:, :, 0, 0])

    def _ahead(self, situation: Situation, now: int) -> Ahead:
        """Value the states at the end of the coming block, backwards from the end of the plan."""
        battery, course = situation.battery, _course(situation)
        low_kwh, high_kwh = (np.asarray(end) * battery.capacity_kwh for end in (battery.soc_min, battery.soc_max))
        usable = Range(low_kwh, np.maximum(high_kwh - low_kwh, 1e-3) / self.soc_steps, self.soc_steps)
        full_kwh = np.minimum(np.asarray(battery.budget_kwh), _ENDLESS_KWH)[:, None]
        budgets_kwh = full_kwh * np.linspace(0.0, 1.0, self.budget_steps + 1)
        times = {minute // SLOT_MINUTES for minute in situation.rules.choice_minutes}
        ahead = range(now + 1, now + self.days * SLOTS)
        bounds = [now, *(slot for slot in ahead if slot % SLOTS in times or slot % SLOTS == 0), ahead.stop]
        soc = np.arange(self.soc_steps + 1.0)[None]
        value = (-situation.price.min() - DEGRADATION_PER_KWH) * (usable.step_kwh[:, None] * soc)[:, None, None]
        blocks: dict[tuple[int, int], Block] = {}  # the days ahead repeat them
        for begin, end in zip(bounds[-2:0:-1], bounds[:1:-1], strict=True):
            hours = begin % SLOTS, (end - 1) % SLOTS + 1
            if hours not in blocks:
                blocks[hours] = self._block(course, hours, budgets_kwh if hours[0] else full_kwh, full_kwh, usable, soc)
            value = _before(value, blocks[hours], self.soc_steps + 1)
            if hours[0] in times:
                value = value.min(axis=1, keepdims=True)
        hours = now % SLOTS, (bounds[1] - 1) % SLOTS + 1
        return Ahead(value, course, hours, budgets_kwh, full_kwh, usable, soc)

    def _block(
        self,
        course: Course,
        hours: tuple[int, int],
        budget_kwh: FloatArray,
        full_kwh: FloatArray,
        usable: Range,
        soc: FloatArray,
    ) -> Block:
        """Play the half hours of a block on recent days, from each of these budgets and states of charge."""
        first, last = hours
        number, *sums, veiled_hours = course
        stored_kwh, moved_kwh, cost = ((part[last] - part[first])[number] for part in sums)  # (batch, M, day)
        budgets = np.arange(budget_kwh.shape[1])
        ends_at = (budget_kwh[:, :1, None] - moved_kwh) / np.maximum(full_kwh / self.budget_steps, 1e-9)[..., None]
        ends_at = np.minimum(np.maximum(ends_at, -1.0 - len(budgets)), self.budget_steps + 1.0 - len(budgets))
        row = np.floor(ends_at).astype(np.int64)
        left_kwh = np.maximum(budget_kwh[:, None, :, None] - moved_kwh[:, :, None], 0.0)  # (batch, M, budget, day)
        costs = np.maximum(self.reserve_kwh - left_kwh, 0.0) * (0.5 * self.hour_cost) + cost[:, :, None]
        cut = household, level, budget, day = np.nonzero(row[:, :, None] < -budgets[:, None])
        case = (number[household] * cost.shape[1] + level) * cost.shape[2] + day
        until = _last_within(course, hours, case, budget_kwh[household, budget])
        ended = until * course.cost[0].size + case
        missed_hours = veiled_hours[last] - veiled_hours[until]
        open_cost = self.hour_cost * (missed_hours + 0.5 * self.reserve_kwh)
        costs[cut] = course.cost.take(ended) - course.cost[first].take(case) + open_cost
        cut_gain = (course.stored_kwh.take(ended) - course.stored_kwh[first].take(case)) / usable.step_kwh[household]
        within_kwh = course.stored_kwh[first : last + 1]
        ends_kwh = within_kwh.min(axis=0), within_kwh.max(axis=0)
        lowest_kwh, highest_kwh = ((end_kwh - within_kwh[0])[number] for end_kwh in ends_kwh)
        total = _mean(costs)[..., None] + self._lacking(lowest_kwh, highest_kwh, soc, usable)[:, :, None]
        above = np.where(row > -len(budgets), ends_at - row, 0.0)
        return Block(total, stored_kwh / usable.step_kwh[:, None, None], row, above, cut, cut_gain)

    def _lacking(self, lowest_kwh: FloatArray, highest_kwh: FloatArray, soc: FloatArray, usable: Range) -> FloatArray:
        """Return the mean cost of what the SoC range lacks within a block, (batch, M, SoC)."""
        start_kwh = (usable.step_kwh[:, None] * soc)[:, None, :, None]  # (batch, 1, SoC, 1)
        room_kwh = (_wide(usable.step_kwh) * usable.steps - start_kwh) - highest_kwh[:, :, None]
        np.minimum(room_kwh, start_kwh + lowest_kwh[:, :, None], out=room_kwh)
        lacking_kwh = np.minimum(room_kwh, 0.0)
        rescued = np.minimum(np.maximum(1.0 - room_kwh / max(self.reserve_kwh, 1e-9), 0.0), 1.0)
        return self.rescue_cost * _mean(rescued) - self.kwh_cost * _mean(lacking_kwh)


def _before(value: FloatArray, block: Block, columns: int) -> FloatArray:
    """Return the value before a block, (batch, M, budget, SoC), at so many states of charge, from that after it.

    The value after it has one level if the next is chosen anew, and one budget if a new day begins.
    """
    if value.shape[2] == 1:
        shape = *block.cost.shape[:3], block.gain.shape[2]
        gain = np.broadcast_to(block.gain[:, :, None], shape).copy()
        gain[block.cut] = block.cut_gain
        cell = np.repeat(np.arange(gain.size // shape[3]), shape[3])
        return block.cost + _at_lowest(value, block, cell, gain.ravel(), np.ones(gain.size), columns)
    household, level, budget, _ = block.cut
    cells = np.arange(block.cost[..., 0].size).reshape(block.cost.shape[:3])
    edge = np.nonzero((block.row < 0) & (block.above > 0.0))  # there `_at_rows` counts a part of row 0
    cell = np.concatenate([cells[household, level, budget], cells[edge[0], edge[1], -1 - block.row[edge]]])
    gain = np.concatenate([block.cut_gain, block.gain[edge]])
    weight = np.concatenate([np.ones(len(household)), -block.above[edge]])
    return block.cost + _at_lowest(value, block, cell, gain, weight, columns) + _at_rows(value, block, columns)


def _at_lowest(
    value: FloatArray, block: Block, cell: IntArray, gain: FloatArray, weight: FloatArray, columns: int
) -> FloatArray:
    """Return the mean value of cases that end in the lowest row of budgets, by their cell of (batch, M, budget)."""
    steps, shape = value.shape[3], block.cost.shape[:3]
    whole = np.floor(gain)
    place = cell * (2 * steps + 2) + _moves(whole, steps)
    share = weight * (gain - whole)
    size = block.cost[..., 0].size * (2 * steps + 2)
    mass = np.bincount(place, weight - share, size) + np.bincount(place + 1, share, size)
    mean = mass.reshape(*value.shape[:2], -1, 2 * steps + 2) @ _windows(value[:, :, 0], columns, 1)
    return np.asarray(mean.reshape(*shape, columns) / block.gain.shape[2])


def _at_rows(value: FloatArray, block: Block, columns: int) -> FloatArray:
    """Return the mean value of cases that end between two rows of budgets, 0 below the lowest."""
    (batch, levels, days), budgets = block.gain.shape, block.cost.shape[2]
    rows, steps = value.shape[2:]
    padded = np.zeros((*value.shape[:2], rows + 2, steps))
    padded[:, :, 1:-1] = value
    table = _windows(padded, columns + 1)
    row = np.minimum(np.maximum(block.row[..., None] + np.arange(1, budgets + 2), 0), rows + 1)
    whole = np.floor(block.gain)
    place = np.arange(batch)[:, None] * value.shape[1] + np.arange(levels) % value.shape[1]
    place = (place[..., None] * ((rows + 2) * (2 * steps + 1)))[..., None] + row * (2 * steps + 1)
    place += _moves(whole, steps)[..., None]
    later = table.reshape(-1, columns + 1).take(place, axis=0).reshape(batch, levels, days, -1)
    share, above = block.gain - whole, block.above
    both = share * above
    weights = np.stack([1.0 - above - share + both, share - both, above - both, both], axis=2)
    mean = (weights @ later).reshape(batch, levels, 4, budgets + 1, columns + 1)
    lower = mean[:, :, 0, :-1, :-1] + mean[:, :, 1, :-1, 1:]
    return np.asarray((lower + mean[:, :, 2, 1:, :-1] + mean[:, :, 3, 1:, 1:]) / days)


def _moves(gain: FloatArray, steps: int) -> IntArray:
    """Return the number of the move of `_windows` for each gain in whole steps."""
    return np.minimum(np.maximum(gain, -steps), steps).astype(np.int64) + steps


def _windows(value: FloatArray, columns: int, more: int = 0) -> FloatArray:
    """Return columns of the value, moved by -steps .. steps + more places, (..., move, column); its ends go on."""
    steps = value.shape[-1]
    return value.take(_window_places(steps, columns, 2 * steps + 1 + more), axis=-1)


@lru_cache(maxsize=16)
def _window_places(steps: int, columns: int, moves: int) -> IntArray:
    """Return the place of each column of each move in the value, (move, column)."""
    place = np.arange(moves)[:, None] + np.arange(columns) - steps
    return np.asarray(np.minimum(np.maximum(place, 0), steps - 1), dtype=np.int64)


def _last_within(course: Course, hours: tuple[int, int], case: IntArray, budget_kwh: FloatArray) -> IntArray:
    """Find the half hour of a block up to which the budget of a case lasts."""
    first, last = hours
    moved_kwh = course.moved_kwh.reshape(len(course.moved_kwh), -1)
    lasts = moved_kwh[first + 1 : last + 1].take(case, axis=1) <= budget_kwh + moved_kwh[first].take(case)
    return np.asarray(first + np.count_nonzero(lasts, axis=0))


def _mean(by_day: FloatArray) -> FloatArray:
    """Return the mean over days, the last axis."""
    return np.asarray(by_day @ np.full(by_day.shape[-1], 1.0 / by_day.shape[-1]))


def _course(situation: Situation) -> Course:
    """Add up stored energy, moved energy and cost of recent days from midnight on."""
    efficiencies = np.asarray(situation.battery.charge_efficiency), np.asarray(situation.battery.discharge_efficiency)
    decoy_w = np.broadcast_to(situation.decoy_w, len(situation.soc))
    first, number = alike(situation.record, *efficiencies, decoy_w)
    recent = situation.records[situation.record[first]]
    recent = np.ascontiguousarray(recent.transpose(2, 0, 3, 1))  # (half hour, course, 1 + M, day)
    decoys_kwh = decoy_w[first, None, None] * (_HOURS / 1000.0)
    levels_w = np.asarray(situation.rules.menu_w)[:, None]
    # in the other hours the battery rests
    veiled = np.asarray(situation.rules.protected(np.arange(SLOTS) * SLOT_MINUTES), dtype=np.float64)
    added_kwh = ((levels_w - recent[:, :, :1]) * (_HOURS / 1000.0) + decoys_kwh) * _wide(veiled)
    moved_kwh = (recent[:, :, 1:] + decoys_kwh) * _wide(veiled)
    charge, discharge = (part[first, None, None] / 2.0 for part in (efficiencies[0], 1.0 / efficiencies[1]))
    stored_kwh = added_kwh * (charge + discharge) + moved_kwh * (charge - discharge)
    cost = added_kwh * _wide(situation.price) + moved_kwh * DEGRADATION_PER_KWH
    return Course(number, *map(_sums, (stored_kwh, moved_kwh, cost, veiled * _HOURS)))


def _sums(parts: FloatArray) -> FloatArray:
    """Add up along the first axis, from 0 on; much faster than `cumsum`."""
    sums = np.zeros((len(parts) + 1, *parts.shape[1:]))
    for n, part in enumerate(parts):
        np.add(sums[n], part, out=sums[n + 1, ...])
    return sums


def _wide(field: float | FloatArray) -> FloatArray:
    """Align one number per household, or per half hour, with three more dimensions."""
    return np.asarray(field)[:, None, None, None]


def _alike(situation: Situation) -> tuple[IntArray, IntArray]:
    """Return the first household of each kind that is planned alike, and the kind of every household.

    The value of a state depends on the battery's power by its decoys alone, and not on its present charge and budget.
    """
    names = ("capacity_kwh", "soc_min", "soc_max", "budget_kwh", "charge_efficiency", "discharge_efficiency")
    decoy_w = np.broadcast_to(situation.decoy_w, len(situation.soc))
    return alike(situation.record, decoy_w, *(getattr(situation.battery, name) for name in names))


def rows_of(situation: Situation, rows: IntArray) -> Situation:
    """Return some households of a situation."""
    return situation._replace(
        battery=batteries_of(situation.battery, rows, len(situation.soc)),
        soc=situation.soc[rows],
        budget_left_kwh=situation.budget_left_kwh[rows],
        minute_of_day=situation.minute_of_day[rows],
        record=situation.record[rows],
        decoy_w=np.broadcast_to(situation.decoy_w, len(situation.soc))[rows],
    )
