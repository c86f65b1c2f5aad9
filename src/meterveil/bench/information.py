"""How many bits the meter tells about an appliance's state, whoever reads it.

A score needs an attacker, and another may do better; mutual information bounds all that look at the same
minutes. It is estimated by nearest neighbours, since histograms depend on their bins: B. C. Ross, "Mutual
Information between Discrete and Continuous Data Sets", PLoS ONE 9(2), 2014.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree  # type: ignore[import-untyped]
from scipy.special import digamma  # type: ignore[import-untyped]

from meterveil.bench.metrics import BoolArray, FloatArray

NEIGHBOURS = 3
JITTER_W = 1e-3
"""Equal readings are drawn apart by this much, far below what a meter resolves: neighbours need distances."""


class Information(NamedTuple):
    """What a minute's readings tell about a minute's state, in bits."""

    bits: float
    """Mutual information; an estimate, so it may fall a little below zero where there is none."""
    entropy_bits: float
    """All there is to know: the entropy of the state."""

    @property
    def share(self) -> float:
        """Share of the doubt about the state that the meter removes; NaN where there is no doubt."""
        return self.bits / self.entropy_bits if self.entropy_bits > 0 else float("nan")


def appliance_information(
    truth_w: FloatArray,
    reading_w: FloatArray,
    threshold_w: float,
    rng: np.random.Generator,
    window_minutes: int = 1,
    neighbours: int = NEIGHBOURS,
) -> Information:
    """Estimate what the meter's last minutes tell about an appliance being on, in bits per minute.

    `truth_w` and `reading_w` are (batch, minute) or (minute,). The minutes of all rows are pooled, since
    one day holds too few uses; no window reaches over the end of a row, and one with an unknown minute is
    left out. With few uses and a long window, neighbours are far away and the estimate falls short of the
    truth.
    """
    noise = rng.uniform(-JITTER_W / 2, JITTER_W / 2, reading_w.shape)
    windows = np.lib.stride_tricks.sliding_window_view(reading_w + noise, window_minutes, axis=-1)
    points = windows.reshape(-1, window_minutes)  # (minute of any row, minute of its window)
    truth = truth_w[..., window_minutes - 1 :].reshape(-1)
    known = ~(np.isnan(truth) | np.isnan(points).any(axis=-1))
    on = truth[known] >= threshold_w
    return Information(_mutual_bits(on, points[known], neighbours), _entropy_bits(on))


def _entropy_bits(on: BoolArray) -> float:
    shares = np.bincount(on, minlength=2) / max(len(on), 1)
    return float(-sum(share * np.log2(share) for share in shares if share > 0))


def _mutual_bits(on: BoolArray, points: FloatArray, neighbours: int) -> float:
    """Compare how dense each point's own state and all points are around it (Ross 2014).

    A state with a single minute has no neighbours and is left out; with one state, there is nothing to tell.
    """
    states = [points[on == state] for state in (False, True)]
    states = [state for state in states if len(state) > 1]
    if len(states) < 2:
        return 0.0
    everything = np.concatenate(states)
    tree = cKDTree(everything)
    total = sum(_density_surplus(tree, state, neighbours) for state in states)
    return float((digamma(len(everything)) + total / len(everything)) / np.log(2))


def _density_surplus(everything: cKDTree, state: FloatArray, neighbours: int) -> float:
    """Sum digamma(k) - digamma(size of the state) - digamma(points of all within reach of the k-th)."""
    k = min(neighbours, len(state) - 1)
    distance = cKDTree(state).query(state, k=[k + 1], p=np.inf)[0][:, 0]
    inside = np.nextafter(distance, 0)
    around = everything.query_ball_point(state, inside, p=np.inf, return_length=True)
    return float(len(state) * (digamma(k) - digamma(len(state))) - digamma(around).sum())
