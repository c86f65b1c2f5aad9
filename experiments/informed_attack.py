"""Measure untrained defences against the informed attacker: `python -m experiments.informed_attack`.

Makes results/study_informed_attack.csv, the table of docs/threat-model.md: F1 of the attacker that knows the
defence (D17), beside the prior and the same attacker without a defence. Column `x` is the number of training
days. By default the attacker learns from the protocol's training days and reads all held-out days. With
`--training-days` it learns from so many days of UK-DALE and reads the days after the last of `RESERVED` days,
so that figures with different numbers of training days are comparable. Fits and rows of finished defences
are kept.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from experiments import study
from meterveil.attackers.registry import version_of
from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Spec, evaluate, measure_undefended
from meterveil.bench.trial import Trial, longer_training, own_house, protocol_trial
from meterveil.core.battery import Battery
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import Protocol, protocol
from meterveil.defenders.defence import Defence, common_setup, find_defences

NAME = "informed_attack"
ATTACKER = "informed"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys")
SEEDS = 2
"""Draws of a defence's random numbers on the test days."""
RESERVED = 100
"""Most training days: no number of training days reads a day before the end of these."""


def measure(asked: argparse.Namespace) -> None:
    """Measure every defence on every data set, and record each as soon as it is finished."""
    for dataset in asked.datasets:
        chosen = protocol(dataset)
        home = load(data_folder(asked.data) / dataset, chosen.house)
        for count in asked.training_days or [None]:
            trial = _later_days(chosen, home, count) if count else protocol_trial(chosen, home, "many")
            _measure_trial(asked, trial, home)


def _later_days(chosen: Protocol, home: Household, count: int) -> Trial:
    """Learn from a number of days, and read the held-out days after all that could be learned from."""
    last = longer_training(chosen, home, RESERVED)[-1]
    test = tuple(day for day in chosen.held_out(home) if day > last)
    return own_house(chosen, longer_training(chosen, home, count), test, chosen.many_day_targets)


def _measure_trial(asked: argparse.Namespace, trial: Trial, home: Household) -> None:
    defences = find_defences(asked.defences)
    setup = replace(common_setup(defences, asked.library), battery=Battery(budget_kwh=asked.budget_kwh))
    spec = Spec(trial, setup, {"adaptive": (ATTACKER,)}, SEEDS)
    undefended = measure_undefended(spec, {part.key: home for part in (*trial.training, trial.test)}, 1)
    days = len(trial.training[0].days)
    for defence in defences:
        result = evaluate(undefended, defence, 1)
        reached = strongest(result.cases["adaptive"], result.prior, BEST_F1)
        figures = {
            "f1": reached.masked,
            "f1_leak": reached.leak,
            "f1_undefended": (reached.raw, None, None),
            "prior_f1": (reached.prior, None, None),
        }
        row = {"dataset": trial.test.dataset, "row": _label(defence, asked.budget_kwh), "x": days}
        size = {"seeds": SEEDS, "n_days": len(trial.test.days)}
        rows = [
            {**row, "metric": metric, "value": value, "low": low, "high": high, **size}
            for metric, (value, low, high) in figures.items()
        ]
        settings = {
            "attacker": ATTACKER,
            "version": version_of(ATTACKER),
            "defence": defence.name,
            "budget_kwh": asked.budget_kwh,
            "training_days": days,
            "library": setup.library.digest()[:12],
            "data": undefended.data,
            "versions": dict(library_versions("numpy", "torch")),
        }
        key = f"{NAME}_{key_of(settings)[:12]}"
        study.record(asked.results, NAME, key, rows, settings, keys=("dataset", "row", "x", "n_days"))


def _label(defence: Defence, budget_kwh: float) -> str:
    """Name a row: the defence, and the battery's budget where it is not the usual one."""
    return defence.name if budget_kwh == Battery().budget_kwh else f"{defence.name}, {budget_kwh:g} kWh a day"


def main() -> None:
    """Parse the options and measure."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--datasets", nargs="+", default=["ukdale", "redd"], choices=["ukdale", "redd"])
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    parser.add_argument("--training-days", nargs="*", type=int, help="numbers of training days, such as 10 40 100")
    parser.add_argument("--budget-kwh", type=float, default=Battery().budget_kwh, help="daily budget of the battery")
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
