"""Which days an evaluation learns from and reads: the paper's one day, or the many of D16."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from meterveil.bench.strength import Trial, own_house
from meterveil.data.household import Household
from meterveil.data.protocols import Dataset, Protocol
from meterveil.errors import InputError

DayChoice = Literal["paper", "many"]
DAY_CHOICES: tuple[DayChoice, ...] = ("paper", "many")

SYNTHETIC_TARGETS = ("fridge", "kettle", "microwave", "dishwasher")
_TEACHING_SHARE = 0.7
_LEAST_DAYS = 4


def check_days(name: str) -> DayChoice:
    """Refuse a choice of days that is not known."""
    known = next((choice for choice in DAY_CHOICES if choice == name), None)
    if known is None:
        raise InputError(f"there are no days {name!r}; known are {' and '.join(DAY_CHOICES)}")
    return known


def trial_of(protocol: Protocol, household: Household, days: DayChoice, seed: int = 0) -> Trial:
    """Say what `meterveil attack` would: the same training days and targets, so that its fits are found."""
    if days == "many":
        kept = tuple(target for target in protocol.many_day_targets if target in household.appliances_w)
        test = protocol.held_out(household, min_days=1)
        return _named(own_house(protocol, protocol.training, test, kept, seed), f"{len(test)}_days")
    day = protocol.test[0]
    present = protocol.present_targets(household, day)
    trial = own_house(protocol, protocol.training, (day,), present, seed)
    return _named(trial, "paper_day")


def synthetic_trial(household: Household, days: DayChoice, seed: int = 0) -> Trial:
    """Split a household that no protocol speaks of: the first days teach, the later ones are read."""
    recorded = household.days()
    if len(recorded) < _LEAST_DAYS:
        raise InputError(
            f"{household.name} records {len(recorded)} whole days; an evaluation needs {_LEAST_DAYS} or more "
            "to learn from and to read: give a longer record"
        )
    taught = round(len(recorded) * _TEACHING_SHARE)
    training, test = tuple(recorded[:taught]), tuple(recorded[taught:])
    own = Protocol(cast(Dataset, household.name), 1, training, (), SYNTHETIC_TARGETS, (), SYNTHETIC_TARGETS)
    read = test if days == "many" else test[:1]
    targets = own.present_targets(household, read[0]) if days == "paper" else SYNTHETIC_TARGETS
    trial = own_house(own, training, read, targets, seed, also_learned=SYNTHETIC_TARGETS)
    return _named(trial, f"{len(read)}_days" if days == "many" else "one_day")


def _named(trial: Trial, days: str) -> Trial:
    return replace(trial, table=f"evaluation_{days}")
