"""Statistics: confidence intervals over days, deviations and t-tests over seeds, mutual information."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree  # type: ignore[import-untyped]
from scipy.special import digamma, stdtr  # type: ignore[import-untyped]

from meterveil.bench.metrics import BoolArray, FloatArray, harm_sign
from meterveil.errors import InputError

SIGNIFICANT_BELOW = 0.05

RESAMPLES = 1000
CONFIDENCE_PERCENT = 95.0
FEWEST_DAYS = 5
"""Days that an interval needs; a bootstrap over fewer would only repeat them."""

NEIGHBOURS = 3
JITTER_W = 1e-3
"""Random shift of equal readings, far below what a meter resolves: the estimate needs distances."""


class Estimate(NamedTuple):
    """Figure with its confidence interval over days; the bounds are NaN where there are too few days."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def estimate(by_day: FloatArray, statistic: Callable[[FloatArray], float]) -> Estimate:
    """Compute a statistic of row means, with a confidence interval from a bootstrap over days.

    `by_day` is (row, day). Days are drawn together for all rows, and equally for every defence, so that
    intervals over the same days can be compared.
    """
    value = statistic(means(by_day))
    days = by_day.shape[1]
    if days < FEWEST_DAYS:
        return Estimate(value)
    draws = np.random.default_rng([0, days]).multinomial(days, np.full(days, 1 / days), RESAMPLES)
    drawn = np.array([statistic(row) for row in _weighted_means(by_day, draws)])
    tail = (100.0 - CONFIDENCE_PERCENT) / 2
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return Estimate(value)
    low, high = np.percentile(known, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high))


def mean(values: FloatArray) -> float:
    """Average the defined values; NaN where there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def deviation(by_seed: FloatArray) -> float:
    """Return the standard deviation over seeds: exactly 0 where all agree, NaN where nothing is defined."""
    return float(np.std(by_seed - by_seed[0], ddof=1)) if len(by_seed) > 1 else float("nan")


def means(by_day: FloatArray) -> FloatArray:
    """Average each row over the days on which it is defined."""
    averages: FloatArray = _weighted_means(by_day, np.ones((1, by_day.shape[1])))[0]
    return averages


def p_value(masked_by_seed: FloatArray, raw: npt.ArrayLike) -> FloatArray:
    """Test the mean over seeds, the last axis, against the raw value: two-sided one-sample t-test.

    Where all seeds agree, p is 1 if they equal the raw value and 0 otherwise; the paper prints no p for these
    and counts them as significant.
    """
    seeds = masked_by_seed.shape[-1]
    if seeds < 2:
        raise InputError(f"a t-test needs at least 2 seeds, not {seeds}; the paper has 5")
    change = masked_by_seed - np.asarray(raw, float)[..., None]
    mean = change.mean(axis=-1)
    error = change.std(axis=-1, ddof=1) / np.sqrt(seeds)
    certain = np.where(mean == 0, 0.0, np.inf)
    t = np.divide(np.abs(mean), error, out=certain, where=error != 0)
    return np.asarray(2 * stdtr(seeds - 1, -t))


def is_harmful(metric: str, change: npt.ArrayLike, p: npt.ArrayLike) -> BoolArray:
    """Mark the cases in which the attacker got significantly worse."""
    return (harm_sign(metric) * np.asarray(change, float) > 0) & (np.asarray(p, float) < SIGNIFICANT_BELOW)


def welch_p(first: FloatArray, second: FloatArray) -> float:
    """Test whether two sets of seeds have the same mean: Welch's two-sided t-test.

    Where all seeds agree, the result is exact as in `p_value`.
    """
    errors = [np.var(values - values[0], ddof=1) / len(values) for values in (first, second)]
    gap = first.mean() - second.mean()
    if sum(errors) == 0:
        return float(np.isclose(gap, 0.0))
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(values) - 1) for error, values in zip(errors, (first, second), strict=True)
    )
    return float(2 * stdtr(freedom, -abs(gap) / np.sqrt(sum(errors))))


def information_bits(truth_w: FloatArray, reading_w: FloatArray, threshold_w: float, rng: np.random.Generator) -> float:
    """Estimate how many bits a minute of the meter tells about an appliance being on, by any attacker.

    By nearest neighbours, since histograms depend on their bins: B. C. Ross, "Mutual Information between
    Discrete and Continuous Data Sets", PLoS ONE 9(2), 2014.
    Arrays are (batch, minute) or (minute,), pooled over all rows; minutes with NaN are left out. Where there
    is nothing to tell, the estimate may be a little below zero.
    """
    noise = rng.uniform(-JITTER_W / 2, JITTER_W / 2, reading_w.shape)
    points = (reading_w + noise).reshape(-1, 1)
    truth = truth_w.reshape(-1)
    known = ~(np.isnan(truth) | np.isnan(points[:, 0]))
    on = truth[known] >= threshold_w
    states = [points[known][on == state] for state in (False, True)]
    states = [state for state in states if len(state) > 1]  # a single minute has no neighbour
    if len(states) < 2:
        return 0.0
    everything = np.concatenate(states)
    tree = cKDTree(everything)
    total = sum(_density_surplus(tree, state) for state in states)
    return float((digamma(len(everything)) + total / len(everything)) / np.log(2))


def _weighted_means(by_day: FloatArray, weights: npt.ArrayLike) -> FloatArray:
    """Average each row with each draw's weight of every day, (draw, row)."""
    known = ~np.isnan(by_day)
    counts = np.asarray(weights, float) @ known.T
    sums = np.asarray(weights, float) @ np.where(known, by_day, 0.0).T
    averages: FloatArray = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=averages, where=counts > 0)
    return averages


def _density_surplus(everything: cKDTree, state: FloatArray) -> float:
    """Sum digamma(k) - digamma(size of the state) - digamma(points of all within reach of the k-th)."""
    k = min(NEIGHBOURS, len(state) - 1)
    distance = cKDTree(state).query(state, k=[k + 1], p=np.inf)[0][:, 0]
    inside = np.nextafter(distance, 0)
    around = everything.query_ball_point(state, inside, p=np.inf, return_length=True)
    return float(len(state) * (digamma(k) - digamma(len(state))) - digamma(around).sum())
