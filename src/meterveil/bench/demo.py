"""The demo's evaluation: few seeds and masked copies, and attackers that fit in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Result, Spec, evaluate, measure_undefended
from meterveil.bench.results import ThreatModel
from meterveil.bench.trial import Trial
from meterveil.data.household import Household
from meterveil.defenders import DEFAULT_DEFENCE
from meterveil.defenders.defence import Defence, common_setup, find_defence
from meterveil.defenders.random import EQUAL

BUDGET_DAYS = 60.0
"""Simulated days that the manager learns from: a fifth of the paper's."""
PROBE = "cnn"
"""Probe that is trained in seconds; the paper's transformer takes a minute and teaches much the same."""

ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {"fixed": ("co", "fhmm"), "adaptive": ("co", "fhmm")}
SEEDS, COPIES = 3, 3
"""Seeds and masked copies; a full evaluation has five and twelve."""

_HEAD = ("defence", "reader", "reader who knows it", "bits at most, median day", "kWh a day", "cost a day")


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


def demo_title(results: Sequence[Result], home: str) -> str:
    """Explain the scores of the table."""
    return (
        f"{home}. Score of the best reader: 100 = every appliance right, {100 * _routine(results):.0f} = routine only"
    )


def demo_rows(results: Sequence[Result]) -> list[list[str]]:
    """Write one row for each defence, the head first: what readers get, the certificate, energy and cost."""
    return [list(_HEAD), *map(_row, results)]


def _row(result: Result) -> list[str]:
    physical, certified = result.masked.physical, result.masked.certificate
    return [
        result.defence.name,
        *(f"{100 * _f1(result, threat):.0f}" for threat in ATTACKERS),
        f"{np.median(certified.bits):,.1f}" if certified else "no bound",
        f"{physical.throughput_kwh.mean():.1f}",
        f"{physical.soc_neutral_cost.mean():.2f}",
    ]


def conclusion(results: Sequence[Result]) -> str:
    """Compare the default defence, the last one, with no defence, and say what its certificate covers."""
    f1 = {result.defence.name: _f1(result, "adaptive") for result in results}
    most = {result.defence.name: strongest(result.cases["adaptive"], result.prior, BEST_F1) for result in results}
    default, routine = results[-1].defence.name, _routine(results)
    words = [
        f"With {default}, the best reader that knows it gets {100 * f1[default]:.0f} of 100; without a defence it "
        f"gets {100 * f1['none']:.0f}, and guessing from routine gives {100 * routine:.0f}"
    ]
    if certified := results[-1].masked.certificate:
        words.append(
            f"Whatever the attacker, a day of its readings tells at most {np.median(certified.bits):.1f} bits "
            "(median day)"
        )
    if undertrained := [name for name, reader in most.items() if reader.masked.value < reader.prior]:
        words.append(
            f"The readers of the demo are small: with {' and '.join(undertrained)} they scored below guessing from "
            "the usual hours of use; the table shows the score of that guess"
        )
    words.append("Stronger readers may get more; the number of bits is an upper bound for every reader")
    return ". ".join(words) + "."


def _f1(result: Result, threat: ThreatModel) -> float:
    """Return F1 of the best reader; one that knows the defence can always guess from routine (D17)."""
    most = strongest(result.cases[threat], result.prior, BEST_F1)
    return float(max(most.masked.value, most.prior) if threat == "adaptive" else most.masked.value)


def _routine(results: Sequence[Result]) -> float:
    return float(strongest(results[0].cases["adaptive"], results[0].prior, BEST_F1).prior)
