"""Days of a DDQL epoch, in which a Q-network acts with random exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meterveil.core import battery as bt
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState, Connection
from meterveil.core.env import seen
from meterveil.core.scenario import Scenario
from meterveil.defenders.ddql.ddql_policy import QPolicy
from meterveil.defenders.ddql.q_learner import Float32Array
from meterveil.defenders.training_settings import DdqlSettings

_NEAR_STEPS = 6.0
"""Standard deviation of random actions near the best one, in actions."""


class Days(NamedTuple):
    """Days of an epoch, (minute, slot) each."""

    load_w: FloatArray
    minute_of_day: IntArray
    day: IntArray
    price: FloatArray
    minutes: IntArray  # (slot,) length of each day


class Played(NamedTuple):
    """Record of a block, (minute, slot)."""

    load_w: FloatArray
    price: FloatArray
    observation: Float32Array  # (minute + 1, slot, 6): the last one follows the block
    action: IntArray
    power_w: FloatArray
    over: BoolArray  # last minute of the day


def days_of(scenario: Scenario, rows: IntArray) -> Days:
    """Return these rows minute by minute."""
    picked = scenario.rows(rows)
    load_w, price = (_laid(picked, part) for part in (picked.load_w, picked.price))
    clock, day = (_laid(picked, part).astype(np.int64) for part in (picked.minute_of_day, picked.day))
    return Days(load_w, clock, day, price, picked.minutes)


def explore_chance(settings: DdqlSettings, epoch: int) -> float:
    """Return the probability of a random action in an epoch."""
    passed = epoch / max(settings.epochs * settings.explore_share, 1e-9)
    return max(1.0 - passed, settings.explore_least)


@dataclass(frozen=True)
class Player:
    """Simulation of one epoch with exploration."""

    battery: Battery
    settings: DdqlSettings
    days: Days
    explore: float

    def initial(self, rng: np.random.Generator) -> BatteryState:
        """Begin every day with a random SoC."""
        slots = self.days.load_w.shape[1]
        return BatteryState(self._any_soc(slots, rng), np.zeros(slots))

    def restarted(self, state: BatteryState, rng: np.random.Generator) -> BatteryState:
        """Give some batteries a random SoC and budget, so that every hour is seen with all of them."""
        slots = len(state.soc)
        again, soc = rng.random(slots) < self.settings.restart_share, self._any_soc(slots, rng)
        spent_kwh = rng.random(slots) * np.minimum(self.battery.budget_kwh, 1e6)
        return BatteryState(np.where(again, soc, state.soc), np.where(again, spent_kwh, state.moved_kwh))

    def block(
        self, state: BatteryState, policy: QPolicy, begin: int, rng: np.random.Generator
    ) -> tuple[BatteryState, Played]:
        """Act through a block of minutes."""
        days, block = self.days, slice(begin, begin + self.settings.block_minutes)
        load_w = days.load_w[block]
        observations, actions, powers = [self._seen(state, begin)], [], []
        for now, allowed in enumerate(map(Connection, *bt.connection(self.battery, load_w)), begin + 1):
            action = self._chosen(policy, observations[-1], rng)
            state, delivery = bt.deliver(self.battery, state, policy.powers_w[action], allowed)
            after = min(now, len(days.load_w) - 1)
            state = bt.start_day(state, days.day[after] != days.day[after - 1])
            observations.append(self._seen(state, after))
            actions.append(action)
            powers.append(delivery.power_w)
        over = begin + np.arange(len(load_w))[:, None] >= days.minutes - 1
        stacks = np.stack(observations), np.stack(actions), np.stack(powers)
        return state, Played(load_w, days.price[block], *stacks, over)

    def _any_soc(self, slots: int, rng: np.random.Generator) -> FloatArray:
        share = rng.random(slots)
        return self.battery.soc_min * (1.0 - share) + self.battery.soc_max * share

    def _seen(self, state: BatteryState, now: int) -> Float32Array:
        days = self.days
        return seen(self.battery, state, days.load_w[now], days.minute_of_day[now], days.price[now])

    def _chosen(self, policy: QPolicy, observation: Float32Array, rng: np.random.Generator) -> IntArray:
        """Take the best action or, at random, any action or one near the best."""
        slots, last = len(observation), len(policy.powers_w) - 1
        best = np.argmax(policy.values(observation.astype(np.float64)), axis=1)
        chance, anywhere = rng.random((2, slots)), rng.integers(last + 1, size=slots)
        near = np.clip(best + np.rint(rng.normal(0.0, _NEAR_STEPS, slots)).astype(np.int64), 0, last)
        other = np.where(chance[1] < self.settings.near_share, near, anywhere)
        return np.where(chance[0] < self.explore, other, best)


def _laid(scenario: Scenario, part: FloatArray | IntArray) -> FloatArray:
    return np.ascontiguousarray(part[:, scenario.lead :].T)
