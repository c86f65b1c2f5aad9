"""Training days of the informed attacker: recorded days, new ones drawn from them, and their masked meter."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from meterveil.attackers.protocol import Meter, truth_w
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.rollout import Policy, rollout
from meterveil.core.scenario import Scenario
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.simulation import Setup, span

DAY = 1440
MOST_MOVED = 20
"""Minutes by which the appliances of a drawn day are moved at most."""

_AT_ONCE = 64
"""Stretches composed at a time, a bound on memory."""


class Days(NamedTuple):
    """Recorded days of 24 hours on one clock."""

    load_w: FloatArray  # (day, minute)
    targets_w: FloatArray  # (day, target, minute)
    price: FloatArray  # (day, minute)
    weekday: IntArray  # (day,)
    is_aggregate: BoolArray  # (target,)


class Draw(NamedTuple):
    """Days to compose; leading axes are any, such as (stretch, day)."""

    day: IntArray  # (...)
    donor: IntArray  # (..., target) day that each target is taken from
    moved: IntArray  # (..., target) minutes by which it is moved


def recorded_days(households: Sequence[Household], targets: Sequence[str], setup: Setup | None) -> Days:
    """Lay the days with readings out on one clock; days of 23 and 25 hours are left out."""
    load_w, targets_w, price, weekday = [], [], [], []
    pairs = [(household, day) for household in households for day in household.days()]
    for household, day in pairs:
        part = household.day(day)
        if len(part.minutes) != DAY or np.isnan(part.aggregate_w).all():
            continue
        load_w.append(truth_w(part, AGGREGATE))
        targets_w.append([truth_w(part, name) for name in targets])
        weekday.append(part.minutes[0].weekday())
        after = day + timedelta(days=1)
        price.append(span(household, day, after, setup.tariff, 0).price[0] if setup else np.zeros(DAY))
    is_aggregate = np.array([name == AGGREGATE for name in targets])
    return Days(np.array(load_w), np.array(targets_w), np.array(price), np.array(weekday), is_aggregate)


def as_recorded(days: IntArray, targets: int) -> Draw:
    """Take days as they were recorded."""
    donor = np.repeat(days[..., None], targets, axis=-1)
    return Draw(days, donor, np.zeros_like(donor))


def draw(days: IntArray, targets: int, shape: tuple[int, int], rng: np.random.Generator) -> Draw:
    """Draw stretches of days; half of the appliances come from other days, half move by some minutes."""
    day = rng.choice(days, shape)
    each = *shape, targets
    other = rng.choice(days, each)
    donor = np.where(rng.random(each) < 0.5, other, day[..., None])
    moved = np.where(rng.random(each) < 0.5, rng.integers(-MOST_MOVED, MOST_MOVED + 1, each), 0)
    return Draw(day, donor, moved)


def compose(days: Days, drawn: Draw) -> tuple[FloatArray, FloatArray]:
    """Return the load, (..., minute), and the targets, (..., target, minute), of drawn days."""
    minute = (np.arange(DAY) - drawn.moved[..., None]) % DAY
    targets_w = days.targets_w[drawn.donor[..., None], np.arange(len(days.is_aggregate))[:, None], minute]
    before_w, after_w = (
        np.nansum(np.compress(~days.is_aggregate, part, axis=-2), axis=-2) for part in (days.targets_w, targets_w)
    )
    load_w = np.maximum((days.load_w - before_w)[drawn.day] + after_w, 0.0)
    targets_w[..., days.is_aggregate, :] = load_w[..., None, :]
    return load_w, targets_w


def masked(days: Days, drawn: Draw, policy: Policy | None, setup: Setup | None, rng: np.random.Generator) -> FloatArray:
    """Let the defence act on stretches of days, (stretch, day), from any SoC; return the meter, (day, minute)."""
    pieces = zip(*(np.array_split(part, -(-len(part) // _AT_ONCE)) for part in drawn), strict=True)
    load_w = np.concatenate([compose(days, Draw(*piece))[0] for piece in pieces]).reshape(len(drawn.day), -1)
    if policy is None or setup is None:
        return load_w.reshape(-1, DAY)
    minute = np.broadcast_to(np.arange(load_w.shape[1]), load_w.shape)
    price, lasts = days.price[drawn.day].reshape(load_w.shape), np.full(len(load_w), load_w.shape[1])
    scenario = Scenario(load_w, minute % DAY, minute // DAY, price, lasts)
    battery = setup.battery
    middle, room = (np.asarray(battery.soc_max) + battery.soc_min) / 2, battery.soc_max - battery.soc_min
    soc = middle + room * rng.uniform(-0.25, 0.25, len(load_w))
    trace = rollout(policy, battery, setup.library, scenario, rng.spawn(len(load_w)), soc)
    return setup.resolution.shown(trace.meter_w.reshape(-1, DAY))


def meter_of_days(reading_w: FloatArray, weekday: IntArray) -> Meter:
    """Return the meter of whole days, (day, minute), of stretches whose weekdays are (stretch, day)."""
    minute = np.broadcast_to(np.arange(DAY), reading_w.shape)
    after_w = np.full((*weekday.shape, DAY), np.nan)
    after_w[:, :-1] = reading_w.reshape(after_w.shape)[:, 1:]
    return Meter(reading_w, minute, np.repeat(weekday.reshape(-1, 1), DAY, axis=1), after_w.reshape(reading_w.shape))
