"""Chains that run side by side, of which only the sum is seen: exact decoding without the joint matrix.

A joint transition is a product over chains, so it is applied chain by chain: the cost of a minute grows with
the joint states times the *sum* of the chains' states, not with the square of the joint states. All series of
a batch go through a minute together. Shapes: (batch, minute) readings, (minute, batch, joint) tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from meterveil.attackers.protocol import FloatArray, IntArray

GROUP_STATES = 9
"""Chains are taken together up to this many states: fewer, larger array operations."""

LEAST_LIKELIHOOD = 1e-60
"""Relative to a minute's likeliest joint state: a reading that fits nothing must not rule everything out."""


class Chain(NamedTuple):
    """An appliance, or the rest of the home, as a Markov chain of powers."""

    mean_w: FloatArray  # (state,)
    variance_w2: FloatArray  # (state,)
    start: FloatArray  # (state,)
    transition: FloatArray  # (from, to)


class Observation(NamedTuple):
    """Readings, and how uncertain each is beside the chains' own variances, (batch, minute) each."""

    reading_w: FloatArray
    variance_w2: FloatArray


def log_likelihood(chains: Sequence[Chain], seen: Observation) -> FloatArray:
    """Return how well each joint state explains each reading, (minute, batch, joint)."""
    mean_w = reduce(_outer_sum, [chain.mean_w for chain in chains])
    variance_w2 = reduce(_outer_sum, [chain.variance_w2 for chain in chains])
    is_steady = np.ptp(seen.variance_w2) == 0.0
    spread_w2 = variance_w2 + (seen.variance_w2[0, 0] if is_steady else seen.variance_w2.T[..., None])
    gap_w = seen.reading_w.T[..., None] - mean_w
    np.square(gap_w, out=gap_w)
    gap_w *= -0.5 / spread_w2
    gap_w -= 0.5 * np.log(2.0 * np.pi * spread_w2)
    return gap_w


def viterbi(chains: Sequence[Chain], seen: Observation) -> IntArray:
    """Return the likeliest joint path, (chain, batch, minute) states; of equally likely ones the first."""
    score = log_likelihood(chains, seen)
    groups = _grouped([_log(chain.transition) for chain in chains])
    score[0] += reduce(_outer_sum, [_log(chain.start) for chain in chains])
    room = [np.empty((len(group), len(group), score[0].size // len(group))) for group in groups]
    for minute in range(1, len(score)):
        score[minute] += _best_before(score[minute - 1], groups, room)
    path = _trace(score, groups)
    return np.stack(np.unravel_index(path, [len(chain.mean_w) for chain in chains]))


def marginals(chains: Sequence[Chain], seen: Observation) -> list[FloatArray]:
    """Return each chain's state probabilities given all readings, (batch, minute, state), exactly.

    Forward-backward with the chains in two halves: a transition is then two matrix products.
    """
    shape = [len(chain.mean_w) for chain in chains]
    cut = min(range(len(shape) + 1), key=lambda at: np.prod(shape[:at]) + np.prod(shape[at:]))
    left, right = (_product([chain.transition for chain in half]) for half in (chains[:cut], chains[cut:]))
    table = log_likelihood(chains, seen)
    table -= table.max(axis=-1, keepdims=True)
    likelihood = np.maximum(np.exp(table, out=table), LEAST_LIKELIHOOD, out=table)
    minutes, batch = likelihood.shape[:2]
    likelihood = likelihood.reshape(minutes, batch, len(left), len(right))
    start = _product([chain.start for chain in chains]).reshape(len(left), len(right))
    belief = _forward(likelihood, start, left, right)
    _smooth(belief, likelihood, left, right)
    joint = belief.reshape(minutes, batch, *shape)
    return [_marginal(joint, axis + 2) for axis in range(len(shape))]


def _forward(likelihood: FloatArray, start: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    belief = np.empty_like(likelihood)
    ahead = np.broadcast_to(start, likelihood.shape[1:])
    for minute, now in enumerate(likelihood):
        belief[minute] = _normalised(ahead * now)
        ahead = left.T @ belief[minute] @ right
    return belief


def _smooth(belief: FloatArray, likelihood: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Bring what later minutes say into `belief`, in place: the table is the largest thing here."""
    after = np.ones_like(belief[-1])
    for minute in range(len(belief) - 2, -1, -1):
        after = _normalised(left @ (likelihood[minute + 1] * after) @ right.T)
        belief[minute] = _normalised(belief[minute] * after)


def _best_before(score: FloatArray, groups: Sequence[FloatArray], room: Sequence[FloatArray]) -> FloatArray:
    """Take the best predecessor of every joint state, one group of chains after the other.

    Each group comes first in turn, so that the long axis of every operation is contiguous: (batch, a, b) is
    turned to (a, b, batch), then to (b, batch, a) and back to (batch, a, b). `room` is written over.
    """
    batch, turned = len(score), score.T
    for log_transition, space in zip(groups, room, strict=True):
        before = turned.reshape(len(log_transition), 1, -1)
        turned = np.add(before, log_transition[:, :, None], out=space).max(axis=0).T
    return turned.reshape(batch, -1)


def _trace(score: FloatArray, groups: Sequence[FloatArray]) -> IntArray:
    """Walk back from the best end, (batch, minute); each minute looks once at all that lead to the next."""
    minutes, batch = score.shape[:2]
    sizes = [len(log_transition) for log_transition in groups]
    columns = [np.ascontiguousarray(log_transition.T) for log_transition in groups]
    path = np.empty((batch, minutes), dtype=np.int64)
    path[:, -1] = score[-1].argmax(axis=-1)
    for minute in range(minutes - 2, -1, -1):
        after = np.unravel_index(path[:, minute + 1], sizes)
        into = [column[state] for column, state in zip(columns, after, strict=True)]
        path[:, minute] = (score[minute] + reduce(_batched_outer_sum, into)).argmax(axis=-1)
    return path


def _grouped(logs: Sequence[FloatArray]) -> list[FloatArray]:
    groups = [logs[0]]
    for log in logs[1:]:
        if len(groups[-1]) * len(log) <= GROUP_STATES:
            size = len(groups[-1]) * len(log)
            together = groups[-1][:, None, :, None] + log[None, :, None, :]
            groups[-1] = together.reshape(size, size)
        else:
            groups.append(log)
    return groups


def _product(tables: Sequence[FloatArray]) -> FloatArray:
    product: FloatArray = np.ones((1,) * tables[0].ndim if tables else (1, 1))
    for table in tables:
        product = np.asarray(np.kron(product, table), dtype=np.float64)
    return product


def _marginal(joint: FloatArray, axis: int) -> FloatArray:
    others = tuple(number for number in range(2, joint.ndim) if number != axis)
    return np.asarray(joint.sum(axis=others).transpose(1, 0, 2))


def _normalised(table: FloatArray) -> FloatArray:
    return np.asarray(table / table.sum(axis=(-2, -1), keepdims=True))


def _outer_sum(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.add.outer(left, right).ravel())


def _batched_outer_sum(left: FloatArray, right: FloatArray) -> FloatArray:
    return (left[:, :, None] + right[:, None, :]).reshape(len(left), -1)


def _log(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
