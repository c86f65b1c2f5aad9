"""The demo's measurement: a freshly trained defence beside others, before fixed and adaptive attackers.

It is `meterveil evaluate` on a small scale: few seeds and copies, and attackers that fit in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from meterveil.bench.cases import BEST_F1, strongest
from meterveil.bench.evaluate import Result, Spec, evaluate, measure_undefended
from meterveil.bench.evaluation_page import defence_rows
from meterveil.bench.results import ThreatModel
from meterveil.bench.trial import Trial
from meterveil.data.household import Household
from meterveil.defenders.defence import Defence, common_setup, find_defence
from meterveil.defenders.random_equal import EQUAL

BUDGET_DAYS = 60.0
"""Simulated days that the manager learns from: a fifth of the paper's."""
PROBE = "cnn"
"""Learns to copy the load in seconds; a transformer takes a minute and teaches much the same."""

ATTACKERS: Mapping[ThreatModel, tuple[str, ...]] = {"fixed": ("co", "fhmm"), "adaptive": ("co", "fhmm")}
SEEDS, COPIES = 3, 3
"""Enough for a demo; a measurement takes five and twelve."""

_COLUMNS = (
    "defence",
    "fixed F1",
    "adaptive F1",
    "adaptive leak %",
    "kWh a day",
    "SoC at midnight",
    "neutral cost a day",
)


def demo_contenders(run: Path) -> list[Defence]:
    """Name what is compared; chance moves as many kWh a day as the trained policy did in training (D8)."""
    trained = find_defence(str(run))
    moved_kwh = trained.trainings[0].document["figures"]["training_days_moved_kwh"]
    names = ("none", f"{EQUAL}{moved_kwh:.1f}", "flat", "flat_decoys")
    return [*(find_defence(name) for name in names), trained]


def measure(
    household: Household, trial: Trial, found: Sequence[Defence], on_done: Callable[[str], None]
) -> list[Result]:
    """Let attackers read the days that nobody learned from, bare and behind each defence."""
    spec = Spec(trial, common_setup(found, seed=trial.seed), ATTACKERS, SEEDS, COPIES)
    undefended = measure_undefended(spec, {trial.test.key: household})
    on_done("bare meter")
    measured = []
    for one in found:
        measured.append(evaluate(undefended, one))
        on_done(one.name)
    return measured


def demo_rows(measured: Sequence[Result]) -> list[list[str]]:
    """Keep of the table of defences what fits on a narrow screen."""
    head, *rows = defence_rows(measured)
    kept = [head.index(name) for name in _COLUMNS]
    return [[row[number] for number in kept] for row in (head, *rows)]


def habits_f1(measured: Sequence[Result]) -> float:
    """Say what an attacker reads that knows the habits and never looks at the meter."""
    return strongest(measured[0].cases["fixed"], measured[0].prior, BEST_F1).prior


def conclusion(measured: Sequence[Result]) -> str:
    """Say what the table comes to: who hides most from adaptive attackers, and how the trained one compares.

    What is trained comes last; it is compared with the best of the others, and with chance that moves as
    much as it does.
    """
    reads = [(one.defence.name, strongest(one.cases["adaptive"], one.prior, BEST_F1)) for one in measured]
    left = {name: round(read.masked.value, 2) for name, read in reads}
    trained, others = measured[-1].defence.name, [name for name, _ in reads[:-1]]
    rival, most = min(others, key=left.__getitem__), min(left, key=left.__getitem__)
    chance = next(name for name in others if name.startswith(EQUAL))
    compared = {
        rival: f"{rival}, the best of the others",
        chance: f"{chance}, which is chance that moves as much energy",
    }
    gaps = [f"{_than(left[trained] - left[name])} {words}" for name, words in compared.items()]
    habits = round(habits_f1(measured), 2)
    blind = [name for name, f1 in left.items() if f1 <= habits]
    useless = f" Looking at the meter gains them nothing behind {', '.join(blind)}." if blind else ""
    return (
        f"{most} hides most from adaptive attackers: behind it they read F1 {left[most]:.2f}, where habits "
        f"alone give {habits:.2f}. Behind {trained} they read {left[trained]:.2f}: {'; '.join(gaps)}."
        f"{useless}"
    )


def _than(gap: float) -> str:
    size = f"{abs(gap):.2f}"
    return "as much as behind" if size == "0.00" else f"{size} {'more' if gap > 0 else 'less'} than behind"
