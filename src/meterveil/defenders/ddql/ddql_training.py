"""Training of a DDQL defence: many parallel days, with updates of the networks after every two hours.

The reward of a minute is a privacy reward (`ddql_rewards`) minus the cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meterveil.core import battery as bt
from meterveil.core import tariff
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState, Connection
from meterveil.core.env import seen
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders.ddql import q_learner
from meterveil.defenders.ddql.ddql_rewards import REWARDS, PrivacyReward
from meterveil.defenders.ddql.q_learner import Float32Array, Learner, Minutes, Replay, Scale
from meterveil.defenders.run_folder import (
    CHECKPOINT,
    TrainedRun,
    finish_run,
    own_randomness,
    run_document,
    training_key,
    write_run,
)
from meterveil.defenders.trained_policies import QPolicy
from meterveil.defenders.training_days import Trained, training_figures, training_scenario
from meterveil.defenders.training_settings import DdqlSettings
from meterveil.errors import InputError

_NEAR_STEPS = 6.0
"""Standard deviation of random actions near the best one, in actions."""


@dataclass(frozen=True)
class Epoch:
    """State of a training after an epoch; means over its minutes."""

    days: int
    """Days simulated so far."""
    reward: float
    privacy: float
    """Privacy reward: minus kW from the level (flat), or nats of surprise (MI)."""
    loss: float
    signal_loss: float
    """Loss of the H-network (MI)."""


def learn(
    household: Household,
    days: Sequence[date],
    setup: Setup,
    settings: DdqlSettings,
    folder: Path,
    notes: Mapping[str, Any] | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> TrainedRun:
    """Train a defence for a household in a run folder, or continue the training there."""
    scenario = training_scenario(household, days, setup)
    check(setup.battery, scenario)
    document = run_document(settings, household, days, setup, notes)
    write_run(folder, document)
    trained = train(settings, setup, scenario, folder, on_epoch)
    figures = training_figures(trained.policy, scenario, setup) | {"training_seconds": trained.seconds}
    curve = [asdict(epoch) for epoch in trained.curve]
    return finish_run(folder, document, trained.policy.arrays(), figures=figures, curve=curve)


def train(
    settings: DdqlSettings,
    setup: Setup,
    scenario: Scenario,
    folder: Path | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained[QPolicy, Epoch]:
    """Train on the rows of a scenario, one per day; the setup's library is not used.

    With a folder, every epoch writes a checkpoint, and an interrupted training continues from it.
    """
    check(setup.battery, scenario)
    began = time.perf_counter()
    data = (scenario.load_w, scenario.price, scenario.minutes, scenario.minute_of_day, scenario.day)
    key = training_key(settings, setup, data)
    with own_randomness(setup.seed):
        powers = powers_w(setup.battery, settings.step_w)
        learner, replay = Learner(settings, powers, _scale(scenario)), Replay(settings.buffer)
        privacy = REWARDS[settings.method](settings, scenario)
        curve: list[Epoch] = []
        path = folder / CHECKPOINT if folder else None
        if path and path.exists():
            arrays, entries = q_learner.restore(path, learner, replay, key)
            privacy.restore(arrays)
            curve = [Epoch(**entry) for entry in entries]
        while len(curve) < settings.epochs:
            curve.append(_epoch(setup, scenario, learner, replay, privacy, len(curve)))
            if path:
                entries = [asdict(entry) for entry in curve]
                q_learner.save(path, learner, replay, privacy.arrays(), key, entries)
            if on_epoch:
                on_epoch(curve[-1])
    return Trained(learner.policy(), tuple(curve), time.perf_counter() - began)


def check(battery: Battery, scenario: Scenario) -> None:
    """Refuse days or a battery that cannot be learned with."""
    if np.any(np.isnan(scenario.load_w[:, scenario.lead :]).all(axis=1)):
        raise InputError("a training day has no reading at all; leave it out")
    if not np.any(np.asarray(battery.budget_kwh) > 0.0):
        raise InputError("this battery can do nothing: its budget is 0 kWh a day; give it more")


def powers_w(battery: Battery, step_w: float) -> FloatArray:
    """List the battery powers to choose from, strongest discharge first; zero is one of them."""
    lowest, highest = (int(np.max(limit) // step_w) for limit in (battery.discharge_w, battery.charge_w))
    if lowest + highest == 0:
        raise InputError(
            f"this battery can do nothing in steps of {step_w:g} W: it charges with "
            f"{np.max(battery.charge_w):g} W and discharges with {np.max(battery.discharge_w):g} W; give it "
            "power, or smaller steps"
        )
    return np.arange(-lowest, highest + 1, dtype=np.float64) * step_w


def _scale(scenario: Scenario) -> Scale:
    """Standardise load and price by the training days; the other inputs have a fixed range."""
    load_kw, price = scenario.load_w[:, scenario.lead :] / 1000.0, scenario.price[:, scenario.lead :]
    mean = np.array([np.nanmean(load_kw), 0.0, 0.0, np.mean(price), 0.5, 0.5])
    deviation = np.array([np.nanstd(load_kw), 0.7, 0.7, np.std(price), 0.25, 0.3])
    return Scale(mean, np.where(deviation > 1e-3, deviation, 1.0))


def _epoch(
    setup: Setup, scenario: Scenario, learner: Learner, replay: Replay, privacy: PrivacyReward, number: int
) -> Epoch:
    """Simulate one day in every slot and learn; random draws depend on seed and epoch only."""
    settings, rng = learner.settings, np.random.default_rng([setup.seed, number])
    rows = np.resize(rng.permutation(scenario.batch), settings.slots)
    player = Player(setup.battery, settings, days_of(scenario, rows), explore_chance(settings, number))
    state = player.initial(rng)
    learner.slow_down(1.0 - number / settings.epochs if settings.anneal else 1.0)
    privacy.begin(settings.slots)
    load_w, meters_w, sums = player.days.load_w, [], np.zeros(3)
    losses: list[float] = []
    for begin in range(0, len(load_w), settings.block_minutes):
        state, played = player.block(player.restarted(state, rng), learner.policy(), begin, rng)
        minutes, scores = _rewarded(setup.battery, settings.weight, privacy, played)
        replay.add(minutes)
        meters_w.append(played.load_w + played.power_w)
        sums += (minutes.reward.sum(), scores.sum(), len(scores))
        rounds = range(settings.updates if replay.added else 0)
        losses += [learner.update(replay.sample(rng, settings.minibatch)) for _ in rounds]
    signal_loss = privacy.learn(load_w, np.concatenate(meters_w))
    means = sums[:2] / max(sums[2], 1.0)
    days = (number + 1) * settings.slots
    return Epoch(days, float(means[0]), float(means[1]), float(np.mean(losses)), signal_loss)


def _rewarded(battery: Battery, weight: float, privacy: PrivacyReward, played: Played) -> tuple[Minutes, FloatArray]:
    """Return the minutes with a known load and their rewards, and their privacy rewards alone."""
    scores = privacy.score(played.load_w, played.load_w + played.power_w)
    cost = tariff.energy_cost(battery, played.price, played.power_w)
    cost = cost + tariff.degradation_cost(played.power_w)
    reward = (weight * scores - (1.0 - weight) * cost).astype(np.float32)
    parts = (played.observation[:-1], played.action, reward, played.observation[1:], played.over)
    known = ~np.isnan(played.load_w)
    kept: Iterator[Any] = (part[known] for part in parts)
    return Minutes(*kept), scores[known]


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
    acting = slice(picked.lead, None)
    load_w, price = (np.ascontiguousarray(part[:, acting].T) for part in (picked.load_w, picked.price))
    minute_of_day, day = (np.ascontiguousarray(part[:, acting].T) for part in (picked.minute_of_day, picked.day))
    return Days(load_w, minute_of_day, day, price, picked.minutes)


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
