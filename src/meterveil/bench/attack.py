"""Attacks as figures: attacker strength without a defence, and adaptive curves against a defence (D11).

An undertrained adaptive attacker overstates protection. A curve shows its score over the masked copies, or
the epochs, that it learned from; where it still rises, the defence is not measured yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from meterveil.attackers.fitting import Options, fit
from meterveil.attackers.protocol import Prediction, meter_of
from meterveil.attackers.registry import ATTACKERS, attacker, version_of
from meterveil.attackers.threat import COPIES, adaptive, fixed
from meterveil.bench.attack_tables import CURVE
from meterveil.bench.cases import Scores, score, score_predictions
from meterveil.bench.evaluate import OnDone, held_out_rngs
from meterveil.bench.figures import NOT_USED, number
from meterveil.bench.metrics import FloatArray
from meterveil.bench.results import Figure, Run, battery_label, current_commit
from meterveil.bench.trial import Houses, Trial
from meterveil.core.rollout import Policy
from meterveil.data.cache import household_digest, key_of, library_versions
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, mask
from meterveil.data.splits import check_recorded, consecutive_pieces
from meterveil.errors import InputError

VERSION = 1
"""Version of the figures; raise it when a change alters the figures of an attack."""

DEFAULT_COPIES = (0, 1, 3, 6, 12, 24)
DRAWS = 5
"""Masked forms of the test days that are read, each with randomness that no attacker has seen."""


class Readings(NamedTuple):
    """Predictions of the attackers for the test days, and the truth."""

    trial: Trial
    days: tuple[Household, ...]
    predictions: Mapping[str, tuple[Prediction, ...]]  # attacker -> one per day


def read(
    trial: Trial,
    houses: Houses,
    attackers: Sequence[str],
    workers: int = 2,
    on_done: OnDone | None = None,
) -> Readings:
    """Fit attackers on the training days and let them read the test days without a defence."""
    home = houses[trial.test.key].select(trial.targets)
    check_recorded(home, trial.test.days)
    training = trial.training_households(houses)
    fitted = fit(attackers, training, trial.fitted, trial.seed, workers, on_done)
    days = tuple(home.day(day) for day in trial.test.days)
    predictions = {name: tuple(one.predict(meter_of(day)) for day in days) for name, one in fitted.items()}
    return Readings(trial, days, predictions)


def strength_figures(readings: Readings, run: str) -> list[Figure]:
    """Score the predictions: a figure for each attacker, target and metric."""
    trial = readings.trial
    scores = {
        name: score_predictions(predictions, readings.days, trial.read)
        for name, predictions in readings.predictions.items()
    }
    return _figures(replace(_base(trial, run), threat="clean", training=trial.training_label), scores)


def run_of(trial: Trial, houses: Houses, attackers: Sequence[str], **settings: Any) -> Run:
    """Describe an attack for the runs table."""
    described = {**trial.settings, "attackers": sorted(attackers), **settings}
    digests = [household_digest(home, trial.fitted) for home in trial.training_households(houses)]
    data = key_of(digests, household_digest(houses[trial.test.key].select(trial.targets), trial.targets))
    versions = library_versions("numpy", "scipy", "torch")
    producers = {"attack": VERSION, **{name: version_of(name) for name in attackers}}
    key = key_of("attack", trial.identity, described, data, versions, producers)
    return Run(key, described, data, versions, current_commit())


@dataclass(frozen=True)
class Point:
    """Amount of training of an attacker."""

    copies: int = COPIES
    """Masked copies of the training days; with 0 it learns from clean days and never sees the defence."""
    epochs: int | None = None
    """Most epochs of training; None for as many as its recipe says."""

    def training_label(self, trial: Trial) -> str:
        """Name in results for what the attackers learned from."""
        copies = f" x {self.copies} copies" if self.copies else ""
        epochs = "" if self.epochs is None else f", {self.epochs} epochs"
        return f"{trial.training_label}{copies}{epochs}"


@dataclass(frozen=True)
class Curve:
    """House under attack, and the defence that masks its meter."""

    trial: Trial
    """Its attackers learn from the house that they read."""
    name: str
    """Label of the defence in results."""
    policy: Policy
    setup: Setup
    draws: int = DRAWS

    def run(self, point: Point, houses: Houses, names: Sequence[str]) -> Run:
        """Describe a point of the curve for the runs table."""
        library = self.setup.library.digest()[:12]
        return run_of(
            self.trial,
            houses,
            names,
            subject=CURVE,
            defence=self.name,
            library=library,
            draws=self.draws,
            learned_from=self.trial.training_label,
            copies=point.copies,
            epochs=point.epochs,
        )


def point_figures(
    curve: Curve,
    point: Point,
    houses: Houses,
    names: Sequence[str],
    run: str,
    workers: int = 2,
    on_done: OnDone | None = None,
) -> list[Figure]:
    """Fit attackers on training days that the defence masked, and score them on masked test days."""
    trial = curve.trial
    options: Options = {"workers": workers, "on_done": on_done, "epochs": point.epochs}
    data = (names, trial.training_households(houses), trial.fitted, trial.seed)
    if point.copies:
        fitted = adaptive(*data, curve.policy, curve.setup, point.copies, **options)
    else:
        fitted = fixed(*data, **options)
    days = masked_test_days(curve, houses[trial.test.key].select(trial.learned))
    base = replace(
        _base(trial, run),
        defence=curve.name,
        battery=battery_label(curve.setup.battery),
        threat="adaptive" if point.copies else "fixed",
        training=point.training_label(trial),
        seeds=curve.draws,
    )
    scores = {name: score(one, days, trial.read) for name, one in fitted.items()}
    return [replace(figure, n_days=len(trial.test.days)) for figure in _figures(base, scores)]


def masked_test_days(curve: Curve, home: Household) -> list[Household]:
    """Run the defence over the test days, SoC carried over midnight, once per draw."""
    rngs = held_out_rngs(curve.trial.seed, curve.draws)
    pieces = consecutive_pieces(home, curve.trial.test.days)
    copies = [copy for piece in pieces for copy in mask(curve.policy, curve.setup, piece, rngs).households]
    return [copy.day(day) for copy in copies for day in copy.days()]


def networks(names: Iterable[str]) -> tuple[str, ...]:
    """Choose the attackers that are trained in epochs."""
    return tuple(name for name in names if hasattr(attacker(name), "recipe"))


def check_epochs(names: Sequence[str]) -> None:
    """Refuse attackers that are not trained in epochs, before anything is fitted."""
    others = [name for name in names if name not in networks(names)]
    if others:
        raise InputError(
            f"{', '.join(others)} is not trained in epochs; networks are {', '.join(networks(ATTACKERS))}"
        )


def _base(trial: Trial, run: str) -> Figure:
    test = trial.test
    return Figure(test.dataset, test.house, trial.days, trial.aggregate, run=run)


def _figures(base: Figure, scores: Mapping[str, Scores]) -> list[Figure]:
    return [
        _summed_up(replace(base, attacker=name, appliance=target, metric=metric), values)
        for name, by_case in scores.items()
        for (target, metric), values in by_case.items()
    ]


def _summed_up(figure: Figure, values: FloatArray) -> Figure:
    """Average a score over days; undefined days are left out."""
    known = values[~np.isnan(values)]
    return replace(
        figure,
        value=number(known.mean()) if len(known) else None,
        spread=number(known.std(ddof=1)) if len(known) > 1 else None,
        n_days=len(known),
        note="" if len(known) else NOT_USED,
    )
