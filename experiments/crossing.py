"""Measure attackers without sub-meters in your house: `python -m experiments.crossing --houses ukdale_2`.

Makes results/study_crossing.csv, the table "Without sub-meters in your house" of docs/behaviour.md. The attacker
knows defence, battery and tariff (D17) and learns from other houses, masked by the same defence. The prior beside
it knows the habits of those houses only.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments import reading, study
from meterveil.bench.trial import HouseDays, Houses, Trial
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import Dataset
from meterveil.data.splits import HELD_OUT_COVERAGE, Days, day_coverage
from meterveil.defenders.defence import common_setup, find_defences

NAME = "crossing"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys", "veil")
MOST_DAYS = 40
"""Days of each house that attackers learn from, spread evenly over its record."""

Key = tuple[Dataset, int]
_KITCHEN = ("kettle", "microwave", "dishwasher")
_BRITISH: tuple[Key, ...] = (("ukdale", 1), ("ukdale", 2), ("refit", 2))
CROSSINGS: dict[str, tuple[Key, tuple[Key, ...], tuple[str, ...]]] = {
    **{
        f"{name}_{n}": ((name, n), tuple(key for key in _BRITISH if key != (name, n)), _KITCHEN) for name, n in _BRITISH
    },
    "redd_2": (("redd", 2), (("redd", 1), ("redd", 3)), ("fridge", "microwave", "dishwasher")),
}
"""House that is read -> its key, the houses that are learned from, and the appliances that all of them meter."""


def crossing_trial(name: str, folder: Path) -> tuple[Trial, Houses]:
    """Learn from the well-covered days of other houses and read those of this one."""
    read, learned, targets = CROSSINGS[name]
    houses: dict[Key, Household] = {}
    for key in (read, *learned):
        houses[key] = load(folder / key[0], key[1]).select(targets)
    training = tuple(HouseDays(*key, _spread(_covered_days(houses[key]))) for key in learned)
    test = HouseDays(*read, _covered_days(houses[read]))
    return Trial(training, test, targets, f"{test.days[0]}..{test.days[-1]}"), houses


def measure(options: argparse.Namespace) -> None:
    """Measure every defence in every house, and record each as soon as it is finished."""
    defences = find_defences(options.defences)
    setup = common_setup(defences, options.library)
    for house in options.houses:
        trial, houses = crossing_trial(house, data_folder(options.data))
        learned = " and ".join(f"{name} {number}" for name, number in CROSSINGS[house][1])
        for defence in defences:
            labels = {"dataset": house, "row": defence.name, "note": f"learned from {learned}"}
            rows = reading.figures(reading.read(trial, houses, defence, setup, options.epochs), **labels)
            reading.record(options, NAME, trial, defence, setup, rows)


def _covered_days(home: Household) -> Days:
    return tuple(day for day, share in day_coverage(home).items() if share >= HELD_OUT_COVERAGE)


def _spread(days: Days) -> Days:
    step = -(-len(days) // MOST_DAYS)
    return days[::step]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the given houses."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(CROSSINGS), choices=list(CROSSINGS))
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    parser.add_argument("--epochs", type=int, help="shorter training of the attacker")
    measure(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
