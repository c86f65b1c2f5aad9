"""Strength of attackers without a defence, as rows of results and as a picture of a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from meterveil.attackers.fitting import fit
from meterveil.attackers.protocol import Prediction, meters_of
from meterveil.attackers.registry import version_of
from meterveil.bench.attack_page import BASELINES, number_text
from meterveil.bench.cases import Scores, score_predictions
from meterveil.bench.evaluate import OnDone
from meterveil.bench.figures import NOT_USED, number
from meterveil.bench.metrics import FloatArray, seen
from meterveil.bench.results import Figure, Run, current_commit
from meterveil.bench.trial import Houses, Trial
from meterveil.data.cache import household_digest, key_of, library_versions
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import check_recorded
from meterveil.plots.attack import predictions_figure

VERSION = 1
"""Version of the figures; raise it when a change alters the figures of an attack."""


class Readings(NamedTuple):
    """Predictions of the attackers for the test days, and the truth."""

    trial: Trial
    days: tuple[Household, ...]
    predictions: Mapping[str, tuple[Prediction, ...]]  # attacker -> one per day


def read(
    trial: Trial, houses: Houses, attackers: Sequence[str], workers: int = 2, on_done: OnDone | None = None
) -> Readings:
    """Fit attackers on the training days and let them read the test days without a defence."""
    home = houses[trial.test.key].select(trial.targets)
    check_recorded(home, trial.test.days)
    training = trial.training_households(houses)
    fitted = fit(attackers, training, trial.fitted, trial.seed, workers, on_done)
    days = tuple(home.day(day) for day in trial.test.days)
    predictions = {name: tuple(map(one.predict, meters_of(days))) for name, one in fitted.items()}
    return Readings(trial, days, predictions)


def strength_figures(readings: Readings, run: str) -> list[Figure]:
    """Score the predictions: a figure for each attacker, target and metric."""
    trial = readings.trial
    scores = {
        name: score_predictions(predictions, readings.days, trial.read)
        for name, predictions in readings.predictions.items()
    }
    return score_figures(replace(base_figure(trial, run), threat="clean", training=trial.training_label), scores)


def day_figure(readings: Readings) -> go.Figure:
    """Draw the predictions for one test day, the one on which most appliances were used."""
    number = max(range(len(readings.days)), key=lambda n: _used(readings.days[n]))
    day, targets = readings.days[number], readings.trial.targets
    shown = [name for name in readings.predictions if name not in BASELINES] or list(readings.predictions)
    watts, notes = {}, {}
    for name in shown:
        prediction = readings.predictions[name][number]
        watts[name] = {target: seen(prediction.watts[target][0], day.aggregate_w) for target in targets}
        scores = score_predictions([prediction], [day], targets)
        for target in targets:
            rmse, f1 = (number_text(float(scores[target, metric][0]), metric) for metric in ("rmse", "f1"))
            notes[name, target] = f"RMSE {rmse} W, F1 {f1 or 'undefined'}"
    truth = {target: day.appliances_w[target] for target in targets}
    title = f"{day.name}, {day.minutes[0]:%d %B %Y}: predicted in colour, true in grey"
    return predictions_figure(day.minutes, truth, watts, notes, title)


def run_of(trial: Trial, houses: Houses, attackers: Sequence[str], **settings: Any) -> Run:
    """Describe an attack for the runs table."""
    described = {**trial.settings, "attackers": sorted(attackers), **settings}
    digests = [household_digest(home, trial.fitted) for home in trial.training_households(houses)]
    data = key_of(digests, household_digest(houses[trial.test.key].select(trial.targets), trial.targets))
    versions = library_versions("numpy", "scipy", "torch")
    producers = {"attack": VERSION, **{name: version_of(name) for name in attackers}}
    key = key_of("attack", trial.identity, described, data, versions, producers)
    return Run(key, described, data, versions, current_commit())


def base_figure(trial: Trial, run: str) -> Figure:
    """Return the labels that all figures of a trial share."""
    test = trial.test
    return Figure(test.dataset, test.house, trial.days, trial.aggregate, run=run)


def score_figures(base: Figure, scores: Mapping[str, Scores]) -> list[Figure]:
    """Return a figure for each attacker, target and metric."""
    return [
        _summed_up(replace(base, attacker=name, appliance=target, metric=metric), values)
        for name, by_case in scores.items()
        for (target, metric), values in by_case.items()
    ]


def _used(day: Household) -> tuple[int, float]:
    on = [np.any(watts >= on_threshold_w(name)) for name, watts in day.appliances_w.items()]
    return sum(map(int, on)), float(np.mean(~np.isnan(day.aggregate_w)))


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
