"""Trials: which days of which houses attackers learn from, and which days they read.

In the paper's houses, attackers learn from the paper's ten training days. On the paper's days in other houses
they learn from the nearest well-covered days of that house. In a crossing they learn from other houses than
the one they read. No day that the paper evaluates is ever learned from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from meterveil.attackers.protocol import AGGREGATE
from meterveil.data.household import Aggregate, Household, kind
from meterveil.data.load import load
from meterveil.data.protocols import (
    ON_THRESHOLD_W,
    PROTOCOLS,
    REDD_EVALUATION_DAYS,
    UKDALE_EVALUATION_DAYS,
    UKDALE_HOUSE1,
    Dataset,
    EvaluationDay,
    Protocol,
    on_threshold_w,
)
from meterveil.data.splits import HELD_OUT_COVERAGE, Days, check_recorded, day_coverage, only_days
from meterveil.errors import InputError

DayChoice = Literal["paper", "many"]
DAY_LABELS: Mapping[DayChoice, str] = {"paper": "paper", "many": "held_out"}
"""Choice of days -> its label in results: the protocol's one test day, or all held-out days (D16)."""

SYNTHETIC_TARGETS = ("fridge", "kettle", "microwave", "dishwasher")
_TRAINING_SHARE = 0.7
_FEWEST_DAYS = 4

OWN_HOUSE = 0
"""Number of one's own house, which is named by its file alone."""
FEWEST_OWN_DAYS = 7
"""Days of one's own house below which figures are noise: five to learn from and two to read."""
_OWN_COVERAGE = 0.8
_MOST_OWN_TARGETS = 6
_LEAST_ON_MINUTES = 5
"""Minutes in use among the training days below which there is nothing to learn."""

OTHER_HOUSE_TARGETS: Mapping[str, tuple[str, ...]] = {
    "ukdale": PROTOCOLS["ukdale"].targets,
    "redd": ("fridge", "microwave", "dishwasher"),
}
"""Data set -> targets in its other houses; on the paper's days as many are in use as it calls active."""

FEWEST_TRAINING_DAYS, MOST_TRAINING_DAYS = 2, 10
"""Days of another house that its attackers learn from; the last fifth decides when to stop."""


@dataclass(frozen=True)
class HouseDays:
    """Days of one house."""

    dataset: Dataset
    house: int
    days: Days

    @property
    def key(self) -> tuple[Dataset, int]:
        return self.dataset, self.house


Houses = Mapping[tuple[Dataset, int], Household]
"""Data set and number of a house -> its record."""


@dataclass(frozen=True)
class Trial:
    """Days that attackers learn from, days that they read, and the appliances that are scored."""

    training: tuple[HouseDays, ...]
    test: HouseDays
    targets: tuple[str, ...]
    days: str
    """Label of the test days in results."""
    also_learned: tuple[str, ...] = ()
    """Further appliances that are learned but not scored, so that trials can share fits."""
    summed: tuple[str, ...] = ()
    """Appliances whose sum is the load or a part of it; empty for the mains channel (D2)."""
    seed: int = 0
    aggregate: Aggregate = "mains"
    """Source of the load (D2)."""

    def __post_init__(self) -> None:
        learned = {day for part in self.training if part.key == self.test.key for day in part.days}
        shared = sorted(learned & set(self.test.days))
        if shared:
            raise InputError(f"{shared[0]} is a training day and a test day; use each day once")
        if not self.test.days:
            raise InputError(f"no test day of {self.test.dataset} house {self.test.house} is left; train on fewer days")

    @property
    def learned(self) -> tuple[str, ...]:
        """Appliances that are learned, in an order that does not depend on what is scored."""
        return tuple(sorted({*self.targets, *self.also_learned}))

    @property
    def read(self) -> tuple[str, ...]:
        """Targets that are scored: the appliances and the household's load."""
        return (*self.targets, AGGREGATE)

    @property
    def fitted(self) -> tuple[str, ...]:
        """Targets of the fits; their order is part of a fit's cache key."""
        return (*self.learned, AGGREGATE)

    @property
    def training_label(self) -> str:
        """Name in results for what the attackers learned from, such as `10 days` or `redd 1 and 3`."""
        if all(part.key == self.test.key for part in self.training):
            return f"{len(self.training[0].days)} days"
        houses = " and ".join(str(part.house) for part in self.training)
        return f"{self.training[0].dataset} {houses}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the runs table."""
        days = sorted(day for part in self.training for day in part.days)
        estimated = "active" if self.aggregate == "active" else ""
        optional = {"summed": list(self.summed), "aggregate": estimated, "seed": self.seed}
        return {
            "house": self.test.house,
            "training_days": len(days),
            "training": [str(days[0]), str(days[-1])],
            "test": [str(min(self.test.days)), str(max(self.test.days))],
            **{name: value for name, value in optional.items() if value},
        }

    @property
    def identity(self) -> list[Any]:
        """Everything that distinguishes one trial from another, for cache keys."""
        parts = [[*part.key, [str(day) for day in part.days]] for part in (*self.training, self.test)]
        source = [self.aggregate] if self.aggregate == "active" else []
        return [parts, self.targets, self.learned, self.summed, self.seed, *source]

    def training_households(self, houses: Houses) -> tuple[Household, ...]:
        """Return the records that attackers learn from."""
        return tuple(only_days(houses[part.key].select(self.learned), part.days) for part in self.training)

    def load_houses(self, folder: Path) -> Houses:
        """Load every house that is learned from or read; the folder holds one folder per data set."""
        keys = dict.fromkeys(part.key for part in (*self.training, self.test))
        return {key: load(folder / key[0], key[1]) for key in keys}


def check_days(name: str) -> DayChoice:
    """Refuse an unknown choice of days."""
    if name not in DAY_LABELS:
        raise InputError(f"there are no days {name!r}; known are {' and '.join(DAY_LABELS)}")
    return cast(DayChoice, name)


def own_house(
    protocol: Protocol,
    training: Days,
    test: Days,
    targets: tuple[str, ...],
    seed: int = 0,
    also_learned: tuple[str, ...] = (),
    days: str = "",
) -> Trial:
    """Learn from some days of a house and read others, as the paper does."""
    house = (protocol.dataset, protocol.house)
    return Trial(
        training=(HouseDays(*house, training),),
        test=HouseDays(*house, test),
        targets=targets,
        days=days or ("paper" if test == protocol.test[:1] else _span(test)),
        also_learned=also_learned,
        summed=protocol.summed,
        seed=seed,
        aggregate=protocol.aggregate,
    )


def protocol_trial(protocol: Protocol, household: Household, days: DayChoice, seed: int = 0) -> Trial:
    """Learn from the paper's training days; read its test day, or all held-out days (D16)."""
    return attack_trial(protocol, household, len(protocol.training), days == "many", seed=seed)


def attack_trial(
    protocol: Protocol,
    household: Household,
    training_days: int = 10,
    held_out: bool = False,
    reserve_days: int = 0,
    seed: int = 0,
) -> Trial:
    """Learn from a number of days; read the paper's test day or the held-out days.

    With `reserve_days`, no day is read that this many training days would include, so that attackers with
    different numbers of training days read the same days.
    """
    training = longer_training(protocol, household, training_days)
    if not held_out:
        if reserve_days:
            raise InputError("reserve_days applies to held-out days only; leave it out")
        targets = protocol.present_targets(household, protocol.test[0])
        return own_house(protocol, training, protocol.test[:1], targets, seed)
    reserved = longer_training(protocol, household, max(training_days, reserve_days))
    every_day = protocol.held_out(household, min_days=1)
    test = tuple(day for day in every_day if day not in reserved)
    targets = tuple(name for name in protocol.many_day_targets if name in household.appliances_w)
    days = DAY_LABELS["many"] if test == every_day else ""
    return own_house(protocol, training, test, targets, seed, days=days)


def synthetic_trial(household: Household, days: DayChoice, seed: int = 0) -> Trial:
    """Split a household without a protocol: attackers learn from the first days and read the later ones."""
    recorded = household.days()
    if len(recorded) < _FEWEST_DAYS:
        raise InputError(
            f"{household.name} records {len(recorded)} whole days; an evaluation needs at least "
            f"{_FEWEST_DAYS} days for training and test"
        )
    count = round(len(recorded) * _TRAINING_SHARE)
    training, test = tuple(recorded[:count]), tuple(recorded[count:])
    dataset = cast(Dataset, household.name)
    rest = (SYNTHETIC_TARGETS, (), SYNTHETIC_TARGETS, household.aggregate)
    protocol = Protocol(dataset, 1, training, test[:1], *rest)
    targets = protocol.present_targets(household, test[0]) if days == "paper" else SYNTHETIC_TARGETS
    chosen = test if days == "many" else test[:1]
    return own_house(protocol, training, chosen, targets, seed, SYNTHETIC_TARGETS, DAY_LABELS[days])


def own_trial(household: Household, seed: int = 0) -> Trial:
    """Split one's own sub-metered house: attackers learn from its first days and read all later ones.

    Targets are up to six appliances that were used on the days to learn from.
    """
    home = household.select(_own_targets(household))
    covered = tuple(day for day, share in day_coverage(home).items() if share >= _OWN_COVERAGE)
    if len(covered) < FEWEST_OWN_DAYS:
        raise InputError(
            f"{home.name} has {len(covered)} whole days on which the meter and {', '.join(home.appliances_w)} know "
            f"{_OWN_COVERAGE:.0%} of the minutes; an evaluation needs {FEWEST_OWN_DAYS}, better a month: give a "
            "longer record, or name only the well covered columns (appliances=...)"
        )
    count = round(len(covered) * _TRAINING_SHARE)
    training, test = covered[:count], covered[count:]
    used = tuple(_used_minutes(only_days(home, training)))
    if not used:
        raise InputError(
            f"no appliance of {home.name} was in use for {_LEAST_ON_MINUTES} minutes from {training[0]} to "
            f"{training[-1]}, the days to learn from; give a longer record or other columns (appliances=...)"
        )
    house = (cast(Dataset, re.sub(r"[^\w.-]+", "-", home.name)), OWN_HOUSE)
    days = HouseDays(*house, training), HouseDays(*house, test)
    return Trial(days[:1], days[1], used, _span(test), seed=seed, aggregate=household.aggregate)


def _own_targets(household: Household) -> list[str]:
    """Choose the best known and most used sub-meters; those with a threshold of their own come first (D10)."""
    if not household.appliances_w:
        raise InputError(
            f"{household.name} has no columns of single appliances; an evaluation compares what attackers read "
            "with such sub-meters. Name their columns (appliances=all), or use meterveil simulate, which needs "
            "the meter alone"
        )
    known = [name for name, w in household.appliances_w.items() if np.mean(~np.isnan(w)) >= _OWN_COVERAGE / 2]
    minutes = _used_minutes(household.select(known))
    if not minutes:
        limits = ", ".join(f"{name} {on_threshold_w(name):g} W" for name in list(household.appliances_w)[:9])
        raise InputError(
            f"no well covered appliance of {household.name} was in use for {_LEAST_ON_MINUTES} minutes; in use "
            f"means at least: {limits}; give a longer record or other columns (appliances=...)"
        )
    ranked = sorted(minutes, key=lambda name: (kind(name) not in ON_THRESHOLD_W, -minutes[name]))
    return ranked[:_MOST_OWN_TARGETS]


def _used_minutes(household: Household) -> dict[str, int]:
    """Count the minutes in use of every appliance that was used at all."""
    minutes = {name: int(np.sum(w >= on_threshold_w(name))) for name, w in household.appliances_w.items()}
    return {name: count for name, count in minutes.items() if count >= _LEAST_ON_MINUTES}


def evaluation_day_trial(row: EvaluationDay, household: Household) -> Trial:
    """Read one of the paper's days, in its own house or in another house of the data set."""
    protocol = PROTOCOLS[row.dataset]
    check_recorded(household, [row.day])
    if (row.house, row.day) == (protocol.house, protocol.test[0]):
        return protocol_trial(protocol, household, "paper")
    if row.house == protocol.house:
        targets = protocol.present_targets(household, row.day)
        also_learned = protocol.many_day_targets
        return own_house(protocol, protocol.training, (row.day,), targets, also_learned=also_learned)
    own = replace(protocol, house=row.house, test=(), targets=OTHER_HOUSE_TARGETS[row.dataset])
    present = own.present_targets(household, row.day)
    training = nearest_days(own, household.select(present), row.day)
    used = {name for day in training for name in own.present_targets(household, day)}
    targets = tuple(name for name in present if name in used)
    if not targets:
        raise InputError(
            f"{' and '.join(present) or 'no appliance'} was in use on {row.day}, but on none of the other "
            f"{len(training)} well-covered days of {household.name}, so that no attacker can learn it"
        )
    return own_house(own, training, (row.day,), targets)


def longer_training(protocol: Protocol, household: Household, days: int) -> Days:
    """Extend the protocol's training days by later ones, without any day that the paper evaluates."""
    if days <= len(protocol.training):
        return protocol.training[:days]
    excluded = {*protocol.test, *evaluation_days(protocol.dataset, protocol.house)}
    later = [day for day in household.days() if day > protocol.training[-1] and day not in excluded]
    with_readings = [day for day in later if not np.isnan(household.day(day).aggregate_w).all()]
    available = (*protocol.training, *with_readings)
    if days > len(available):
        raise InputError(
            f"{household.name} has {len(available)} training days, not {days}; give at most {len(available)}"
        )
    return available[:days]


def nearest_days(protocol: Protocol, household: Household, day: date) -> Days:
    """Choose the training days of another house: the nearest well-covered ones, in order."""
    excluded = evaluation_days(protocol.dataset, protocol.house)
    shares = day_coverage(household)
    covered = [day for day, share in shares.items() if share >= HELD_OUT_COVERAGE and day not in excluded]
    if len(covered) < FEWEST_TRAINING_DAYS:
        raise InputError(
            f"{household.name} has {len(covered)} well-covered days besides {day}; an attacker needs "
            f"{FEWEST_TRAINING_DAYS}"
        )
    nearest = sorted(covered, key=lambda other: (abs((other - day).days), other))[:MOST_TRAINING_DAYS]
    return tuple(sorted(nearest))


def evaluation_days(dataset: str, house: int) -> set[date]:
    """List the days of a house that the paper's tables evaluate: nothing may learn from them."""
    rows = (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS)
    return {row.day for row in rows if (row.dataset, row.house) == (dataset, house)}


def crossing_trials(dataset: str, seed: int = 0) -> list[Trial]:
    """Learn from houses of a data set and read another house."""
    if dataset not in CROSSINGS:
        raise InputError(f"there is no crossing {dataset!r}; there are {', '.join(CROSSINGS)}")
    return [replace(trial, seed=seed) for trial in CROSSINGS[dataset]]


def _span(days: Days) -> str:
    return "..".join(dict.fromkeys([str(day) for day in (*days[:1], *days[-1:])]))


def _days(month: str, *numbers: int) -> Days:
    return tuple(date.fromisoformat(f"{month}-{number:02}") for number in numbers)


_REDD_1 = HouseDays("redd", 1, (*_days("2011-04", 20, 22, 23, 24, 25, 27, 30), *_days("2011-05", 1, 2, 23)))
_REDD_2 = HouseDays("redd", 2, _days("2011-04", 20, 22, 23, 24, 25, 26, 27, 28, 29, 30))
_REDD_3 = HouseDays("redd", 3, (*_days("2011-04", 18, 20, 22, 23, 26, 27), *_days("2011-05", 23, 26)))
_UKDALE_1 = HouseDays("ukdale", 1, UKDALE_HOUSE1.training)
_UKDALE_2 = HouseDays("ukdale", 2, _days("2013-07", *range(8, 22)))
_REFIT_2 = HouseDays("refit", 2, _days("2014-03", *range(11, 21), *range(22, 26)))
_KITCHEN = ("kettle", "microwave", "dishwasher")
_LEARNED = UKDALE_HOUSE1.many_day_targets

CROSSINGS: Mapping[str, tuple[Trial, ...]] = {
    "redd": (Trial((_REDD_1, _REDD_3), _REDD_2, ("fridge", *_KITCHEN[1:]), _span(_REDD_2.days)),),
    "ukdale": (
        Trial((_UKDALE_1,), _UKDALE_2, ("fridge", *_KITCHEN), _span(_UKDALE_2.days), _LEARNED),
        Trial((_UKDALE_1,), _REFIT_2, _KITCHEN, _span(_REFIT_2.days), _LEARNED),
    ),
}
"""Data set that is learned from -> crossings.

On each day every channel knows at least 95 % of its minutes, except for UK-DALE house 1, where the paper's
ten days are kept so that only the house differs from the tables of attacker strength.
"""
