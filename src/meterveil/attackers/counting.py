"""Count Markov chains of powers out of training minutes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meterveil.attackers.factorial import Chain
from meterveil.attackers.protocol import FloatArray, IntArray
from meterveil.attackers.states import RUNNING_W, cluster_means, nearest, running_levels_w

PSEUDOCOUNT = 1.0
"""Transitions assumed to have been seen from each state into each, spread as the states are used."""

RESOLUTION = 20.0
"""Steps per square root of a watt at which the rest of the home is clustered."""


def count_appliance(series_w: Sequence[FloatArray], states: int) -> tuple[Chain, list[IntArray]]:
    """Return an appliance's chain, and the state of every minute; -1 where it is unknown."""
    known_w = _known(series_w)
    idle_w = known_w[known_w <= RUNNING_W]
    levels_w = running_levels_w(known_w, states - 1)
    if len(levels_w) == 0:
        levels_w = np.array([known_w.mean()])
    elif len(idle_w):
        levels_w = np.append(np.median(idle_w), levels_w)
    return _count(series_w, [nearest(one, levels_w) for one in series_w], len(levels_w))


def count_rest(series_w: Sequence[FloatArray], states: int) -> tuple[Chain, list[IntArray]]:
    """Return the chain of what is not modelled, finer where it is small.

    Clusters of square roots: a fridge hides in changes of 50 W near the base load, not in those of an oven.
    """
    scaled = [np.sign(one) * np.sqrt(np.abs(one)) * RESOLUTION for one in series_w]
    levels = cluster_means(_known(scaled), states)
    return _count(series_w, [nearest(one, levels) for one in scaled], len(levels))


def _count(
    series_w: Sequence[FloatArray], labels: Sequence[IntArray], states: int
) -> tuple[Chain, list[IntArray]]:
    states_of = [np.where(np.isnan(one), -1, label) for one, label in zip(series_w, labels, strict=True)]
    known_w, state = _known(series_w), np.concatenate(states_of)
    state = state[state >= 0]
    used = np.bincount(state, minlength=states)
    share = (used + PSEUDOCOUNT) / (used + PSEUDOCOUNT).sum()
    counts = np.tile(PSEUDOCOUNT * states * share, (states, 1))
    for one in states_of:
        both = (one[:-1] >= 0) & (one[1:] >= 0)
        np.add.at(counts, (one[:-1][both], one[1:][both]), 1.0)
    mean_w = np.bincount(state, known_w, states) / np.maximum(used, 1)
    variance_w2 = np.bincount(state, (known_w - mean_w[state]) ** 2, states) / np.maximum(used, 1)
    transition = counts / counts.sum(axis=1, keepdims=True)
    return Chain(mean_w, variance_w2, share, transition), states_of


def _known(series: Sequence[FloatArray]) -> FloatArray:
    together = np.concatenate(series)
    return together[~np.isnan(together)]
