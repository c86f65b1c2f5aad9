"""Which days teach and test the attackers of a cell.

On other days of the paper's own house, attackers are those of the paper's ten training days. In another house
they must know that house: they learn from its nearest well-covered days, ten at most, before or after, none
of which the paper evaluates. The defence is never trained again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from meterveil.bench.evaluation.days import synthetic_trial, trial_of
from meterveil.bench.reproduce.specs import SYNTHETIC, Cell
from meterveil.bench.strength import Trial, evaluation_days, own_house
from meterveil.data.household import Household
from meterveil.data.protocols import PROTOCOLS, EvaluationDay, Protocol
from meterveil.data.splits import HELD_OUT_COVERAGE, Days, check_recorded, day_coverage
from meterveil.errors import InputError

LEAST_DAYS, MOST_DAYS = 2, 10
"""Of another house, that its attackers learn from; one of two decides when to stop."""

OTHER_HOUSES: dict[str, tuple[str, ...]] = {
    "ukdale": PROTOCOLS["ukdale"].targets,
    "redd": ("fridge", "microwave", "dishwasher"),
}
"""Data set -> targets in other houses: on the paper's days, as many are in use as it calls active."""


def house_of(cell: Cell) -> int:
    """Name the house that is read."""
    if isinstance(cell.row.days, EvaluationDay):
        return cell.row.days.house
    return home_of(cell)


def home_of(cell: Cell) -> int:
    """Name the house that the defence is trained for."""
    return PROTOCOLS[cell.dataset].house if cell.dataset in PROTOCOLS else 1


def trial_for(cell: Cell, household: Household) -> Trial:
    """Say what the attackers of a cell learn from and read, under the name of its table."""
    days = cell.row.days
    if isinstance(days, EvaluationDay):
        trial = _evaluated(days, household)
    elif cell.dataset == SYNTHETIC:
        trial = synthetic_trial(household, days)
    else:
        trial = trial_of(PROTOCOLS[cell.dataset], household, days)
    return replace(trial, table=cell.table)


def training_days(dataset: str, household: Household) -> Days:
    """Name the days that a defence learns from."""
    if dataset == SYNTHETIC:
        return synthetic_trial(household, "paper").training[0].days
    return PROTOCOLS[dataset].training


def _evaluated(row: EvaluationDay, household: Household) -> Trial:
    protocol = PROTOCOLS[row.dataset]
    check_recorded(household, [row.day])
    if (row.house, row.day) == (protocol.house, protocol.test[0]):
        return trial_of(protocol, household, "paper")
    if row.house == protocol.house:
        own = replace(protocol, test=())
        targets = own.present_targets(household, row.day)
        return own_house(own, own.training, (row.day,), targets, also_learned=own.many_day_targets)
    own = replace(protocol, house=row.house, test=(), targets=OTHER_HOUSES[row.dataset])
    present = own.present_targets(household, row.day)
    training = nearest_days(own, household.select(present), row.day)
    used = {name for day in training for name in own.present_targets(household, day)}
    targets = tuple(name for name in present if name in used)
    if not targets:
        raise InputError(
            f"{' and '.join(present) or 'no appliance'} was in use on {row.day}, but on none of the other "
            f"{len(training)} well-covered days of {household.name} at hand, so that no attacker can learn it"
        )
    return own_house(own, training, (row.day,), targets)


def nearest_days(own: Protocol, household: Household, day: date) -> Days:
    """Choose the days that attackers of another house learn from, in order."""
    kept_back = evaluation_days(own.dataset, own.house)
    shares = day_coverage(household)
    known = [one for one, share in shares.items() if share >= HELD_OUT_COVERAGE and one not in kept_back]
    if len(known) < LEAST_DAYS:
        raise InputError(
            f"{household.name} has {len(known)} well-covered days beside {day} at hand; an attacker needs "
            f"{LEAST_DAYS}"
        )
    nearest = sorted(known, key=lambda one: (abs((one - day).days), one))[:MOST_DAYS]
    return tuple(sorted(nearest))
