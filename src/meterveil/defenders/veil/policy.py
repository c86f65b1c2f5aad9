"""The veil as a policy: hold the meter at a chosen level plus decoys, and count what the battery cannot hide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from meterveil.core import battery as bt
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import GRID, SLOT_MINUTES, Certificate, Rules, Spikes, certificate
from meterveil.core.executor import Command, hold_meter
from meterveil.core.rollout import Trace, View
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.defenders.veil.dice import LOW_SPIKE_MINUTES, LOW_SPIKES_W, Dice, Running
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.situation import (
    SLOTS,
    Decider,
    Diary,
    Situation,
    carried_on,
    complete,
    new_diary,
    quiet_need_kwh,
    record_of,
    shipped_record,
)
from meterveil.errors import InputError

VERSION = 5
"""Raise it when a change alters what this defence does."""

_RECORDED_DAYS = 14
"""Most days that a decider looks back on."""
_REFILL_HOURS = 12.0
"""Time in which a block on the grid brings the charge to the middle of its range."""
_LARGEST_SCORE = 1e100
_WELL_KNOWN = 0.5
"""Smallest share of known minutes of a day that is recorded."""


class Memory(NamedTuple):
    """State of the veil between two minutes."""

    level: IntArray  # (batch,) present choice: number of a level or, beyond them, of an open mode; -1 before the first
    since: IntArray  # (batch,) minutes since it was chosen
    decoys: Running
    spike: IntArray  # (batch,) minutes of the load's spike so far, the one that was decided last included; 0 for none
    spike_w: FloatArray  # (batch,) its height
    level_w: FloatArray  # (batch,) level and decoy of the minute that was decided last; NaN if they do not explain it
    decoy_w: FloatArray
    reserved_kwh: FloatArray  # (batch, half hour) budget that is kept from then on for the quiet hours of the day
    diary: Diary


@dataclass(frozen=True)
class Veil:
    """Policy that shows level plus decoys, whatever the house does."""

    rules: Rules = field(default_factory=Rules)
    decider: Decider = field(default_factory=Planner)
    record: FloatArray | None = None
    """(day, half hour, 1 + M) days that the decider starts from; None for the week that ships."""
    price: tuple[float, ...] = tuple(PAPER_TARIFF.price(np.arange(SLOTS) * SLOT_MINUTES, np.arange(SLOTS)).tolist())
    """Usual price of every half hour."""
    rescue_kwh: float = 0.3
    """A rescue chooses again when less than this is left to charge or discharge; 0 for no rescue."""
    rescue_minutes: int = 60
    """Fewest minutes between a decision and a rescue."""
    quiet_margin: float = 1.4
    """Budget that is kept for the quiet hours of the day, as a multiple of what they usually need."""
    large_w: float = 500.0
    """A load that exceeds the level by more shows on the grid if the quiet hours of the day need the budget."""
    cover: float = 10.0
    """Decoy spikes for each spike of the load in earlier days, as far as `cover_share` of the daily budget allows."""
    cover_share: float = 0.05
    """Largest share of the daily budget that low spikes and their decoys may take."""
    dice: Dice = field(default_factory=Dice)
    """Decoys."""

    def fitted(self, days_w: Sequence[FloatArray], price: FloatArray, battery: Battery) -> Self:
        """Return the veil with the record of the latest of these days, 1440 minutes each.

        Few days are repeated, until later ones replace them. Without a day that is known well it keeps its record.
        `price` is that of every half hour. The grid goes below 0 if one of the days exports, decoys keep the usual
        hours of uses, and decoy spikes cover those of the load. Of several batteries, the least power and budget count.
        """
        self._check_reach(battery)
        known = [load_w for load_w in days_w if np.isfinite(load_w).mean() >= _WELL_KNOWN][-_RECORDED_DAYS:]
        repeated = [known[day % len(known)] for day in range(_RECORDED_DAYS)] if known else []
        record = complete(record_of(np.stack(repeated), self.rules)) if known else self.record
        exports = any(np.nanmin(load_w) < -self.rules.grid_w for load_w in known)
        rules = replace(self.rules, grid_bottom_w=-self.rules.grid_top_w) if exports else self.rules
        dice = self.dice
        if known:
            rules, dice = self._covered(rules, np.stack(known), battery)
            dice = dice.fitted(np.stack(known))
        return replace(self, rules=rules, record=record, price=tuple(price.tolist()), dice=dice)

    def _covered(self, rules: Rules, days_w: FloatArray, battery: Battery) -> tuple[Rules, Dice]:
        """Add low spikes and decoys that cover them, if they take little of the budget."""
        if self.dice.spike_rate or not rules.spike_minutes:
            return rules, self.dice
        menu_w, power_w = np.asarray(rules.menu_w), float(np.min(battery.discharge_w))
        level_w = float(menu_w[np.abs(menu_w - np.nanmean(days_w)).argmin()])
        most_kwh = self.cover_share * float(np.min(battery.budget_kwh))
        dice = self.dice.covering(days_w, level_w, power_w, self.cover, most_kwh)
        return (replace(rules, spike_w=LOW_SPIKES_W) if dice.spike_rate else rules), dice

    def _check_reach(self, battery: Battery) -> None:
        """Refuse a menu with a level that the grid connection never allows, or that an idle house cannot show."""
        lowest_w, charge_w = self.rules.menu_w[0], np.min(battery.charge_w)
        if lowest_w > charge_w:
            raise InputError(
                f"the menu begins at {lowest_w:g} W, above the charging power of {charge_w:g} W: the battery could not "
                "hold it in an empty house; give lower levels"
            )
        top_w, limit_w = self.rules.menu_w[-1], np.min(battery.import_limit_w)
        if top_w > limit_w:
            raise InputError(
                f"the menu reaches {top_w:g} W, above the import limit of {limit_w:g} W; give lower levels"
            )

    def initial(self, batch: int) -> Memory:
        """Return the memory before the first choice."""
        record = shipped_record(self.rules) if self.record is None else self.record
        unset, zero = np.full(batch, -1, dtype=np.int64), np.zeros(batch, dtype=np.int64)
        decoys, nothing_w = self.dice.initial(batch), np.zeros(batch)
        return Memory(
            unset,
            zero,
            decoys,
            zero,
            nothing_w,
            nothing_w,
            nothing_w,
            np.zeros((batch, SLOTS)),
            new_diary(record, batch),
        )

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Hold level plus decoy, or a spike, or else a reading on the grid, or else leave the meter alone.

        In an open block no decoy shows. A spike that dice started is a decoy as high as its difference to the level.
        """
        protected = self.rules.protected(view.minute_of_day)
        scheduled = protected & (self.rules.scheduled(view.minute_of_day) | (memory.level < 0))
        decoys = self.dice.thrown(memory.decoys, view.library, view.minute_of_day, scheduled, view.chance)
        level = self._chosen(view, memory, scheduled, memory.level, draw=True)
        lowest_w, highest_w = _reachable(view)
        late = protected & ~scheduled & (memory.since >= self.rescue_minutes)
        before_w = self.levels_w[level]
        due = self._running_out(view, late, before_w) | (late & self._gives_up(view, before_w, memory.reserved_kwh))
        level = self._chosen(view, memory, due, level)
        level_w = np.where(protected, self.levels_w[level], np.nan)
        decoy_w = self._decoy_w(view, decoys, level_w)
        held_w = level_w + decoy_w
        spike, spike_w = self._spike(view, memory, held_w, lowest_w, highest_w)
        since = np.where(scheduled | due, 0, memory.since + 1)
        reserved_kwh = self._reserved_kwh(view, memory, level, since)
        if self._grid_choice >= 0:
            held_w = np.where(protected & (level == self._grid_choice), self._on_grid_w(view), held_w)
        target_w = self._saving_w(view, held_w, reserved_kwh)
        if np.count_nonzero(spike):
            target_w = np.where(spike > 0, spike_w, target_w)
            level_w = np.where(spike > 0, np.nan, level_w)
        command = self._held(view, target_w, lowest_w, highest_w)
        diary = carried_on(memory.diary, view.load_w, view.minute_of_day, self.rules)
        return command, Memory(level, since, decoys, spike, spike_w, level_w, decoy_w, reserved_kwh, diary)

    def _reserved_kwh(self, view: View, memory: Memory, level: IntArray, since: IntArray) -> FloatArray:
        """Return the budget to keep for the quiet hours, found anew at midnight and in the half hour after a choice."""
        whole = view.minute_of_day % SLOT_MINUTES == 0
        due = whole & ((since <= SLOT_MINUTES) | (view.minute_of_day == 0)) if np.count_nonzero(whole) else whole
        if not np.count_nonzero(due):
            return memory.reserved_kwh
        rows = np.flatnonzero(due)
        known = np.minimum(level[rows], len(self.rules.menu_w) - 1)
        records, record = memory.diary.records, memory.diary.record[rows]
        need_kwh = quiet_need_kwh(records, record, known, view.minute_of_day[rows], self.rules)
        reserved_kwh = memory.reserved_kwh.copy()
        reserved_kwh[rows] = self.quiet_margin * need_kwh
        return reserved_kwh

    def _saving_w(self, view: View, target_w: FloatArray, reserved_kwh: FloatArray) -> FloatArray:
        """Show a large load on the grid where the veil gives it up."""
        gives_up = self._gives_up(view, target_w, reserved_kwh)
        if not np.count_nonzero(gives_up):
            return target_w
        grid_w = self.rules.grid_w
        return np.where(gives_up, np.round(view.load_w / grid_w) * grid_w, target_w)

    def _gives_up(self, view: View, target_w: FloatArray, reserved_kwh: FloatArray) -> BoolArray:
        """Tell where following a large load would take the budget from the quiet hours of the day."""
        large: BoolArray = view.load_w - target_w > self.large_w
        if not np.count_nonzero(large):
            return large
        left_kwh = bt.budget_left_kwh(view.battery, view.state)
        kept_kwh = reserved_kwh[np.arange(len(left_kwh)), view.minute_of_day // SLOT_MINUTES]
        return np.asarray(large & (left_kwh < kept_kwh) & (left_kwh > 0.0))

    def _decoy_w(self, view: View, decoys: Running, level_w: FloatArray) -> FloatArray:
        """Return what the dice add to the level: a signature in whole watts, or what makes a spike of its height.

        A spike below the level, of a battery with little power, does not show.
        """
        if self.dice.off:
            return np.zeros(len(level_w))
        signature_w = np.round(view.library.watts[decoys.signature, decoys.elapsed])
        spike_w = np.minimum(decoys.spike_w, highest_spike_w(view.battery))
        decoy_w = np.where(decoys.spike_left > 0, np.maximum(spike_w - level_w, 0.0), signature_w)
        return np.where(np.isnan(level_w), 0.0, decoy_w)

    def _spike(
        self, view: View, memory: Memory, target_w: FloatArray, lowest_w: FloatArray, highest_w: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Start a spike where the load exceeds target plus battery power, and end it at a public length.

        It begins at the lowest public height that the battery reaches: there a decoy takes least energy. After
        `LOW_SPIKE_MINUTES` it rises to the highest, where the load itself takes least. It goes on to the next public
        length, whatever the load does, and further only if the load still exceeds. Return its minutes and height.
        """
        before, before_w = memory.spike, memory.spike_w
        exceeds = view.load_w - target_w > view.battery.discharge_w
        if not self.rules.spike_minutes or not (np.count_nonzero(exceeds) or np.count_nonzero(before)):
            return before, before_w

        def reached(height_w: float | FloatArray) -> BoolArray:
            return np.asarray((height_w - view.load_w >= lowest_w) & (height_w - view.load_w <= highest_w))

        top_w = np.broadcast_to(highest_spike_w(view.battery), before.shape)
        longest = np.where(before_w < top_w, LOW_SPIKE_MINUTES, self.rules.spike_minutes[-1])
        whole = np.isin(before, self.rules.spike_minutes)
        longer = exceeds & (before < longest) & ((before_w == top_w) | reached(before_w))
        goes_on = (before > 0) & np.where(whole, longer, True) & ~np.isnan(target_w)
        spike_w = top_w
        for height_w in self.rules.spike_w[::-1]:
            spike_w = np.where((before == 0) & (height_w < top_w) & reached(height_w), height_w, spike_w)
        starts = exceeds & reached(spike_w)
        return np.where(goes_on, before + 1, starts.astype(np.int64)), np.where(goes_on, before_w, spike_w)

    def _chosen(self, view: View, memory: Memory, rows: BoolArray, level: IntArray, draw: bool = False) -> IntArray:
        """Choose for some of the households; draw the choice where it is private.

        A decider that rates levels only leaves no block open, except by a private draw.
        """
        if not np.count_nonzero(rows):
            return level
        index = np.flatnonzero(rows)
        situation = Situation(
            self.rules,
            bt.batteries_of(view.battery, index, len(rows)),
            view.state.soc[index],
            bt.budget_left_kwh(view.battery, view.state)[index],
            view.minute_of_day[index],
            memory.diary.records,
            memory.diary.record[index],
            np.asarray(self.price),
            np.broadcast_to(self.dice.mean_w(view.library, highest_spike_w(view.battery)), len(rows))[index],
        )
        scores = self.decider.scores(situation)
        unrated = self.rules.choices - scores.shape[1]
        scores = np.pad(scores, ((0, 0), (0, unrated)), mode="minimum") if unrated else scores
        chosen = level.copy()
        if draw and self.rules.epsilon is not None:
            chosen[index] = drawn(scores, self.rules.epsilon, view.chance[index, 0])
        else:
            chosen[index] = scores.argmax(axis=1)
        return chosen

    @cached_property
    def levels_w(self) -> FloatArray:
        """Level of each choice, (choice + 1,): NaN for open modes, and before the first choice."""
        return np.array([*self.rules.menu_w, *[np.nan] * (len(self.rules.open_modes) + 1)])

    @cached_property
    def _grid_choice(self) -> int:
        """Number of the choice to show the load on the grid; -2 if there is none."""
        modes = self.rules.open_modes
        return len(self.rules.menu_w) + modes.index(GRID) if GRID in modes else -2

    def _on_grid_w(self, view: View) -> FloatArray:
        """Return the reading on the grid that is nearest to the load plus what brings the charge to its middle."""
        battery = view.battery
        lacks_kwh = ((np.asarray(battery.soc_min) + battery.soc_max) / 2.0 - view.state.soc) * battery.capacity_kwh
        wanted_w = view.load_w + lacks_kwh * (1000.0 / _REFILL_HOURS)
        return np.clip(np.round(wanted_w / self.rules.grid_w) * self.rules.grid_w, self.rules.grid_bottom_w, None)

    def _running_out(self, view: View, rows: BoolArray, level_w: FloatArray) -> BoolArray:
        """Tell where, among some households, the SoC range is nearly exhausted in the direction in which it moves."""
        if self.rescue_kwh == 0.0:
            return np.zeros(len(level_w), dtype=np.bool_)
        battery, soc = view.battery, view.state.soc
        request_w = level_w - view.load_w
        left_kwh = np.where(request_w < 0.0, soc - battery.soc_min, battery.soc_max - soc) * battery.capacity_kwh
        near = rows & (left_kwh < self.rescue_kwh)
        if not np.count_nonzero(near):
            return near
        return np.asarray(near & (bt.budget_left_kwh(battery, view.state) > 0.0) & ~np.isnan(request_w))

    def _held(self, view: View, target_w: FloatArray, lowest_w: FloatArray, highest_w: FloatArray) -> Command:
        """Hold the target, else the nearest reading on the grid, else nothing; rest where the target is NaN."""
        request_w = target_w - view.load_w
        follows = (request_w >= lowest_w) & (request_w <= highest_w)
        if np.count_nonzero(follows) == len(follows):
            return hold_meter(view.library, target_w)
        grid_w = self.rules.grid_w
        above_w = np.ceil((view.load_w + lowest_w) / grid_w - 1e-9) * grid_w
        below_w = np.floor((view.load_w + highest_w) / grid_w + 1e-9) * grid_w
        near_w = np.where(request_w < lowest_w, above_w, below_w)
        on_grid = (near_w >= self.rules.grid_bottom_w) & (near_w <= self.rules.grid_top_w)
        lands = ~np.isnan(request_w) & (above_w <= below_w) & on_grid
        held = hold_meter(view.library, np.where(follows, target_w, np.where(lands, near_w, 0.0)))
        return held._replace(hold=follows | lands)


def drawn(scores: FloatArray, epsilon: float, chance: FloatArray) -> IntArray:
    """Draw a choice from scores of any size by the exponential mechanism, (batch, M) -> (batch,)."""
    above = chance[:, None] >= np.cumsum(probabilities(scores, epsilon), axis=1)[:, :-1]
    choice: IntArray = np.sum(above, axis=1, dtype=np.int64)
    return choice


def probabilities(scores: FloatArray, epsilon: float) -> FloatArray:
    """Return the probability of each choice; no history can change one by more than a factor of exp(epsilon).

    The utility of a choice is one minus the share of the scores' spread that it falls short of the best by, so it
    lies between 0 and 1 whatever the load did; a score that is no number counts as the worst.
    """
    scores = np.clip(np.nan_to_num(scores, nan=-_LARGEST_SCORE), -_LARGEST_SCORE, _LARGEST_SCORE)
    best, worst = scores.max(axis=1, keepdims=True), scores.min(axis=1, keepdims=True)
    utility = 1.0 - (best - scores) / np.maximum(best - worst, 1e-9)
    weight = np.exp(epsilon / 2.0 * utility)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _reachable(view: View) -> tuple[FloatArray, FloatArray]:
    """Return the least and the most battery power that every limit allows in this minute, (batch,)."""
    allowed = bt.connection(view.battery, view.load_w) if view.allowed is None else view.allowed
    discharge_w, charge_w = bt.room_w(view.battery, view.state) if view.room is None else view.room
    return np.maximum(allowed.lowest_w, -discharge_w), np.minimum(allowed.highest_w, charge_w)


def highest_spike_w(battery: Battery) -> FloatArray:
    """Return the highest reading of spikes: any load up to twice the battery's power can be brought to it."""
    power_w = np.minimum(np.minimum(battery.charge_w, battery.discharge_w), battery.import_limit_w)
    return np.asarray(np.floor(power_w), dtype=np.float64)


class Logged:
    """Policy that logs the levels and decoys of a veil, for its certificate."""

    def __init__(self, veil: Veil) -> None:
        self.veil = veil
        self.log: list[tuple[IntArray, FloatArray, IntArray, FloatArray]] = []
        self.highest_w: float | FloatArray = 0.0

    def initial(self, batch: int) -> Memory:
        """Return the memory of the veil."""
        self.log = []
        return self.veil.initial(batch)

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        """Let the veil decide."""
        command, memory = self.veil.decide(view, memory)
        if not self.log:
            self.highest_w = highest_spike_w(view.battery).reshape(-1, 1)
        self.log.append((memory.level, memory.decoy_w, memory.spike, memory.spike_w))
        return command, memory

    def certificate(self, scenario: Scenario, trace: Trace) -> Certificate:
        """Certify the days of the rollout that was logged."""
        level, decoy_w, spike, spike_w = (np.stack(column, axis=1) for column in zip(*self.log, strict=True))
        minute = np.arange(scenario.horizon)
        day = np.where(minute < scenario.minutes[:, None], scenario.day[:, scenario.lead :], -1)
        clock = scenario.minute_of_day[:, scenario.lead :]
        level_w = np.where(self.veil.rules.protected(clock), self.veil.levels_w[level], np.nan)
        spikes = Spikes(spike.astype(np.int64), spike_w, self.highest_w)
        return certificate(self.veil.rules, trace.meter_w, level_w, decoy_w, clock, day, spikes)
