"""Baselines that never see the meter: the mean, always off, and the routine of the household.

An attacker that does not beat `Mean` and `AlwaysOff` has learned nothing. `Prior` knows the usual power of
each appliance by minute and kind of day, so no defence can push an adaptive attacker below it. How much to
smooth its curves, and whether weekends differ, is chosen for each appliance by leave-one-day-out
cross-validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from meterveil.attackers.classical import best_threshold, recentred
from meterveil.attackers.protocol import Arrays, Meter, Prediction, below, check_targets, meter_of, truth_w
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w

VERSION = 1  # raise it when a change alters the figures of these predictors

MINUTES = 1440
SMOOTHING_MINUTES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, np.inf)
"""Candidate standard deviations of the smoothing kernel; infinity ignores the time of day."""

OTHER_KIND_WEIGHTS = (1.0, 0.3, 0.0)
"""Candidate weights of weekdays in the curve of weekends, and the other way round."""

Score = Callable[[FloatArray, FloatArray], float]
"""(predicted, true) -> score; higher is better."""


@dataclass(frozen=True)
class Mean:
    """Predictor of the training mean."""

    mean_w: Mapping[str, float] = field(default_factory=dict)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        power_w = {name: np.concatenate([truth_w(home, name) for home in households]) for name in targets}
        return replace(self, mean_w={name: float(np.nanmean(values)) for name, values in power_w.items()})

    def predict(self, meter: Meter) -> Prediction:
        shape = meter.reading_w.shape
        return Prediction({name: np.full(shape, mean_w) for name, mean_w in self.mean_w.items()}, {})

    def arrays(self) -> Arrays:
        return {name: np.asarray(mean_w) for name, mean_w in self.mean_w.items()}

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        return replace(self, mean_w={name: float(arrays[name]) for name in targets})


@dataclass(frozen=True)
class AlwaysOff(Mean):
    """Predictor of 0 W."""

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        check_targets(households, targets)
        return replace(self, mean_w=dict.fromkeys(targets, 0.0))


class Profile(NamedTuple):
    """Routine of one target, by kind of day (weekday, weekend) and minute, (2, 1440) each."""

    mean_w: FloatArray
    on: FloatArray
    threshold: float
    """On-probability from which predicting "on" gives the best F1 on left-out days."""


@dataclass(frozen=True)
class Prior:
    """Predictor of what is usual at this minute of this kind of day."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Learn the routine of every target; `rng` is not used."""
        check_targets(households, targets)
        profiles = {name: learn_profile(_days(households, name), name) for name in targets}
        return replace(self, profiles=profiles)

    def predict(self, meter: Meter) -> Prediction:
        """Look up the minutes; only the clock of `meter` is used."""
        weekend = (meter.weekday >= 5).astype(np.int64)
        watts, on = {}, {}
        for name, (mean_w, probability, threshold) in self.profiles.items():
            watts[name] = mean_w[weekend, meter.minute_of_day]
            if name != AGGREGATE:
                on[name] = recentred(probability, threshold)[weekend, meter.minute_of_day]
        return Prediction(watts, on)

    def arrays(self) -> Arrays:
        return {
            f"{name}/{part}": np.asarray(values)
            for name, profile in self.profiles.items()
            for part, values in profile._asdict().items()
        }

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        parts = {name: below(arrays, f"{name}/") for name in targets}
        profiles = {name: Profile(p["mean_w"], p["on"], float(p["threshold"])) for name, p in parts.items()}
        return replace(self, profiles=profiles)


class Days(NamedTuple):
    """Training days on one clock, (day, 1440) each; an unknown minute has value 0 and weight 0."""

    values: FloatArray
    known: FloatArray
    weekend: IntArray  # (day,) 0 or 1


def learn_profile(power: Days, target: str) -> Profile:
    """Learn the usual power and the usual on-probability of one target."""
    mean_w, _ = _best_curve(power, lambda predicted, true: -float(np.mean((predicted - true) ** 2)))
    if target == AGGREGATE:
        return Profile(mean_w, np.zeros_like(mean_w), 0.5)
    uses = power._replace(values=((power.values >= on_threshold_w(target)) & (power.known > 0)).astype(float))
    on, left_out = _best_curve(uses, lambda predicted, true: best_threshold(predicted, true > 0)[1])
    known = uses.known > 0
    threshold, _ = best_threshold(left_out[known], uses.values[known] > 0)
    return Profile(mean_w, on, threshold)


def _days(households: Sequence[Household], target: str) -> Days:
    values, known, weekend = [], [], []
    for household in households:
        _, [minute], [weekday], _ = meter_of(household)
        day = np.cumsum(np.diff(weekday, prepend=weekday[0]) != 0)
        cell, count = day * MINUTES + minute, int(day[-1]) + 1
        power_w = truth_w(household, target)
        seen = ~np.isnan(power_w)
        times = np.bincount(cell[seen], minlength=count * MINUTES)
        total_w = np.bincount(cell[seen], power_w[seen], count * MINUTES)
        values.append((total_w / np.maximum(times, 1)).reshape(count, MINUTES))
        known.append((times > 0).astype(float).reshape(count, MINUTES))
        weekend.append((weekday[np.unique(day, return_index=True)[1]] >= 5).astype(np.int64))
    return Days(np.concatenate(values), np.concatenate(known), np.concatenate(weekend))


def _best_curve(days: Days, score: Score) -> tuple[FloatArray, FloatArray]:
    """Return the curves (2, 1440) that predict left-out days best, and those predictions."""
    known = days.known > 0
    others = np.eye(len(days.weekend)) == 0
    best, chosen, best_left_out = -np.inf, (np.inf, 1.0), np.zeros_like(days.values)
    for smoothing, weight in product(SMOOTHING_MINUTES, OTHER_KIND_WEIGHTS):
        left_out = _curves(days, smoothing, _weights(days.weekend, days.weekend, weight) * others)
        reached = score(left_out[known], days.values[known])
        if reached > best:
            best, chosen, best_left_out = reached, (smoothing, weight), left_out
    return _curves(days, chosen[0], _weights(np.arange(2), days.weekend, chosen[1])), best_left_out


def _weights(wanted: IntArray, given: IntArray, other_kind: float) -> FloatArray:
    """Return the weight of each given day in each wanted kind of day, (wanted, given)."""
    return np.where(wanted[:, None] == given, 1.0, other_kind)


def _curves(days: Days, smoothing: float, weights: FloatArray) -> FloatArray:
    """Average the days around each minute, (curve, 1440); where all weights are zero, over everything."""
    overall = days.values.sum() / max(days.known.sum(), 1.0)
    little = 1e-6
    total = weights @ _smooth(days.values, smoothing) + little * overall
    count = weights @ _smooth(days.known, smoothing) + little
    return np.asarray(np.maximum(total, 0.0) / np.maximum(count, little))


def _smooth(curves: FloatArray, smoothing: float) -> FloatArray:
    """Smooth around the clock with a Gaussian kernel."""
    waves = np.arange(MINUTES // 2 + 1)
    with np.errstate(invalid="ignore"):
        damping = np.exp(-2.0 * (np.pi * smoothing * waves / MINUTES) ** 2)
    damping[0] = 1.0
    return np.asarray(np.fft.irfft(np.fft.rfft(curves) * damping, MINUTES))
