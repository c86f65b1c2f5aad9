"""What an informed attacker reads of a household with a defence, beside what habits tell: shared by studies.

`read` fits the attacker and answers questions about the test days: which minutes and uses of appliances, when
the day began and ended, when the evening meal was prepared, and whether anybody was at home (`data.states`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments import study
from meterveil.attackers.drawn_days import EMPTY_SHARE
from meterveil.attackers.fitting import adaptive
from meterveil.attackers.protocol import Prediction, meter_of
from meterveil.attackers.registry import version_of
from meterveil.bench.cases import best_f1, score_predictions
from meterveil.bench.estimates import estimate, mean
from meterveil.bench.evaluate import mask_test_days
from meterveil.bench.metrics import Counts, begin_minute, detection, end_probability, event_counts, seen
from meterveil.bench.results import battery_label
from meterveil.bench.trial import Houses, Trial
from meterveil.core.arrays import FloatArray
from meterveil.data.cache import key_of, library_versions
from meterveil.data.household import Household
from meterveil.data.protocols import STATE_ON_W, STATES, on_threshold_w
from meterveil.data.simulation import Setup
from meterveil.defenders.defence import Defence

ATTACKERS = ("informed", "prior")
KEYS = ("dataset", "row", "meter")
"""Columns that say which figures a measurement replaces."""
SEEDS = 2
"""Draws of a defence's random numbers on the test days."""
EVENTS = ("kettle", "microwave")
"""Appliances whose single uses are counted, found within two minutes."""
CLOSE_MINUTES = 15
"""Error of a time of day that counts as close."""


class Answer(NamedTuple):
    """Figure as a statistic of the means of rows over days."""

    by_day: FloatArray  # (row, day)
    statistic: Callable[[FloatArray], float]


def read(trial: Trial, houses: Houses, defence: Defence, setup: Setup) -> dict[str, dict[str, Answer]]:
    """Fit the attackers to a defence and let them read the test days: attacker -> metric -> answer.

    Of a defence with several trainings the first one is read.
    """
    first = replace(defence, policies=defence.policies[:1])
    training = trial.training_households(houses)
    fitted = adaptive(ATTACKERS, training, trial.fitted, trial.seed, first.policies[0], setup, workers=1)
    masked = mask_test_days(trial, houses[trial.test.key], first, setup, SEEDS)
    copies = [masked.days[number] for number in sorted(set(masked.same_as))]
    answers: dict[str, dict[str, Answer]] = {}
    for name, attacker in fitted.items():
        draws = [ask([attacker.predict(meter_of(day)) for day in days], days, trial.targets) for days in copies]
        answers[name] = {
            metric: answer._replace(by_day=np.mean([draw[metric].by_day for draw in draws], axis=0))
            for metric, answer in draws[0].items()
        }
    return answers


def ask(predictions: Sequence[Prediction], days: Sequence[Household], targets: Sequence[str]) -> dict[str, Answer]:
    """Answer every question that these targets allow."""
    appliances = [name for name in targets if name not in STATES]
    scores = score_predictions(predictions, days, appliances)
    answers = {"f1": Answer(np.array([best_f1(scores, name) for name in appliances]), mean)}
    for name in appliances:
        answers[f"{name}_f1"] = Answer(best_f1(scores, name)[None], mean)
        if name in EVENTS:
            counts = np.array([_uses(*pair, name) for pair in zip(predictions, days, strict=True)], dtype=float).T
            for part in ("precision", "recall", "f1"):
                answers[f"{name}_use_{part}"] = Answer(counts, partial(detected, part))
    for name in (name for name in STATES if name in targets):
        error = np.array([_error_minutes(*pair, name) for pair in zip(predictions, days, strict=True)])
        answers[f"{name}_error_min"] = Answer(error[None], mean)
        close = np.where(np.isnan(error), np.nan, error <= CLOSE_MINUTES)
        answers[f"{name}_close"] = Answer(close[None], mean)
    if "up" in targets:
        rows = np.array([_absence(*pair) for pair in zip(predictions, days, strict=True)], dtype=float).T
        answers["absence_accuracy"] = Answer(rows, _balanced)
    return answers


def figures(answers: Mapping[str, Mapping[str, Answer]], **labels: Any) -> list[dict[str, Any]]:
    """Turn answers into rows with intervals over days; `labels` are further columns."""
    rows = []
    for attacker, by_metric in answers.items():
        for metric, answer in by_metric.items():
            found = estimate(answer.by_day, answer.statistic)
            shared = {**labels, "attacker": attacker, "metric": metric, "seeds": SEEDS}
            rows.append({**shared, **found._asdict(), "n_days": answer.by_day.shape[1]})
    return rows


def record(
    options: argparse.Namespace,
    name: str,
    trial: Trial,
    defence: Defence,
    setup: Setup,
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Write the rows of one defence into the table of a study."""
    settings = {
        **trial.settings,
        **defence.settings,
        "attacker_version": version_of(ATTACKERS[0]),
        "battery": battery_label(setup.battery),
        "library": setup.library.digest()[:12],
        "resolution": [setup.resolution.minutes, setup.resolution.step_w],
        "versions": library_versions("numpy", "torch"),
    }
    key = f"{name}_{key_of(trial.identity, settings)[:12]}"
    study.record(options.results, name, key, rows, settings, [name for name in KEYS if name in rows[0]])


def _uses(prediction: Prediction, day: Household, name: str) -> Counts:
    probability = seen(prediction.on[name][0], day.aggregate_w)
    return event_counts(day.appliances_w[name], probability, on_threshold_w(name), cut=0.5)


def detected(part: str, counts: FloatArray) -> float:
    """Return precision, recall or F1 of counts, (3,)."""
    return float(getattr(detection(Counts(*counts)), part))


def _error_minutes(prediction: Prediction, day: Household, state: str) -> float:
    """Return the error of the time at which a state began; NaN on a day without it."""
    truth = day.appliances_w[state] > STATE_ON_W
    return abs(float(begin_minute(prediction.on[state][0]) - np.argmax(truth))) if truth.any() else float("nan")


def _absence(prediction: Prediction, day: Household) -> tuple[bool, bool, bool, bool]:
    """Return whether an empty day was called empty, was empty, and the same of a day with somebody at home.

    A day is called empty where that is likelier than on the days that the attacker was trained with.
    """
    home = bool((day.appliances_w["up"] > STATE_ON_W).any())
    called_home = bool(end_probability(prediction.on["up"][0]) >= 1.0 - EMPTY_SHARE)
    return not home and not called_home, not home, home and called_home, home


def _balanced(means: FloatArray) -> float:
    """Average the share of empty days called empty and of other days called otherwise; NaN without either."""
    with np.errstate(invalid="ignore"):
        return float((means[0] / means[1] + means[2] / means[3]) / 2)
