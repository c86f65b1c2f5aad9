"""How two gradients lie to each other, from noisy samples of both on the same plays.

The noise of one play is in both gradients, and would pass for agreement. So products are taken between
different plays only, over all such pairs: that is the mean over all ways to split the plays in two, and has
no bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.errors import InputError

RESAMPLES = 2000
CONFIDENCE_PERCENT = 95.0
LEAST_PLAYS = 16
"""Fewer than these would be drawn alike too often to tell how far chance goes."""


class Interval(NamedTuple):
    """A figure with its confidence interval over plays."""

    value: float
    low: float
    high: float


class Alignment(NamedTuple):
    """How the attackers' gradient lies to the probe's."""

    inner_product: Interval
    cosine: Interval
    gamma: Interval
    """Inner product by the probe's square norm: the largest gamma of Condition A1 without residual error."""


def check_plays(plays: int) -> int:
    """Refuse so few plays that nothing can be said."""
    if plays < LEAST_PLAYS:
        raise InputError(f"{plays} plays say nothing about a gradient; give {LEAST_PLAYS} or more")
    return plays


def align(probe: FloatArray, attack: FloatArray, seed: int = 0) -> Alignment:
    """Compare two gradients, (play, parameter) each."""
    plays = check_plays(len(probe))
    once = np.ones((1, plays))
    rng = np.random.default_rng([seed, plays])
    drawn = rng.multinomial(plays, np.full(plays, 1.0 / plays), RESAMPLES).astype(np.float64)
    weights = np.concatenate([once, drawn])
    inner, own, other = (
        _pairs(first @ second.T, weights)
        for first, second in ((probe, attack), (probe, probe), (attack, attack))
    )
    return Alignment(_interval(inner), _interval(_cosine(inner, own, other)), _interval(_ratio(inner, own)))


def mean_of(by_play: FloatArray) -> Interval:
    """Average over plays; they are many and alike, so the interval is that of a normal distribution."""
    value, off = float(by_play.mean()), 1.96 * float(by_play.std(ddof=1)) / np.sqrt(len(by_play))
    return Interval(value, value - off, value + off)


def _pairs(products: FloatArray, weights: FloatArray) -> FloatArray:
    """Average the products of different plays under each draw's weights, (draw,)."""
    apart = products - np.diag(np.diag(products))
    total = np.einsum("di,di->d", weights @ apart, weights)
    count = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return np.asarray(total / count)


def _cosine(inner: FloatArray, own: FloatArray, other: FloatArray) -> FloatArray:
    """Divide by both norms; where noise leaves no norm, only the sign is known.

    Estimates without bias may lie beyond 1, cosines may not.
    """
    square = np.where((own > 0.0) & (other > 0.0), own * other, 0.0)
    found = np.sign(inner)
    np.divide(inner, np.sqrt(square), out=found, where=square > 0.0)
    return np.clip(found, -1.0, 1.0)


def _ratio(inner: FloatArray, own: FloatArray) -> FloatArray:
    """Divide by the probe's square norm; infinite where noise leaves none."""
    found = np.sign(inner) * np.inf
    np.divide(inner, own, out=found, where=own > 0.0)
    return found


def _interval(draws: FloatArray) -> Interval:
    """Take the figure of all plays, and percentiles of those of the resampled ones."""
    tail = (100.0 - CONFIDENCE_PERCENT) / 2
    low, high = np.percentile(draws[1:], [tail, 100.0 - tail], method="closest_observation")
    return Interval(float(draws[0]), float(low), float(high))
