"""Scores of an attacker's predictions: every metric of every target, day by day."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meterveil.attackers.protocol import AGGREGATE, Attacker, Prediction, meter_of, truth_w
from meterveil.bench.events import event_detection
from meterveil.bench.metrics import FloatArray, mae, power_detection, probability_detection, rmse, sae, seen
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

Scores = dict[tuple[str, str], FloatArray]
"""Target and metric -> (day,); NaN where a score is undefined."""


def score(attacker: Attacker, days: Sequence[Household], targets: Sequence[str]) -> Scores:
    """Let an attacker read days, and score each day."""
    return score_predictions([attacker.predict(meter_of(day)) for day in days], days, targets)


def score_predictions(
    predictions: Sequence[Prediction], days: Sequence[Household], targets: Sequence[str]
) -> Scores:
    """Score the prediction of each day."""
    scores: dict[tuple[str, str], list[float]] = {}
    for day, prediction in zip(days, predictions, strict=True):
        for target in targets:
            if target in prediction.watts:
                for metric, value in _day_scores(day, prediction, target).items():
                    scores.setdefault((target, metric), []).append(value)
    return {case: np.asarray(values) for case, values in scores.items()}


def _day_scores(day: Household, prediction: Prediction, target: str) -> dict[str, float]:
    truth, reading_w = truth_w(day, target), day.aggregate_w
    watts = seen(prediction.watts[target][0], reading_w)
    scores = {"rmse": rmse(truth, watts), "mae": mae(truth, watts), "sae": sae(truth, watts)}
    if target != AGGREGATE:
        threshold_w = on_threshold_w(target)
        scores["f1"] = power_detection(truth, watts, threshold_w).f1
        scores["event_f1"] = event_detection(truth, watts, threshold_w).f1
        if target in prediction.on:
            probability = seen(prediction.on[target][0], reading_w)
            scores["f1_head"] = probability_detection(truth, probability, threshold_w).f1
    return {metric: float(value) for metric, value in scores.items()}
