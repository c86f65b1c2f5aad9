"""The attack that ends the demo: what is read out of one day's meter before and behind each defence.

It runs on what the package itself needs: no network, no torch. The attackers learn from other days of the
household, once bare (D11, fixed) and once as the very defence shows them (adaptive).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from meterveil.attackers.protocol import Attacker, FloatArray, meter_of
from meterveil.attackers.registry import attacker
from meterveil.bench.scoring import score_predictions
from meterveil.core.rollout import rollout
from meterveil.data.household import Household
from meterveil.data.simulation import Run, episodes
from meterveil.defenders import defender
from meterveil.plots.attack import label, predictions_figure
from meterveil.plots.html import Section

TARGETS = ("fridge", "kettle", "microwave")
"""Appliances that are used on the demo day."""

FIXED = ("co", "fhmm", "prior")
STRONGEST = "fhmm"
"""The one that also adapts, and is drawn."""

TRAINING_DAYS = 10
COPIES = 3
"""Masked copies to adapt to: enough for a demo; a measurement takes twelve."""


@dataclass(frozen=True)
class Attack:
    """Hold what was read out of one day, behind each defence."""

    day: Household
    f1: Mapping[tuple[str, str], float]
    """(attacker, defence) -> mean over the appliances."""
    rmse_w: Mapping[tuple[str, str], float]
    said_w: Mapping[str, Mapping[str, FloatArray]]
    """Defence -> appliance -> (minute,) what the strongest says, adapted where there is a defence."""


def attack(household: Household, runs: Sequence[Run]) -> Attack:
    """Let attackers that know the household from its next days read the first day of each run."""
    home = household.select(TARGETS)
    first, *others = home.days()[: TRAINING_DAYS + 1]
    day = home.day(first)
    taught = home.between(others[0], home.days()[TRAINING_DAYS + 1])
    fixed = {name: _fitted(name, [taught]) for name in FIXED}
    f1, rmse_w, said_w = {}, {}, {}
    for run in runs:
        seen = replace(day, aggregate_w=run.meter_w[: len(day.minutes)])
        readers = dict(fixed)
        if np.any(run.battery_w):
            readers[adapted(STRONGEST)] = _fitted(STRONGEST, _copies(taught, run))
        for name, one in readers.items():
            f1[name, run.defence], rmse_w[name, run.defence] = _means(one, seen)
        best = readers.get(adapted(STRONGEST), readers[STRONGEST])
        said = best.predict(meter_of(seen)).watts
        said_w[run.defence] = {target: said[target][0] for target in TARGETS}
    return Attack(day, f1, rmse_w, said_w)


def adapted(name: str) -> str:
    """Name the attacker that learned from masked days."""
    return f"{name}, adapted"


def attack_rows(found: Attack) -> list[list[str]]:
    """Write the scores for people, the head of the table first."""
    defences = list(found.said_w)
    rows = [["read by", *(f"F1 {name}" for name in defences), *(f"RMSE W {name}" for name in defences)]]
    for name in dict.fromkeys(name for name, _ in found.f1):
        f1, rmse_w = (
            [f"{scores[name, one]:.{digits}f}" if (name, one) in scores else "" for one in defences]
            for scores, digits in ((found.f1, 2), (found.rmse_w, 0))
        )
        rows.append([_reader(name), *f1, *rmse_w])
    return rows


def attack_section(found: Attack) -> Section:
    """Put table and picture on a page."""
    names = f"{', '.join(TARGETS[:-1])} and {TARGETS[-1]}"
    words = (
        f"Attackers learned {names} from the {TRAINING_DAYS} days after this one and read it off the meter. "
        "F1 is 1 for a perfect reading; what never looks at the meter still knows habits, and no defence can "
        "push a reader that adapts below it. Drawn is the strongest reader, adapted to the defence where "
        "there is one: said in blue, true in grey."
    )
    truth = {target: found.day.appliances_w[target] for target in TARGETS}
    figure = predictions_figure(found.day.minutes, truth, found.said_w).update_layout(showlegend=False)
    return Section("What an attacker reads", words, attack_rows(found), figure)


def _fitted(name: str, households: Sequence[Household]) -> Attacker:
    return attacker(name).fit(households, TARGETS, np.random.default_rng(0))


def _copies(taught: Household, run: Run) -> list[Household]:
    """Show the training days as this defence would, with other dice than the run's.

    Each day is an episode of its own, as the run's day is, so that all of them go in one batch.
    """
    wanted, setup = taught.days(), run.setup
    scenario = episodes(taught, wanted * COPIES, setup.tariff)
    rngs = [np.random.default_rng([setup.seed, row, 0xADA9]) for row in range(len(wanted) * COPIES)]
    trace = rollout(defender(run.defence), setup.battery, setup.library, scenario, rngs)
    copies = trace.meter_w.reshape(COPIES, -1)
    return [replace(taught, aggregate_w=meter_w) for meter_w in copies]


def _means(one: Attacker, seen: Household) -> tuple[float, float]:
    """Average over the appliances; F1 from the on/off head where there is one."""
    scores = score_predictions([one.predict(meter_of(seen))], [seen], TARGETS)
    f1 = [scores.get((target, "f1_head"), scores[target, "f1"])[0] for target in TARGETS]
    return float(np.nanmean(f1)), float(np.mean([scores[target, "rmse"][0] for target in TARGETS]))


def _reader(name: str) -> str:
    known, _, how = name.partition(", ")
    return (
        f"{label(known)}, {how}"
        if how
        else f"{label(known)} (never looks)"
        if known == "prior"
        else label(known)
    )
