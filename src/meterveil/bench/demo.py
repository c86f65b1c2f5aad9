"""The demo's evaluation: few seeds and masked copies, and attackers that fit in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Result, Spec, evaluate, measure_undefended
from meterveil.bench.evaluation_page import defence_rows
from meterveil.bench.results import ThreatModel
from meterveil.bench.trial import Trial
from meterveil.data.household import Household
from meterveil.defenders import DEFAULT_DEFENCE
from meterveil.defenders.defence import Defence, common_setup, find_defence
from meterveil.defenders.random_equal import EQUAL

BUDGET_DAYS = 60.0
"""Simulated days that the manager learns from: a fifth of the paper's."""
PROBE = "cnn"
"""Probe that is trained in seconds; the paper's transformer takes a minute and teaches much the same."""

ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {"fixed": ("co", "fhmm"), "adaptive": ("co", "fhmm")}
SEEDS, COPIES = 3, 3
"""Seeds and masked copies; a full evaluation has five and twelve."""

_COLUMNS = ("defence", "fixed F1", "adaptive F1", "adaptive leak %", "bits a day", "kWh a day", "neutral cost a day")


def demo_defences(run: Path) -> list[Defence]:
    """List the defences to compare: the paper's learned one, its random baseline, and the default one last.

    The random baseline moves as many kWh a day as the trained defence did in training (D8).
    """
    trained = find_defence(str(run))
    moved_kwh = trained.trainings[0].document["figures"]["training_days_moved_kwh"]
    return [*map(find_defence, ("none", f"{EQUAL}{moved_kwh:.1f}")), trained, find_defence(DEFAULT_DEFENCE)]


def measure(
    household: Household, trial: Trial, defences: Sequence[Defence], on_done: Callable[[str], None]
) -> list[Result]:
    """Evaluate each defence on days that nothing was trained on; `on_done` is called after each."""
    spec = Spec(trial, common_setup(defences, seed=trial.seed), ATTACKERS, SEEDS, COPIES)
    undefended = measure_undefended(spec, {trial.test.key: household})
    on_done("no defence")
    results = []
    for defence in defences:
        results.append(evaluate(undefended, defence))
        on_done(defence.name)
    return results


def demo_rows(results: Sequence[Result]) -> list[list[str]]:
    """Return the columns of the table of defences that fit a narrow screen."""
    head, *rows = defence_rows(results)
    kept = [head.index(name) for name in _COLUMNS]
    return [[row[number] for number in kept] for row in (head, *rows)]


def conclusion(results: Sequence[Result]) -> str:
    """Compare the default defence, the last one, with no defence, and say what its certificate covers."""
    f1 = {result.defence.name: _adaptive_f1(result) for result in results}
    default = results[-1].defence.name
    routine = strongest(results[0].cases["adaptive"], results[0].prior, BEST_F1).prior
    words = [
        f"With {default}, the strongest adaptive attacker reaches F1 {f1[default]:.2f}; without a defence it "
        f"reaches {f1['none']:.2f}, and guessing from routine gives {routine:.2f}"
    ]
    if certified := results[-1].masked.certificate:
        words.append(
            f"Whatever the attacker, a day of its readings tells at most {np.median(certified.bits):.1f} bits (median)"
        )
    undertrained = [name for name, score in f1.items() if round(score, 2) < round(routine, 2)]
    if undertrained:
        words.append(
            f"Attackers of {' and '.join(undertrained)} score below guessing from routine: they are "
            "undertrained, which is no success of the defence"
        )
    words.append("The attackers of the demo are small; stronger ones read more of a defence without a certificate")
    return ". ".join(words) + "."


def _adaptive_f1(result: Result) -> float:
    return float(strongest(result.cases["adaptive"], result.prior, BEST_F1).masked.value)
