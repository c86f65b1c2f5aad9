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
    spread_w2 = variance_w2 + seen.variance_w2.T[..., None]
    gap_w = seen.reading_w.T[..., None] - mean_w
    return np.asarray(-0.5 * (gap_w**2 / spread_w2 + np.log(2.0 * np.pi * spread_w2)))


def viterbi(chains: Sequence[Chain], seen: Observation) -> IntArray:
    """Return the likeliest joint path, (chain, batch, minute) states; of equally likely ones the first."""
    score = log_likelihood(chains, seen)
    logs = [_log(chain.transition) for chain in chains]
    groups = _grouped(logs)
    score[0] += reduce(_outer_sum, [_log(chain.start) for chain in chains])
    for minute in range(1, len(score)):
        score[minute] += _best_before(score[minute - 1], groups)
    shape = [len(chain.mean_w) for chain in chains]
    return _trace(score, logs, shape)


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


def _best_before(score: FloatArray, groups: Sequence[FloatArray]) -> FloatArray:
    """Take the best predecessor of every joint state, one group of chains after the other."""
    batch, inner = len(score), score.shape[-1]
    for log_transition in groups:
        states = len(log_transition)
        inner //= states
        parts = score.reshape(batch, -1, states, 1, inner)
        score = (parts + log_transition[:, :, None]).max(axis=2)
    return score.reshape(batch, -1)


def _trace(score: FloatArray, logs: Sequence[FloatArray], shape: Sequence[int]) -> IntArray:
    """Walk back from the best end; each minute looks once at all joint states that lead to the next."""
    minutes, batch = score.shape[:2]
    path = np.empty((len(shape), batch, minutes), dtype=np.int64)
    best = score[-1].argmax(axis=-1)
    path[:, :, -1] = np.unravel_index(best, shape)
    for minute in range(minutes - 2, -1, -1):
        into = [log[:, state].T for log, state in zip(logs, path[:, :, minute + 1], strict=True)]
        best = (score[minute] + reduce(_batched_outer_sum, into)).argmax(axis=-1)
        path[:, :, minute] = np.unravel_index(best, shape)
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
