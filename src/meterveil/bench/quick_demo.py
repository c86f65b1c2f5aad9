"""The quick demo: three untrained defences on one day, and attackers that need no extra package.

Attackers learn from other days of the household: without a defence (fixed) and with it (adaptive, D11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from meterveil.attackers.protocol import Attacker, meter_of
from meterveil.attackers.registry import attacker
from meterveil.bench.scoring import score
from meterveil.bench.simulation import simulate
from meterveil.bench.simulation_page import caption, explain, figure_rows
from meterveil.core.arrays import FloatArray
from meterveil.data import outputs
from meterveil.data.household import Household
from meterveil.data.signatures import library
from meterveil.data.simulation import Run, Setup, figures, mask
from meterveil.data.synthetic.house import FIRST_DAY
from meterveil.defenders import defender
from meterveil.plots.attack import label, predictions_figure
from meterveil.plots.html import Section, page
from meterveil.plots.library import library_figure
from meterveil.plots.simulation import comparison_figure, day_figure

DEFENCES = ("none", "random_equal", "flat")
FILES = ("report.html",)
TARGETS = ("fridge", "kettle", "microwave")
"""Appliances that are used on the demo day."""

FIXED = ("co", "fhmm", "prior")
ADAPTIVE = "fhmm"
"""Attacker that also adapts, and is drawn."""
TRAINING_DAYS = 10
COPIES = 3
"""Masked copies of the training days; a full evaluation has twelve."""

_DICE = 0xADA9


@dataclass(frozen=True)
class Attack:
    """Scores of every attacker with each defence, mean over the appliances."""

    day: Household
    f1: Mapping[tuple[str, str], float]
    """(attacker, defence) -> F1."""
    rmse_w: Mapping[tuple[str, str], float]
    predicted_w: Mapping[str, Mapping[str, FloatArray]]
    """Defence -> appliance -> (minute,) prediction of `ADAPTIVE`, adapted where there is a defence."""


def demo_runs(household: Household, seed: int = 0) -> list[Run]:
    """Run each defence on the same day of the embedded household."""
    setup = Setup(library(), seed=seed)
    return [simulate(household, name, FIRST_DAY, 1, setup) for name in DEFENCES]


def attack(household: Household, runs: Sequence[Run]) -> Attack:
    """Attack the first day of each run with attackers that learned from the days after it."""
    home = household.select(TARGETS)
    first, *others = home.days()[: TRAINING_DAYS + 2]
    day, training = home.day(first), home.between(others[0], others[-1])
    fixed = {name: _fitted(name, [training]) for name in FIXED}
    f1, rmse_w, predicted_w = {}, {}, {}
    for run in runs:
        shown = replace(day, aggregate_w=run.meter_w[: len(day.minutes)])
        attackers = dict(fixed)
        if np.any(run.battery_w):
            rngs = [np.random.default_rng([run.setup.seed, copy, _DICE]) for copy in range(COPIES)]
            copies = mask(defender(run.defence), run.setup, training, rngs).households
            attackers[adapted(ADAPTIVE)] = _fitted(ADAPTIVE, copies)
        for name, fitted in attackers.items():
            f1[name, run.defence], rmse_w[name, run.defence] = _means(fitted, shown)
        strongest = attackers.get(adapted(ADAPTIVE), attackers[ADAPTIVE])
        watts = strongest.predict(meter_of(shown)).watts
        predicted_w[run.defence] = {target: watts[target][0] for target in TARGETS}
    return Attack(day, f1, rmse_w, predicted_w)


def adapted(name: str) -> str:
    """Name the attacker that learned from masked days."""
    return f"{name}, adapted"


def attack_rows(scores: Attack) -> list[list[str]]:
    """Write the scores as a table, its head first; a star marks an undertrained attacker (D17)."""
    defences = list(scores.predicted_w)
    rows = [["attacker", *(f"F1 {name}" for name in defences), *(f"RMSE W {name}" for name in defences)]]
    for name in dict.fromkeys(name for name, _ in scores.f1):
        known = [(name, each) for each in defences if (name, each) in scores.f1]
        missing = [""] * (len(defences) - len(known))
        f1 = [f"{scores.f1[case]:.2f}{_star(scores, *case)}" for case in known]
        rmse_w = [f"{scores.rmse_w[case]:.0f}" for case in known]
        rows.append([_title(name), *missing, *f1, *missing, *rmse_w])
    return rows


def note(scores: Attack) -> str:
    """Explain the stars of the table, where there are any."""
    if not any(_star(scores, *case) for case in scores.f1):
        return ""
    return "* below the prior, so undertrained: it needs more data to measure this defence."


def write_report(runs: Sequence[Run], scores: Attack, folder: Path) -> Path:
    """Write the page: defences side by side, the attack, each defence, and the signatures."""
    day = runs[0].days()[0]
    table = figure_rows({run.defence: figures(run) for run in runs})
    words = "Power curves of appliances; random_equal charges or discharges the battery along one of them."
    sections = [
        Section("Side by side", "", table, comparison_figure(runs)),
        _attack_section(scores),
        *(Section(run.defence, caption(run), (), day_figure(run)) for run in runs if np.any(run.battery_w)),
        Section("Appliance signatures", words, (), library_figure(runs[0].setup.library)),
    ]
    title = f"One day in the {runs[0].household} household, {day:%d %B %Y}"
    return outputs.write_text(folder / FILES[0], page(title, sections, explain(runs[0])))


def _attack_section(scores: Attack) -> Section:
    names = f"{', '.join(TARGETS[:-1])} and {TARGETS[-1]}"
    words = (
        f"Attackers learned {names} from {TRAINING_DAYS} other days and read them off the meter of this day. "
        "F1 is 1 for a perfect reading. The prior guesses from routine and never sees the meter. Drawn is "
        f"{label(ADAPTIVE)}, adapted where there is a defence: prediction in blue, truth in grey. "
        f"{note(scores)}"
    )
    truth_w = {target: scores.day.appliances_w[target] for target in TARGETS}
    figure = predictions_figure(scores.day.minutes, truth_w, scores.predicted_w)
    return Section("What attackers read", words, attack_rows(scores), figure.update_layout(showlegend=False))


def _fitted(name: str, households: Sequence[Household]) -> Attacker:
    return attacker(name).fit(households, TARGETS, np.random.default_rng(0))


def _means(fitted: Attacker, day: Household) -> tuple[float, float]:
    """Return F1, from the on/off head where there is one, and RMSE."""
    scores = score(fitted, [day], TARGETS)
    f1 = [scores.get((target, "f1_head"), scores[target, "f1"])[0] for target in TARGETS]
    return float(np.nanmean(f1)), float(np.mean([scores[target, "rmse"][0] for target in TARGETS]))


def _star(scores: Attack, name: str, defence: str) -> str:
    is_below = scores.f1[name, defence] < scores.f1["prior", defence]
    return "*" if name == adapted(ADAPTIVE) and is_below else ""


def _title(name: str) -> str:
    plain, comma, how = name.partition(", ")
    return f"{label(plain)}{comma}{how}" + (" (never looks)" if plain == "prior" else "")
