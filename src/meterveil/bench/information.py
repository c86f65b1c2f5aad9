"""Mutual information between the meter and an appliance's state, which bounds every attacker.

It is estimated by nearest neighbours, since histograms depend on their bins: B. C. Ross, "Mutual Information
between Discrete and Continuous Data Sets", PLoS ONE 9(2), 2014.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree  # type: ignore[import-untyped]
from scipy.special import digamma  # type: ignore[import-untyped]

from meterveil.bench.metrics import FloatArray

NEIGHBOURS = 3
JITTER_W = 1e-3
"""Random shift of equal readings, far below what a meter resolves: the estimate needs distances."""


def information_bits(
    truth_w: FloatArray, reading_w: FloatArray, threshold_w: float, rng: np.random.Generator
) -> float:
    """Estimate how many bits a minute of the meter tells about an appliance being on.

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


def _density_surplus(everything: cKDTree, state: FloatArray) -> float:
    """Sum digamma(k) - digamma(size of the state) - digamma(points of all within reach of the k-th)."""
    k = min(NEIGHBOURS, len(state) - 1)
    distance = cKDTree(state).query(state, k=[k + 1], p=np.inf)[0][:, 0]
    inside = np.nextafter(distance, 0)
    around = everything.query_ball_point(state, inside, p=np.inf, return_length=True)
    return float(len(state) * (digamma(k) - digamma(len(state))) - digamma(around).sum())
