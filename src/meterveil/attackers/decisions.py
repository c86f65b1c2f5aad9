"""On/off decisions from on-probabilities: F1, and the threshold that maximises it."""

from __future__ import annotations

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray


def f1(truth: BoolArray, predicted: BoolArray) -> float:
    """Return F1; zero where neither is ever true."""
    return 2 * int(np.sum(truth & predicted)) / max(int(np.sum(truth)) + int(np.sum(predicted)), 1)


def best_threshold(probability: FloatArray, truth: BoolArray) -> tuple[float, float]:
    """Return the threshold on `probability` whose decisions have the best F1, and that F1.

    A threshold of one half maximises accuracy; for a rare appliance the best threshold for F1 is far lower,
    half of the F1 that can be reached.
    """
    if not truth.any():
        return 0.5, 0.0
    order = np.argsort(-probability, kind="stable")
    sorted_probability = probability[order]
    scores = 2 * np.cumsum(truth[order]) / (np.arange(1, len(order) + 1) + truth.sum())
    last_of_its_value = np.append(np.diff(sorted_probability) != 0, True)
    best = int(np.argmax(np.where(last_of_its_value, scores, -1.0)))
    return float(sorted_probability[best]), float(scores[best])


def recentred(probability: FloatArray, threshold: float) -> FloatArray:
    """Shift the log-odds so that `threshold` becomes one half, the cut that scores use."""
    threshold = min(max(threshold, 1e-9), 1.0 - 1e-9)
    yes, no = probability * (1.0 - threshold), (1.0 - probability) * threshold
    shifted: FloatArray = yes / (yes + no)
    return np.where(probability >= threshold, np.maximum(shifted, 0.5), shifted)
