"""The demo's measurement: a freshly trained defence beside others, before fixed and adaptive attackers.

It is `meterveil evaluate` on a small scale: few seeds and copies, and attackers that fit in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from meterveil.bench.cards import ThreatModel
from meterveil.bench.evaluation.defences import EQUAL, Contender, common_setup, contender
from meterveil.bench.evaluation.measure import Result, Spec, evaluate, measure_bare
from meterveil.bench.evaluation.page import defence_rows
from meterveil.bench.evaluation.scores import BEST_F1, strongest
from meterveil.bench.strength import Trial
from meterveil.data.household import Household

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


def demo_contenders(run: Path) -> list[Contender]:
    """Name what is compared; chance moves as many kWh a day as the trained policy did in training (D8)."""
    trained = contender(str(run))
    moved_kwh = trained.runs[0].document["figures"]["training_days_moved_kwh"]
    names = ("none", f"{EQUAL}{moved_kwh:.1f}", "flat", "flat_decoys")
    return [*(contender(name) for name in names), trained]


def measure(
    household: Household, trial: Trial, found: Sequence[Contender], on_done: Callable[[str], None]
) -> list[Result]:
    """Let attackers read the days that nobody learned from, bare and behind each defence."""
    spec = Spec(trial, common_setup(found, seed=trial.seed), ATTACKERS, SEEDS, COPIES)
    bare = measure_bare(spec, {trial.test.key: household})
    on_done("bare meter")
    measured = []
    for one in found:
        measured.append(evaluate(bare, one))
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
