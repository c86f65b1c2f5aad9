"""What the meter shows beside the modelled appliances, and how much of it to take away first.

The mains carry every appliance of a home, the targets are a few of them. A low quantile of the readings
around a minute, its *floor*, is mostly the rest. How wide "around" should be depends on the home: the
narrower, the more of the rest is taken, but long uses of a target go with it. The last fifth of the training
days decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from meterveil.attackers.decisions import f1
from meterveil.attackers.protocol import (
    AGGREGATE,
    Attacker,
    FloatArray,
    filled,
    meter_of,
    truth_w,
)
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import days_with_readings, learning_and_choosing_days, only_days

FLOOR_SHARE = 0.1
"""Of the readings around a minute, this share lies below its floor."""

Fitted = TypeVar("Fitted", bound=Attacker)


def floor_w(reading_w: FloatArray, window: int) -> FloatArray:
    """Return the floor of every minute over an odd number of minutes around it; zero for a window of 0."""
    if window == 0:
        return np.zeros_like(reading_w)
    half = window // 2
    padded = np.pad(reading_w, ((0, 0), (half, half)), mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, window, axis=-1)
    rank = int(FLOOR_SHARE * (window - 1))
    return np.asarray(np.partition(around, rank, axis=-1)[..., rank], dtype=np.float64)


def rest_w(household: Household, targets: Sequence[str], window: int) -> FloatArray:
    """Return what remains of the readings without their floor and the targets, (minute,)."""
    left_w = household.aggregate_w - floor_w(filled(household.aggregate_w[None]), window)[0]
    for target in targets:
        left_w = left_w - truth_w(household, target)
    return np.asarray(left_w)


def best_on_last_days(
    candidates: Sequence[Fitted],
    households: Sequence[Household],
    fit: Callable[[Fitted, Sequence[Household]], Fitted],
    targets: Sequence[str],
) -> Fitted:
    """Fit the candidate on all days that, fitted on the first days, reads the last fifth best."""
    if len(candidates) == 1 or min(len(days_with_readings(household)) for household in households) < 2:
        return fit(candidates[0], households)
    days = [learning_and_choosing_days(household) for household in households]
    first, last = (
        [only_days(*one) for one in zip(households, part, strict=True)] for part in zip(*days, strict=True)
    )
    penalties = [_penalty(fit(candidate, first), last, targets) for candidate in candidates]
    return fit(candidates[int(np.argmin(penalties))], households)


def _penalty(attacker: Attacker, households: Sequence[Household], targets: Sequence[str]) -> float:
    """Score an attacker by its RMSE in units of the target's spread and by what its F1 lacks, both alike."""
    penalties = [0.0]
    for household in households:
        prediction = attacker.predict(meter_of(household))
        for target in targets:
            truth = truth_w(household, target)
            known = ~np.isnan(truth) & ~np.isnan(household.aggregate_w)
            spread_w = float(np.std(truth[known])) if known.any() else 0.0
            if target == AGGREGATE or spread_w == 0.0:
                continue
            error_w = prediction.watts[target][0][known] - truth[known]
            threshold_w = on_threshold_w(target)
            said = prediction.watts[target][0][known] >= threshold_w
            score = f1(truth[known] >= threshold_w, said)
            penalties.append(float(np.sqrt(np.mean(error_w**2))) / spread_w - score)
    return float(np.mean(penalties))
