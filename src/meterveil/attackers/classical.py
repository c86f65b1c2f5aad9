"""Shared by CO, FHMM and the prior: power levels, the floor of the meter, thresholds of best F1.

The mains carry every appliance of a home, and the targets are only some of them. A low quantile of the
readings around a minute, the *floor*, is mostly the other appliances. A narrow window removes more of them,
but also long uses of a target. The best width depends on the home, so the last fifth of the training days
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from meterveil.attackers.protocol import Attacker, meter_of, truth_w
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import days_with_readings, only_days, training_and_validation_days

RUNNING_W = 10.0
"""Power above which an appliance runs (NILMTK's `DATA_THRESHOLD`)."""

MIN_RUNNING_MINUTES = 20
"""Fewest running minutes that give an appliance a state other than off (NILMTK)."""

FLOOR_SHARE = 0.1
"""Share of the readings around a minute that lie below its floor."""

Fitted = TypeVar("Fitted", bound=Attacker)


def running_levels_w(power_w: FloatArray, clusters: int) -> FloatArray:
    """Return the levels at which an appliance runs, in increasing order; none if it hardly ever ran."""
    running = power_w[power_w > RUNNING_W]
    if len(running) < MIN_RUNNING_MINUTES:
        return np.zeros(0)
    return cluster_means(running, clusters)


def cluster_means(values: FloatArray, clusters: int) -> FloatArray:
    """Split values into clusters of least squared error and return their means, in increasing order.

    On a line a cluster is an interval, so dynamic programming over the sorted values finds the optimum
    without random starts. Values are rounded to whole numbers first, which bounds the work.
    """
    points, counts = np.unique(np.round(values), return_counts=True)
    clusters = min(clusters, len(points))
    count, total, square = (np.append(0.0, np.cumsum(counts * points**power)) for power in range(3))
    bounds = _best_bounds(count, total, square, clusters)
    return np.asarray(np.diff(total[bounds]) / np.diff(count[bounds]))


def nearest(values: FloatArray, levels: FloatArray) -> IntArray:
    """Return the index of the level nearest to each value; of two equally near, the lower one."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2.0, values).astype(np.int64)


def floor_w(reading_w: FloatArray, window: int) -> FloatArray:
    """Return the floor of every minute over an odd number of minutes around it; zero for a window of 0."""
    if window == 0:
        return np.zeros_like(reading_w)
    half = window // 2
    padded = np.pad(reading_w, ((0, 0), (half, half)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, window, axis=-1)
    rank = int(FLOOR_SHARE * (window - 1))
    return np.asarray(np.partition(around, rank, axis=-1)[..., rank], dtype=np.float64)


def best_on_last_days(
    candidates: Sequence[Fitted],
    households: Sequence[Household],
    fit: Callable[[Fitted, Sequence[Household]], Fitted],
    targets: Sequence[str],
) -> Fitted:
    """Fit each candidate to the first days, choose the best on the last fifth, and fit that to all days."""
    if len(candidates) == 1 or min(len(days_with_readings(household)) for household in households) < 2:
        return fit(candidates[0], households)
    days = [training_and_validation_days(household) for household in households]
    first, last = (
        [only_days(*pair) for pair in zip(households, part, strict=True)] for part in zip(*days, strict=True)
    )
    penalties = [_penalty(fit(candidate, first), last, targets) for candidate in candidates]
    return fit(candidates[int(np.argmin(penalties))], households)


def f1(truth: BoolArray, predicted: BoolArray) -> float:
    """Return F1; zero where neither is ever true."""
    return 2 * int(np.sum(truth & predicted)) / max(int(np.sum(truth)) + int(np.sum(predicted)), 1)


def best_threshold(probability: FloatArray, truth: BoolArray) -> tuple[float, float]:
    """Return the threshold on `probability` whose decisions have the best F1, and that F1.

    For a rare appliance it is far below one half, which maximises accuracy: half of the F1 that is reached.
    """
    if not truth.any():
        return 0.5, 0.0
    order = np.argsort(-probability, kind="stable")
    sorted_probability = probability[order]
    scores = 2 * np.cumsum(truth[order]) / (np.arange(1, len(order) + 1) + truth.sum())
    last_of_its_value = np.append(np.diff(sorted_probability) != 0, True)
    best = int(np.argmax(np.where(last_of_its_value, scores, -1.0)))
    return float(sorted_probability[best]), float(scores[best])


def recentred(probability: FloatArray, threshold: float) -> FloatArray:
    """Shift the log-odds so that `threshold` becomes one half, the cut that scores use."""
    threshold = min(max(threshold, 1e-9), 1.0 - 1e-9)
    yes, no = probability * (1.0 - threshold), (1.0 - probability) * threshold
    shifted: FloatArray = yes / (yes + no)
    return np.where(probability >= threshold, np.maximum(shifted, 0.5), shifted)


def _penalty(attacker: Attacker, households: Sequence[Household], targets: Sequence[str]) -> float:
    """Return RMSE in units of the target's standard deviation minus F1, averaged over the targets."""
    penalties = [0.0]
    for household in households:
        prediction = attacker.predict(meter_of(household))
        for target in targets:
            truth = truth_w(household, target)
            known = ~np.isnan(truth) & ~np.isnan(household.aggregate_w)
            spread_w = float(np.std(truth[known])) if known.any() else 0.0
            if target == AGGREGATE or spread_w == 0.0:
                continue
            true_w, predicted_w = truth[known], prediction.watts[target][0][known]
            score = f1(true_w >= on_threshold_w(target), predicted_w >= on_threshold_w(target))
            penalties.append(float(np.sqrt(np.mean((predicted_w - true_w) ** 2))) / spread_w - score)
    return float(np.mean(penalties))


def _best_bounds(count: FloatArray, total: FloatArray, square: FloatArray, clusters: int) -> list[int]:
    """Return where the clusters begin and end, given running sums of 1, x and x²."""
    size = len(count) - 1
    error = np.full(size + 1, np.inf)
    error[0] = 0.0
    begins = []
    for number in range(1, clusters + 1):
        best, begin = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
        for end in range(number, size + 1):
            first = slice(number - 1, end)
            between = (total[end] - total[first]) ** 2 / (count[end] - count[first])
            candidates = error[first] + (square[end] - square[first] - between)
            begin[end] = number - 1 + candidates.argmin()
            best[end] = candidates.min()
        error = best
        begins.append(begin)
    bounds = [size]
    for begin in reversed(begins):
        bounds.append(int(begin[bounds[-1]]))
    return bounds[::-1]
