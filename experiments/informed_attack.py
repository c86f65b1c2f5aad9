"""Measure how much more an attacker reads that knows more days: `python -m experiments.informed_attack`.

Makes results/study_informed_attack.csv and the table "More training days" of docs/attackers.md: F1 of the attacker
that knows the defence (D17) after 10, 40 or 100 training days of UK-DALE house 1, beside the prior. All read the
same days, those after the hundredth. `--budget-kwh` gives the battery another daily budget. Fits and rows of
finished defences are kept; `--picture` only makes the table.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pandas as pd

from experiments import study
from meterveil.attackers.registry import version_of
from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Spec, evaluate, measure_undefended
from meterveil.bench.metrics import UNDERTRAINED
from meterveil.bench.trial import Trial, longer_training, own_house
from meterveil.core.battery import Battery
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import UKDALE_HOUSE1, Protocol
from meterveil.defenders.defence import Defence, common_setup, find_defences

NAME = "informed_attack"
ATTACKER = "informed"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys", "veil")
TRAINING_DAYS = (10, 40, 100)
PAGE = Path("docs/attackers.md")
SEEDS = 2
"""Draws of a defence's random numbers on the test days."""
RESERVED = 100
"""Most training days: no number of training days reads a day before the end of these."""


def measure(asked: argparse.Namespace) -> None:
    """Measure every defence with every number of training days, and record each as soon as it is finished."""
    home = load(data_folder(asked.data) / UKDALE_HOUSE1.dataset, UKDALE_HOUSE1.house)
    for count in asked.training_days:
        _measure_trial(asked, _later_days(UKDALE_HOUSE1, home, count), home)


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


def page_table(table: pd.DataFrame) -> str:
    """Write F1 with its interval and leak of each defence, one column for each number of training days."""
    values = table.set_index(["row", "x", "metric"])
    counts = sorted(int(count) for count in table["x"].unique())
    rows = [
        [f"`{name}`", *(_cell(values, name, count) for count in counts)]
        for name in sorted(set(table["row"]), key=lambda name: (name.partition(",")[2], order(name)))
    ]
    habits = table[table["metric"] == "prior_f1"].drop_duplicates("x").set_index("x")["value"]
    rows.append(["habits alone", *(f"{habits[count]:.2f}" for count in counts)])
    return study.table(["defence", *(f"{count} training days" for count in counts)], rows)


def order(label: str) -> int:
    """Place a row as its defence comes among the defences."""
    name = label.partition(",")[0]
    return DEFENCES.index(name) if name in DEFENCES else len(DEFENCES)


def _cell(values: pd.DataFrame, name: str, count: int) -> str:
    if (name, count, "f1") not in values.index:
        return ""
    f1, low, high = (values[column].loc[name, count, "f1"] for column in ("value", "low", "high"))
    leak = float(values["value"].loc[name, count, "f1_leak"])
    return f"{f1:.2f} [{low:.2f}, {high:.2f}], {UNDERTRAINED if round(leak, 2) < 0.0 else f'{leak:z.0%}'}"


def main() -> None:
    """Parse the options, measure, and fill the page."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    parser.add_argument("--training-days", nargs="+", type=int, default=list(TRAINING_DAYS))
    parser.add_argument("--budget-kwh", type=float, default=Battery().budget_kwh, help="daily budget of the battery")
    parser.add_argument("--page", type=Path, default=PAGE, help="page with the table")
    asked = parser.parse_args()
    if not asked.picture:
        measure(asked)
    table = study.read(asked.results, NAME)
    asked.page.write_text(study.put(asked.page.read_text(), "training days", page_table(table)))


if __name__ == "__main__":
    main()
