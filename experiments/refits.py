"""Measure how much fits of the same attack differ: `python -m experiments.refits --houses refit_2`.

Makes results/study_refits.csv and the table "Fits of the same attack" of docs/attackers.md: what the attacker that
knows the defence (D17) reads of the held-out days after each of several fits, which differ in their random numbers
alone. The first fit is the one of the leaderboards. `--picture` only makes the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from experiments import behaviour, reading, study
from meterveil.data.files import data_folder
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.defenders.defence import common_setup, find_defences

NAME = "refits"
FITS = 3
DEFENCES = ("none", "veil", "best_effort")
"""No defence, and defences with little above habits to read, where chance decides whether networks count."""
HOUSES = {**behaviour.HOUSES, "redd_2": REDD_HOUSE2}
HOUSE_NAMES = {**behaviour.HOUSE_NAMES, "redd_2": "REDD 2"}
PAGE = Path("docs/attackers.md")


def measure(options: argparse.Namespace) -> None:
    """Fit the attack several times in each house, and record each fit as soon as it is finished."""
    [defence] = find_defences([options.defence])
    setup = common_setup([defence], options.library)
    for house in options.houses:
        trial, houses = behaviour.house_trial(HOUSES[house], data_folder(options.data))
        for seed in range(FITS):
            fitted = replace(trial, seed=seed)
            answers = reading.read(fitted, houses, defence, setup)
            rows = reading.figures(answers, dataset=house, row=defence.name, x=seed + 1)
            kept = [row for row in rows if row["metric"].endswith(("f1", "recall"))]
            reading.record(options, NAME, fitted, defence, setup, kept)


def page_table(table: pd.DataFrame) -> str:
    """Write the mean F1 of each fit, and the appliances that it reads better than habits by 0.02 or more."""
    values = table.set_index(["dataset", "row", "x", "attacker", "metric"])["value"].sort_index()
    known = set(zip(table["dataset"], table["row"], strict=True))
    rows = []
    for house, defence in sorted(known, key=lambda pair: (DEFENCES.index(pair[1]), list(HOUSES).index(pair[0]))):
        part = table[(table["dataset"] == house) & (table["row"] == defence)]
        names = [name for name in part["metric"].unique() if name.endswith("_f1") and "_use_" not in name]
        for fit in sorted(part["x"].unique()):
            read, habits = (values[house, defence, fit, attacker] for attacker in (reading.INFORMED, reading.PRIOR))
            better = [
                f"{name.removesuffix('_f1').replace('_', ' ')} {read[name]:.2f} ({habits[name]:.2f})"
                for name in names
                if read[name] >= habits[name] + 0.02
            ]
            kettle = f"{read['kettle_use_recall']:.0%}" if "kettle_use_recall" in read else ""
            numbers = f"{read['f1']:.2f}", f"{habits['f1']:.2f}", kettle
            rows.append((HOUSE_NAMES[house], f"`{defence}`", f"{fit:.0f}", ", ".join(better) or "none", *numbers))
    head = ("house", "defence", "fit", "appliances read better than by habits", "F1", "habits", "kettle uses found")
    return study.table(head, rows, texts=4)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options, measure, and fill the page."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(HOUSES), choices=list(HOUSES))
    parser.add_argument("--defence", default="veil", choices=DEFENCES)
    parser.add_argument("--page", type=Path, default=PAGE, help="page with the table")
    options = parser.parse_args(arguments)
    options.epochs = None
    if not options.picture:
        measure(options)
    table = study.read(options.results, NAME)
    options.page.write_text(study.put(options.page.read_text(), NAME, page_table(table)))


if __name__ == "__main__":
    main()
