"""How strong the attackers are: what each reads out of a bare meter, beside the paper's raw columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from meterveil.attackers.fitting import Job, fit
from meterveil.attackers.protocol import AGGREGATE, Prediction, meter_of
from meterveil.attackers.registry import ATTACKERS
from meterveil.bench.cards import Card
from meterveil.bench.metrics import FloatArray
from meterveil.bench.reported import cases
from meterveil.bench.scoring import score_said
from meterveil.data.household import Household
from meterveil.data.protocols import (
    REDD_EVALUATION_DAYS,
    UKDALE_EVALUATION_DAYS,
    Dataset,
    Protocol,
)
from meterveil.data.splits import Days, check_recorded, only_days
from meterveil.errors import InputError

DEFAULT_ATTACKERS = tuple(ATTACKERS)

Houses = Mapping[tuple[Dataset, int], Household]
"""Data set and number of a house -> its record."""


@dataclass(frozen=True)
class HouseDays:
    """Name days of one house."""

    dataset: Dataset
    house: int
    days: Days

    @property
    def key(self) -> tuple[Dataset, int]:
        """Name the house."""
        return self.dataset, self.house


@dataclass(frozen=True)
class Trial:
    """Say what is learned from, what is read, and what a card must say of it."""

    table: str
    training: tuple[HouseDays, ...]
    test: HouseDays
    targets: tuple[str, ...]
    settings: Mapping[str, Any]
    also_learned: tuple[str, ...] = ()
    """Further targets of the same fit, not scored: a still day's attackers are those of all other days."""
    reported: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(attacker, target, metric) -> the paper's figure, where it speaks of this very trial."""
    seed: int = 0

    @property
    def learned(self) -> tuple[str, ...]:
        """Name what is learned, in an order that is the same whatever is scored."""
        return tuple(sorted({*self.targets, *self.also_learned}))

    @property
    def read(self) -> tuple[str, ...]:
        """Name what is scored: the targets, and the household's load."""
        return (*self.targets, AGGREGATE)

    @property
    def fitted(self) -> tuple[str, ...]:
        """Name what an attacker is fitted to; the order is part of a fit's name in the cache."""
        return (*self.learned, AGGREGATE)

    def taught(self, houses: Houses) -> tuple[Household, ...]:
        """Return what attackers learn from."""
        return tuple(only_days(houses[part.key].select(self.learned), part.days) for part in self.training)

    def __post_init__(self) -> None:
        taught = {day for part in self.training if part.key == self.test.key for day in part.days}
        shared = sorted(taught & set(self.test.days))
        if shared:
            raise InputError(f"{shared[0]} would be learned from and read; give each day to one part only")
        if not self.test.days:
            raise InputError(
                f"no day of {self.test.dataset} house {self.test.house} is left to read; learn from fewer"
            )


class Readings(NamedTuple):
    """Everything that was said of the test days, and the truth."""

    trial: Trial
    days: tuple[Household, ...]
    said: Mapping[str, tuple[Prediction, ...]]
    """Attacker -> a prediction for each day."""


def own_house(
    protocol: Protocol,
    training: Days,
    test: Days,
    targets: tuple[str, ...],
    seed: int = 0,
    also_learned: tuple[str, ...] = (),
) -> Trial:
    """Learn a house from some of its days and read others, as the paper does."""
    dataset, house = protocol.dataset, protocol.house
    is_papers_day = test == protocol.test[:1]
    days = "paper_day" if is_papers_day else f"{len(test)}_days"
    settings: dict[str, Any] = {
        "house": house,
        "training_days": len(training),
        "training": [str(training[0]), str(training[-1])],
        "test": [str(test[0]), str(test[-1])] if test else [],
        "aggregate": protocol.aggregate,
    }
    if protocol.aggregate == "submeters":  # not of all: some are unknown for months, and so would the sum be
        days += "_submeters"
        settings["summed"] = list(protocol.many_day_targets)
    return Trial(
        table=f"strength_{len(training)}_training_{days}",
        training=(HouseDays(dataset, house, training),),
        test=HouseDays(dataset, house, test),
        targets=targets,
        settings=settings,
        also_learned=also_learned,
        reported=papers_raw(dataset) if is_papers_day and training == protocol.training else {},
        seed=seed,
    )


def papers_raw(dataset: str) -> dict[tuple[str, str, str], float]:
    """Look the paper's raw columns up; they speak of its own day only."""
    printed = cases(dataset).dropna(subset="raw")
    keys = zip(printed["attacker"], printed["target"], printed["metric"], strict=True)
    return dict(zip(keys, printed["raw"].astype(float), strict=True))


def measure(
    trial: Trial,
    houses: Houses,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    workers: int = 2,
    on_done: Callable[[Job], None] | None = None,
) -> list[Card]:
    """Fit the attackers on the training days and score them on the test days."""
    return cards_of(read(trial, houses, attackers, workers, on_done))


def read(
    trial: Trial,
    houses: Houses,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    workers: int = 2,
    on_done: Callable[[Job], None] | None = None,
) -> Readings:
    """Fit the attackers on the training days and let them read the test days."""
    home = houses[trial.test.key].select(trial.targets)
    check_recorded(home, trial.test.days)
    fitted = fit(attackers, trial.taught(houses), trial.fitted, trial.seed, workers, on_done)
    days = tuple(home.day(day) for day in trial.test.days)
    said = {name: tuple(one.predict(meter_of(day)) for day in days) for name, one in fitted.items()}
    return Readings(trial, days, said)


def cards_of(readings: Readings) -> list[Card]:
    """Score everything that was said: a card for each attacker, target and metric."""
    return [
        card_of(readings.trial, name, target, metric, values)
        for name, said in readings.said.items()
        for (target, metric), values in score_said(said, readings.days, readings.trial.read).items()
    ]


def card_of(trial: Trial, name: str, target: str, metric: str, values: FloatArray) -> Card:
    """Sum a score over days up; undefined days are left out."""
    known = values[~np.isnan(values)]
    return Card(
        table=trial.table,
        row=f"{name} {target}",
        column=metric,
        dataset=trial.test.dataset,
        measured=float(known.mean()) if len(known) else None,
        reported=trial.reported.get((name, target, metric)),
        spread=float(known.std(ddof=1)) if len(known) > 1 else None,
        seeds=(trial.seed,),
        n_days=len(known),
        settings=dict(trial.settings),
        note="" if len(known) else "undefined: the appliance stood still",
    )


def longer_training(protocol: Protocol, household: Household, days: int) -> Days:
    """Take the protocol's training days and go on behind them until there are as many as asked for.

    Neither its test days nor the days of the paper's other tables are taken.
    """
    kept_back = {*protocol.test, *evaluation_days(protocol.dataset, protocol.house)}
    recorded = [day for day in household.days() if day > protocol.training[-1] and day not in kept_back]
    known = [day for day in recorded if not np.isnan(household.day(day).aggregate_w).all()]
    found = (*protocol.training, *known)
    if days > len(found):
        raise InputError(
            f"{household.name} has {len(found)} days to learn from, {days} are asked for; "
            f"give at most {len(found)}"
        )
    return found[:days]


def evaluation_days(dataset: str, house: int) -> set[date]:
    """Name the days of a house that the paper's tables evaluate: nothing may learn from them."""
    rows = (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS)
    return {row.day for row in rows if (row.dataset, row.house) == (dataset, house)}
