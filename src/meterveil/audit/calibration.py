"""From scores to probabilities that can be believed: a logistic curve through what really happened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meterveil.audit.features import FloatArray
from meterveil.audit.uses import BoolArray

RIDGE = 1.0
"""Pulls a curve from few cases towards the plain one (slope 1, shift 0)."""
_ROUNDS = 50


class Curve(NamedTuple):
    """Map a score to log-odds."""

    slope: float = 1.0
    shift: float = 0.0

    def probability(self, score: FloatArray) -> FloatArray:
        """Return the probability behind scores."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(self.slope * score + self.shift, -40.0, 40.0))))


def fit_curve(score: FloatArray, truth: BoolArray) -> Curve:
    """Fit by Newton's method; scores are log-odds of a model that is too sure or too timid."""
    plain = np.array([1.0, 0.0])
    weights = plain.copy()
    design = np.stack([score, np.ones_like(score)], axis=-1)
    for _ in range(_ROUNDS):
        probability = Curve(*weights).probability(score)
        gradient = design.T @ (probability - truth) + RIDGE * (weights - plain)
        spread = design * (probability * (1.0 - probability))[:, None]
        step = np.linalg.solve(design.T @ spread + RIDGE * np.eye(2), gradient)
        weights = weights - np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-8:
            break
    return Curve(float(weights[0]), float(weights[1]))
