"""Find the few powers that an appliance draws: exact clustering of watts on a line."""

from __future__ import annotations

import numpy as np

from meterveil.attackers.protocol import FloatArray, IntArray

RUNNING_W = 10.0
"""What draws more than this is running (NILMTK's `DATA_THRESHOLD`)."""

MIN_RUNNING_MINUTES = 20
"""An appliance that ran for less has no state but off (NILMTK)."""


def running_levels_w(power_w: FloatArray, clusters: int) -> FloatArray:
    """Return the levels at which an appliance runs, in increasing order; none if it hardly ever ran."""
    running = power_w[power_w > RUNNING_W]
    if len(running) < MIN_RUNNING_MINUTES:
        return np.zeros(0)
    return cluster_means(running, clusters)


def cluster_means(values: FloatArray, clusters: int) -> FloatArray:
    """Split values into clusters of least squared error and return their means, in increasing order.

    On a line a cluster is an interval, so dynamic programming over the sorted values finds the very best
    split: no random starts, no subsampling. Values are taken to whole numbers first, which bounds the work.
    """
    points, counts = np.unique(np.round(values), return_counts=True)
    clusters = min(clusters, len(points))
    count, total, square = (np.append(0.0, np.cumsum(counts * points**power)) for power in range(3))
    bounds = _best_bounds(count, total, square, clusters)
    return np.asarray(np.diff(total[bounds]) / np.diff(count[bounds]))


def nearest(values: FloatArray, levels: FloatArray) -> IntArray:
    """Find the number of the level nearest to each value; of two as near, the lower one."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2.0, values).astype(np.int64)


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
            within = (
                square[end] - square[first] - (total[end] - total[first]) ** 2 / (count[end] - count[first])
            )
            candidates = error[first] + within
            begin[end] = number - 1 + candidates.argmin()
            best[end] = candidates.min()
        error = best
        begins.append(begin)
    bounds = [size]
    for begin in reversed(begins):
        bounds.append(int(begin[bounds[-1]]))
    return bounds[::-1]
