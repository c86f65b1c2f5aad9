"""Decoding of Markov chains that run in parallel and of which only the sum is metered.

Exact decoding never builds the joint transition matrix. A joint transition is a product over chains and is
applied chain by chain, so the cost of a minute grows with the joint states times the *sum* of the chains'
states, not with the square of the joint states. Where there are too many joint states, blocks of chains are
decoded in turn (coordinate ascent). Long records are decoded in stretches, so that memory stays bounded.
Shapes: (batch, minute) readings, (minute, batch, joint) tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray

GROUP_STATES = 9
"""Most joint states of chains that are processed together: fewer, larger array operations."""

LEAST_LIKELIHOOD = 1e-60
"""Lower bound relative to the likeliest joint state, so that an outlier does not rule out every state."""

MAX_SWEEPS = 20
TOGETHER = 2
"""Appliances decoded jointly in coordinate ascent, always with the last chain, the rest of the home."""

WHOLE = 1500
"""Longest series decoded in one piece: a civil day on which the clocks go back."""

STRETCH = 1440
CONTEXT = 180
"""Minutes of context on both sides of a stretch; readings further away have no influence."""


class Chain(NamedTuple):
    """Markov chain of powers: an appliance or the rest of the home."""

    mean_w: FloatArray  # (state,)
    variance_w2: FloatArray  # (state,)
    start: FloatArray  # (state,)
    transition: FloatArray  # (from, to)


class Observation(NamedTuple):
    """Readings and the variance to add to the chains' own, (batch, minute) each."""

    reading_w: FloatArray
    variance_w2: FloatArray


def log_likelihood(chains: Sequence[Chain], seen: Observation) -> FloatArray:
    """Return the log-likelihood of each reading in each joint state, (minute, batch, joint)."""
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
    """Return the likeliest joint path, (chain, batch, minute) states; the first of equally likely paths."""
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
    joint = _smoothed(likelihood, start, left, right).reshape(minutes, batch, *shape)
    others = [tuple(axis + 2 for axis in range(len(shape)) if axis != chain) for chain in range(len(shape))]
    return [np.asarray(joint.sum(axis=axes).transpose(1, 0, 2)) for axes in others]


def path_score(chains: Sequence[Chain], seen: Observation, path: IntArray) -> FloatArray:
    """Return the joint log-likelihood of a path and the readings, (batch,)."""
    mean_w, variance_w2 = seen.reading_w * 0.0, seen.variance_w2
    score = np.zeros(len(seen.reading_w))
    for chain, states in zip(chains, path, strict=True):
        mean_w = mean_w + chain.mean_w[states]
        variance_w2 = variance_w2 + chain.variance_w2[states]
        score += np.log(chain.start[states[:, 0]])
        score += np.log(chain.transition[states[:, :-1], states[:, 1:]]).sum(axis=-1)
    fit = (seen.reading_w - mean_w) ** 2 / variance_w2 + np.log(2.0 * np.pi * variance_w2)
    return np.asarray(score - 0.5 * fit.sum(axis=-1))


def ascend(chains: Sequence[Chain], seen: Observation, max_sweeps: int = MAX_SWEEPS) -> IntArray:
    """Return a path that no single block of chains can improve, (chain, batch, minute) states.

    Every step is an exact Viterbi decoding of one block given the others, so the score never falls. The first
    path has every chain in its likeliest state.
    """
    start = [np.full(seen.reading_w.shape, chain.start.argmax()) for chain in chains]
    path = np.stack(start).astype(np.int64)
    score = path_score(chains, seen, path)
    for sweep in range(max_sweeps):
        for block in _blocks(len(chains), sweep):
            path[block] = viterbi([chains[number] for number in block], _without(chains, seen, path, block))
        before, score = score, path_score(chains, seen, path)
        if sweep > 0 and np.all(score <= before + 1e-9 * np.abs(before)):
            break
    return path


def block_marginals(chains: Sequence[Chain], seen: Observation) -> list[FloatArray]:
    """Return each chain's state probabilities in its block, given the best path of the other chains."""
    path = ascend(chains, seen)
    tables: dict[int, FloatArray] = {}
    for block in _blocks(len(chains), 0):
        parts = marginals([chains[number] for number in block], _without(chains, seen, path, block))
        tables |= dict(zip(block, parts, strict=True))
    return [tables[number] for number in range(len(chains))]


def in_stretches(
    decode: Callable[[FloatArray], Sequence[FloatArray]], reading_w: FloatArray, minutes_at_once: int
) -> list[FloatArray]:
    """Apply `decode`, (row, minute) -> tables of (row, minute, state), to rows of any number and length."""
    batch, minutes = reading_w.shape
    context = 0 if minutes <= WHOLE else CONTEXT
    length = minutes if minutes <= WHOLE else STRETCH
    count = -(-minutes // length)
    padded = np.pad(reading_w, ((0, 0), (context, context + count * length - minutes)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, length + 2 * context, axis=-1)[:, ::length]
    rows = windows.reshape(batch * count, -1)
    step = max(minutes_at_once // rows.shape[-1], 1)
    pieces = [decode(rows[first : first + step]) for first in range(0, len(rows), step)]
    answered = slice(context, context + length)
    joined = [np.concatenate([table[:, answered] for table in tables]) for tables in zip(*pieces, strict=True)]
    return [table.reshape(batch, count * length, -1)[:, :minutes] for table in joined]


def _without(chains: Sequence[Chain], seen: Observation, path: IntArray, block: Sequence[int]) -> Observation:
    """Subtract the power of the chains outside the block from the readings, and add their variances."""
    reading_w, variance_w2 = seen
    for number, (chain, states) in enumerate(zip(chains, path, strict=True)):
        if number not in block:
            reading_w = reading_w - chain.mean_w[states]
            variance_w2 = variance_w2 + chain.variance_w2[states]
    return Observation(reading_w, variance_w2)


def _blocks(count: int, sweep: int) -> list[list[int]]:
    """Pair neighbouring appliances, with other neighbours in every other sweep."""
    appliances = np.roll(np.arange(count - 1), -(sweep % TOGETHER)).tolist()
    pairs = [appliances[at : at + TOGETHER] for at in range(0, count - 1, TOGETHER)]
    return [[*pair, count - 1] for pair in pairs] or [[0]]


def _smoothed(likelihood: FloatArray, start: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the probability of each joint state, first given the readings so far, then given all of them."""
    belief = np.empty_like(likelihood)
    ahead = np.broadcast_to(start, likelihood.shape[1:])
    for minute, now in enumerate(likelihood):
        belief[minute] = _normalised(ahead * now)
        ahead = left.T @ belief[minute] @ right
    after = np.ones_like(belief[-1])
    for minute in range(len(belief) - 2, -1, -1):
        after = _normalised(left @ (likelihood[minute + 1] * after) @ right.T)
        belief[minute] = _normalised(belief[minute] * after)
    return belief


def _best_before(score: FloatArray, groups: Sequence[FloatArray], room: Sequence[FloatArray]) -> FloatArray:
    """Return the score of the best predecessor of every joint state, one group of chains after the other.

    Axes rotate so that the long axis of every operation is contiguous: (batch, a, b), (a, b, batch),
    (b, batch, a), (batch, a, b). `room` is overwritten.
    """
    batch, turned = len(score), score.T
    for log_transition, space in zip(groups, room, strict=True):
        before = turned.reshape(len(log_transition), 1, -1)
        turned = np.add(before, log_transition[:, :, None], out=space).max(axis=0).T
    return turned.reshape(batch, -1)


def _trace(score: FloatArray, groups: Sequence[FloatArray]) -> IntArray:
    """Trace the best path back from its last state, (batch, minute)."""
    minutes, batch = score.shape[:2]
    sizes = [len(log_transition) for log_transition in groups]
    columns = [np.ascontiguousarray(log_transition.T) for log_transition in groups]
    path = np.empty((batch, minutes), dtype=np.int64)
    path[:, -1] = score[-1].argmax(axis=-1)
    for minute in range(minutes - 2, -1, -1):
        after = np.unravel_index(path[:, minute + 1], sizes)
        into = [column[state] for column, state in zip(columns, after, strict=True)]
        path[:, minute] = (score[minute] + reduce(_outer_sum, into)).argmax(axis=-1)
    return path


def _grouped(logs: Sequence[FloatArray]) -> list[FloatArray]:
    groups = [logs[0]]
    for log in logs[1:]:
        size = len(groups[-1]) * len(log)
        if size <= GROUP_STATES:
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


def _normalised(table: FloatArray) -> FloatArray:
    return np.asarray(table / table.sum(axis=(-2, -1), keepdims=True))


def _outer_sum(left: FloatArray, right: FloatArray) -> FloatArray:
    """Add each of `left` to each of `right` along the last axis."""
    return (left[..., :, None] + right[..., None, :]).reshape(*left.shape[:-1], -1)


def _log(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
