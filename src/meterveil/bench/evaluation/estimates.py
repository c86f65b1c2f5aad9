"""How sure a figure is: its confidence interval over days, and its deviation over seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.bench.metrics import FloatArray

RESAMPLES = 1000
CONFIDENCE_PERCENT = 95.0
LEAST_DAYS = 5
"""Fewer days than this give no interval: their bootstrap would only repeat them."""


class Estimate(NamedTuple):
    """A figure with its confidence interval over days; NaN bounds where too few days give none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def estimate(by_day: FloatArray, statistic: Callable[[FloatArray], float], seed: int = 0) -> Estimate:
    """Compute a statistic of row means, with a bootstrap over days of its confidence interval.

    `by_day` is (row, day); days are drawn together for all rows, since an easy day is easy for everyone, and
    equally for every defence, so that intervals of the same days compare.
    """
    value = statistic(means(by_day))
    days = by_day.shape[1]
    if days < LEAST_DAYS:
        return Estimate(value)
    draws = np.random.default_rng([seed, days]).multinomial(days, np.full(days, 1 / days), RESAMPLES)
    drawn = np.array([statistic(row) for row in _weighted_means(by_day, draws)])
    tail = (100.0 - CONFIDENCE_PERCENT) / 2
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return Estimate(value)
    low, high = np.percentile(known, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high))


def mean(values: FloatArray) -> float:
    """Average what is defined; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def deviation(by_seed: FloatArray) -> float:
    """Return the standard deviation over seeds: exactly 0 where all agree, NaN where nothing is defined."""
    return float(np.std(by_seed - by_seed[0], ddof=1)) if len(by_seed) > 1 else float("nan")


def means(by_day: FloatArray) -> FloatArray:
    """Average each row over the days on which it is defined."""
    found: FloatArray = _weighted_means(by_day, np.ones((1, by_day.shape[1])))[0]
    return found


def _weighted_means(by_day: FloatArray, weights: npt.ArrayLike) -> FloatArray:
    """Average each row with each draw's weight of every day, (draw, row)."""
    known = ~np.isnan(by_day)
    counts = np.asarray(weights, float) @ known.T
    sums = np.asarray(weights, float) @ np.where(known, by_day, 0.0).T
    found: FloatArray = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=found, where=counts > 0)
    return found
