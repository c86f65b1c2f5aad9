"""Decode more chains than go into one table: a few at a time, the others held, until nothing improves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meterveil.attackers.factorial import Chain, Observation, marginals, viterbi
from meterveil.attackers.protocol import FloatArray, IntArray

MAX_SWEEPS = 20
TOGETHER = 2
"""Appliances decoded jointly, always with the last chain: the rest of the home trades power with all."""


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
    """Return a path that no block of chains can improve alone, (chain, batch, minute) states.

    Every step is an exact Viterbi of one block given the others, so the score never falls. It starts with
    every chain in its likeliest state.
    """
    start = [np.full(seen.reading_w.shape, chain.start.argmax()) for chain in chains]
    path = np.stack(start).astype(np.int64)
    score = path_score(chains, seen, path)
    for sweep in range(max_sweeps):
        for block in _blocks(len(chains), sweep):
            path[block] = viterbi([chains[number] for number in block], without(chains, seen, path, block))
        before, score = score, path_score(chains, seen, path)
        if sweep > 0 and np.all(score <= before + 1e-9 * np.abs(before)):
            break
    return path


def block_marginals(chains: Sequence[Chain], seen: Observation) -> list[FloatArray]:
    """Return each chain's state probabilities in its block, given the other chains' best path."""
    path = ascend(chains, seen)
    found: dict[int, FloatArray] = {}
    for block in _blocks(len(chains), 0):
        parts = marginals([chains[number] for number in block], without(chains, seen, path, block))
        found |= dict(zip(block, parts, strict=True))
    return [found[number] for number in range(len(chains))]


def without(chains: Sequence[Chain], seen: Observation, path: IntArray, block: Sequence[int]) -> Observation:
    """Take what the chains outside the block draw on this path off the readings, and add their variances."""
    reading_w, variance_w2 = seen
    for number, (chain, states) in enumerate(zip(chains, path, strict=True)):
        if number not in block:
            reading_w = reading_w - chain.mean_w[states]
            variance_w2 = variance_w2 + chain.variance_w2[states]
    return Observation(reading_w, variance_w2)


def _blocks(count: int, sweep: int) -> list[list[int]]:
    """Pair neighbours, other neighbours in every other sweep."""
    appliances = np.roll(np.arange(count - 1), -(sweep % TOGETHER)).tolist()
    pairs = [appliances[at : at + TOGETHER] for at in range(0, count - 1, TOGETHER)]
    return [[*pair, count - 1] for pair in pairs] or [[0]]
