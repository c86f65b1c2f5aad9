"""When an appliance is used: curves over the minutes of a day, as smooth as other days bear out.

How far to smooth, and whether weekends differ, is chosen for each appliance by leaving out one day at a time
and saying it from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from meterveil.attackers.decisions import best_threshold
from meterveil.attackers.protocol import AGGREGATE, FloatArray, IntArray, meter_of, truth_w
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

MINUTES = 1440
SMOOTHING_MINUTES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, np.inf)
"""Standard deviations of the kernels to choose from; infinity forgets the hour."""

KIN_WEIGHTS = (1.0, 0.3, 0.0)
"""Weights, to choose from, of a weekday's habits at a weekend and the other way round."""

Score = Callable[[FloatArray, FloatArray], float]
"""(said, true) -> the higher the better."""


class Profile(NamedTuple):
    """What is usual, by kind of day (weekday, weekend) and minute, (2, 1440) each."""

    mean_w: FloatArray
    on: FloatArray
    threshold: float
    """On-probability from which saying "on" scores the best F1 on left-out days."""


class Days(NamedTuple):
    """Training days on one clock, (day, 1440) each; an unknown minute is 0 and weighs 0."""

    values: FloatArray
    known: FloatArray
    weekend: IntArray  # (day,) 0 or 1


def learn_profile(households: Sequence[Household], target: str) -> Profile:
    """Learn the usual power and the usual use of one target."""
    power = _days(households, target)
    mean_w, _ = _best_curve(power, lambda said, true: -float(np.mean((said - true) ** 2)))
    if target == AGGREGATE:
        return Profile(mean_w, np.zeros_like(mean_w), 0.5)
    uses = power._replace(values=((power.values >= on_threshold_w(target)) & (power.known > 0)).astype(float))
    on, left_out = _best_curve(uses, lambda said, true: best_threshold(said, true > 0)[1])
    known = uses.known > 0
    threshold, _ = best_threshold(left_out[known], uses.values[known] > 0)
    return Profile(mean_w, on, threshold)


def _days(households: Sequence[Household], target: str) -> Days:
    values, known, weekend = [], [], []
    for household in households:
        minute, weekday = (clock[0] for clock in meter_of(household)[1:])
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
    """Return the curves (2, 1440) of the smoothing that says left-out days best, and what it says of them."""
    known = days.known > 0
    everyone = np.eye(len(days.weekend)) == 0
    best, chosen, best_left_out = -np.inf, (np.inf, 1.0), np.zeros_like(days.values)
    for smoothing, kin in product(SMOOTHING_MINUTES, KIN_WEIGHTS):
        left_out = _curves(days, smoothing, _weights(days.weekend, days.weekend, kin) * everyone)
        reached = score(left_out[known], days.values[known])
        if reached > best:
            best, chosen, best_left_out = reached, (smoothing, kin), left_out
    smoothing, kin = chosen
    return _curves(days, smoothing, _weights(np.arange(2), days.weekend, kin)), best_left_out


def _weights(asked: IntArray, given: IntArray, kin: float) -> FloatArray:
    """Return how much each given day says about each kind of day asked for, (asked, given)."""
    return np.where(asked[:, None] == given, 1.0, kin)


def _curves(days: Days, smoothing: float, weights: FloatArray) -> FloatArray:
    """Average the days around each minute, (curve, 1440); where nothing weighs, over everything."""
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
