"""Trains a DDQL defence: many days pass side by side, and after every two hours of them the networks learn.

The physics is the core's, the reward is a signal's (`ddql_flat`, `ddql_mi`) less what the minute cost.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from meterveil.core import tariff
from meterveil.core.arrays import FloatArray
from meterveil.core.battery import Battery
from meterveil.core.scenario import Scenario
from meterveil.defenders.ddql import checkpoint
from meterveil.defenders.ddql.flat import FlatSignal
from meterveil.defenders.ddql.learner import Learner, Minutes, Replay, Scale, own_randomness
from meterveil.defenders.ddql.mi import MiSignal
from meterveil.defenders.ddql.play import Played, Player, days_of, explore_chance
from meterveil.defenders.ddql.policy import QPolicy
from meterveil.defenders.ddql.settings import Settings, powers_w
from meterveil.defenders.lessons import check_lambda
from meterveil.defenders.runs import CHECKPOINT, Arrays
from meterveil.errors import InputError


class Signal(Protocol):
    """Pay for privacy, (minute, batch); blocks of a day come one after the other."""

    def begin(self, batch: int) -> None:
        """Forget the day before."""
        ...

    def score(self, load_w: FloatArray, meter_w: FloatArray) -> FloatArray:
        """Pay for the next minutes; what is paid where the load is unknown does not count."""
        ...

    def learn(self, load_w: FloatArray, meter_w: FloatArray) -> float:
        """Learn from whole days, where the signal learns; return its loss."""
        ...

    def arrays(self) -> Arrays:
        """Return all that changes from epoch to epoch."""
        ...

    def restore(self, arrays: Arrays) -> None:
        """Take it back."""
        ...


SIGNALS: dict[str, Callable[[Settings, Scenario], Signal]] = {
    "ddql_flat": lambda settings, scenario: FlatSignal.of(scenario),
    "ddql_mi": MiSignal.of,
}


@dataclass(frozen=True)
class Lesson:
    """Say what is learned from, what is rewarded, and how."""

    method: str
    battery: Battery
    scenario: Scenario
    """One row for each training day."""
    settings: Settings
    weight: float = 1.0
    """Lambda: 1 is privacy alone, 0 is cost alone."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in SIGNALS:
            raise InputError(f"there is no method {self.method!r}; known are {', '.join(SIGNALS)}")
        check_lambda(self.weight)
        if np.any(np.isnan(self.scenario.load_w[:, self.scenario.lead :]).all(axis=1)):
            raise InputError("a training day has no reading at all; leave it out")
        if not np.any(np.asarray(self.battery.budget_kwh) > 0.0):
            raise InputError("this battery can do nothing: its budget is 0 kWh a day; give it more")

    def key(self) -> str:
        """Hash of everything that can change what is learned."""
        said = [self.method, asdict(self.settings), self.weight, self.seed, repr(self.battery)]
        digest = hashlib.sha256(json.dumps(said).encode())
        world = self.scenario
        for part in (world.load_w, world.price, world.minutes, world.minute_of_day, world.day):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Epoch:
    """Tell how a training stands after an epoch; means over its minutes."""

    days: int
    """Simulated so far."""
    reward: float
    privacy: float
    """What the signal paid: minus kW off the level (flat), or nats that the H-network missed (MI)."""
    loss: float
    signal_loss: float


@dataclass(frozen=True)
class Trained:
    """Hold what was learned, and how that went."""

    policy: QPolicy
    curve: tuple[Epoch, ...]
    seconds: float
    """Wall time of this process; a resumed training does not know of the time before."""


def train(
    lesson: Lesson, folder: Path | None = None, on_epoch: Callable[[Epoch], object] | None = None
) -> Trained:
    """Train through all epochs; with a folder, a training that was killed goes on behind its last epoch."""
    began, settings = time.perf_counter(), lesson.settings
    with own_randomness(lesson.seed):
        powers = powers_w(lesson.battery, settings.step_w)
        learner, replay = Learner(settings, powers, _scale(lesson)), Replay(settings.buffer)
        signal = SIGNALS[lesson.method](settings, lesson.scenario)
        curve: list[Epoch] = []
        path = folder / CHECKPOINT if folder else None
        if path and path.exists():
            arrays, known = checkpoint.restore(path, learner, replay, lesson.key())
            signal.restore(arrays)
            curve = [Epoch(**entry) for entry in known]
        while len(curve) < settings.epochs:
            curve.append(_epoch(lesson, learner, replay, signal, len(curve)))
            if path:
                entries = [asdict(entry) for entry in curve]
                checkpoint.save(path, learner, replay, signal.arrays(), lesson.key(), entries)
            if on_epoch:
                on_epoch(curve[-1])
    return Trained(learner.policy(), tuple(curve), time.perf_counter() - began)


def _scale(lesson: Lesson) -> Scale:
    """Take load and price from the training days; the rest of what is seen lies within -1 and 1 by itself."""
    world = lesson.scenario
    load_kw, price = world.load_w[:, world.lead :] / 1000.0, world.price[:, world.lead :]
    mean = np.array([np.nanmean(load_kw), 0.0, 0.0, np.mean(price), 0.5, 0.5])
    deviation = np.array([np.nanstd(load_kw), 0.7, 0.7, np.std(price), 0.25, 0.3])
    return Scale(mean, np.where(deviation > 1e-3, deviation, 1.0))


def _epoch(lesson: Lesson, learner: Learner, replay: Replay, signal: Signal, number: int) -> Epoch:
    """Let one day pass in every slot, learning on the way; chance depends on seed and number alone."""
    settings, rng = lesson.settings, np.random.default_rng([lesson.seed, number])
    rows = np.resize(rng.permutation(lesson.scenario.batch), settings.slots)
    player = Player(
        lesson.battery, settings, days_of(lesson.scenario, rows), explore_chance(settings, number)
    )
    state = player.initial(rng)
    learner.slow_down(1.0 - number / settings.epochs if settings.anneal else 1.0)
    signal.begin(settings.slots)
    load_w, meters_w, sums = player.days.load_w, [], np.zeros(3)
    losses: list[float] = []
    for begin in range(0, len(load_w), settings.block_minutes):
        state, played = player.block(player.restarted(state, rng), learner.policy(), begin, rng)
        minutes, privacy = _judged(lesson, signal, played)
        replay.add(minutes)
        meters_w.append(played.load_w + played.power_w)
        sums += (minutes.reward.sum(), privacy.sum(), len(privacy))
        rounds = range(settings.updates if replay.added else 0)
        losses += [learner.update(replay.sample(rng, settings.minibatch)) for _ in rounds]
    signal_loss = signal.learn(load_w, np.concatenate(meters_w))
    means = sums[:2] / max(sums[2], 1.0)
    days = (number + 1) * settings.slots
    return Epoch(days, float(means[0]), float(means[1]), float(np.mean(losses)), signal_loss)


def _judged(lesson: Lesson, signal: Signal, played: Played) -> tuple[Minutes, FloatArray]:
    """Return the minutes whose load is known, with their rewards, and what the signal paid for them."""
    privacy = signal.score(played.load_w, played.load_w + played.power_w)
    cost = tariff.energy_cost(lesson.battery, played.price, played.power_w)
    cost = cost + tariff.degradation_cost(played.power_w)
    reward = (lesson.weight * privacy - (1.0 - lesson.weight) * cost).astype(np.float32)
    parts = (played.observation[:-1], played.action, reward, played.observation[1:], played.over)
    known = ~np.isnan(played.load_w)
    kept: Iterator[Any] = (part[known] for part in parts)
    return Minutes(*kept), privacy[known]
