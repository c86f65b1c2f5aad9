"""Measure what a meter tells about the people in a house: `python -m experiments.behaviour --houses ukdale_1`.

Makes results/study_behaviour.csv, the tables "What people fear" and "Which meter" of docs/evaluation.md and their
pictures: uses of the kettle, the first and last activity of the day, the evening meal and absence, read by an
attacker that knows the defence (D17), beside what habits tell. `--meters` are the readings that the attacker sees.
One fit takes one to three minutes of one core; fits are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments import reading, study
from meterveil.bench.trial import HouseDays, Houses, Trial, attack_trial
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import STATES, UKDALE_HOUSE1, Dataset
from meterveil.data.simulation import Resolution
from meterveil.data.splits import HELD_OUT_COVERAGE, day_coverage
from meterveil.data.states import with_states
from meterveil.defenders.defence import common_setup, find_defences

NAME = "behaviour"
TRAINING_DAYS = 40
"""Days that attackers learn from, or half of the days of a house with fewer than twice as many."""
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys")
HOUSES: dict[str, tuple[Dataset, int, tuple[str, ...]]] = {
    "ukdale_1": ("ukdale", 1, UKDALE_HOUSE1.many_day_targets),
    "ukdale_2": ("ukdale", 2, ("fridge", "kettle", "microwave", "dishwasher")),
    "refit_2": ("refit", 2, ("kettle", "microwave", "dishwasher")),
}
"""House -> data set, number and appliances. REDD house 2 has two test days: too few for questions about days."""
METERS = {
    "1 min": Resolution(),
    "1 min, 10 W": Resolution(step_w=10.0),
    "15 min": Resolution(15),
    "30 min": Resolution(30),
}


def house_trial(name: str, folder: Path) -> tuple[Trial, Houses]:
    """Learn from the first days of a house and read the later ones; states are further targets."""
    dataset, number, appliances = HOUSES[name]
    home = with_states(load(folder / dataset, number).select(appliances))
    targets = (*appliances, *STATES)
    if name == "ukdale_1":
        trial = replace(attack_trial(UKDALE_HOUSE1, home, TRAINING_DAYS, held_out=True), targets=targets)
    else:
        days = [day for day, share in day_coverage(home).items() if share >= HELD_OUT_COVERAGE]
        count = min(TRAINING_DAYS, len(days) // 2)
        training, test = (HouseDays(dataset, number, tuple(part)) for part in (days[:count], days[count:]))
        trial = Trial((training,), test, targets, f"{test.days[0]}..{test.days[-1]}")
    return trial, {trial.test.key: home}


def measure(options: argparse.Namespace) -> None:
    """Measure every defence in every house with every meter, and record each as soon as it is finished."""
    defences = find_defences(options.defences)
    for meter in options.meters:
        setup = replace(common_setup(defences, options.library), resolution=METERS[meter])
        for house in options.houses:
            trial, houses = house_trial(house, data_folder(options.data))
            for defence in defences:
                labels = {"dataset": house, "row": defence.name, "meter": meter}
                rows = reading.figures(reading.read(trial, houses, defence, setup), **labels)
                reading.record(options, NAME, trial, defence, setup, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and draw what is recorded."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(HOUSES), choices=list(HOUSES))
    parser.add_argument("--meters", nargs="+", default=["1 min"], choices=list(METERS))
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    options = parser.parse_args(arguments)
    if not options.picture:
        measure(options)


if __name__ == "__main__":
    main()
