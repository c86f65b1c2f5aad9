"""Measure untrained defences against the informed attacker: `python -m experiments.informed_attack`.

Makes results/study_informed_attack.csv, the table of docs/threat-model.md: F1 of the attacker that knows the
defence (D17) over all held-out days, beside the prior and the same attacker without a defence. One fit takes
two to five minutes of one core; fits and rows of finished defences are kept.
"""

from __future__ import annotations

import argparse

from experiments import study
from meterveil.attackers.registry import version_of
from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Spec, evaluate, measure_undefended
from meterveil.bench.trial import protocol_trial
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import protocol
from meterveil.defenders.defence import common_setup, find_defences

NAME = "informed_attack"
ATTACKER = "informed"
DEFENCES = ("none", "random_equal:8", "flat", "flat_decoys")
SEEDS = 2
"""Draws of a defence's random numbers on the test days."""


def measure(asked: argparse.Namespace) -> None:
    """Measure every defence on every data set, and record each as soon as it is finished."""
    for dataset in asked.datasets:
        chosen = protocol(dataset)
        home = load(data_folder(asked.data) / dataset, chosen.house)
        trial = protocol_trial(chosen, home, "many")
        defences = find_defences(asked.defences)
        setup = common_setup(defences, asked.library)
        spec = Spec(trial, setup, {"adaptive": (ATTACKER,)}, SEEDS)
        undefended = measure_undefended(spec, {part.key: home for part in (*trial.training, trial.test)}, 1)
        for defence in defences:
            result = evaluate(undefended, defence, 1)
            read = strongest(result.cases["adaptive"], result.prior, BEST_F1)
            figures = {
                "f1": read.masked,
                "f1_leak": read.leak,
                "f1_undefended": (read.raw, None, None),
                "prior_f1": (read.prior, None, None),
            }
            shared = {"dataset": dataset, "row": defence.name, "seeds": SEEDS, "n_days": len(trial.test.days)}
            rows = [
                {**shared, "metric": metric, "value": value, "low": low, "high": high}
                for metric, (value, low, high) in figures.items()
            ]
            settings = {
                "attacker": ATTACKER,
                "version": version_of(ATTACKER),
                "defence": defence.name,
                "library": setup.library.digest()[:12],
                "data": undefended.data,
                "versions": dict(library_versions("numpy", "torch")),
            }
            study.record(asked.results, NAME, f"{NAME}_{key_of(settings)[:12]}", rows, settings)


def main() -> None:
    """Parse the options and measure."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--datasets", nargs="+", default=["ukdale", "redd"], choices=["ukdale", "redd"])
    parser.add_argument("--defences", nargs="+", default=list(DEFENCES))
    measure(parser.parse_args())


if __name__ == "__main__":
    main()
