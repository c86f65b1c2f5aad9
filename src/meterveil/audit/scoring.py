"""How well a reading agrees with sub-meters: the benchmark's scores, and uses as a resident counts them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meterveil.audit.features import FloatArray
from meterveil.audit.uses import OTHER, SHAPES, BoolArray, agreeing, runs_of
from meterveil.bench.events import event_detection_by_probability
from meterveil.bench.metrics import probability_detection
from meterveil.data.names import kind
from meterveil.data.protocols import on_threshold_w


class Score(NamedTuple):
    """Scores of one appliance; NaN where it was never used."""

    f1: float
    """Of minutes (D10)."""
    event_f1: float
    """Of beginnings within two minutes, every pause ending a use."""
    use_f1: float
    """Of whole uses, pauses joined."""
    uses: int
    """How many there really were."""


def score(name: str, truth_w: FloatArray, said: FloatArray, cut: float = 0.5) -> Score:
    """Compare what was said of each minute, on from `cut`, with a sub-meter; NaN where either is unknown."""
    threshold_w = on_threshold_w(name)
    minutes = probability_detection(truth_w, said, threshold_w, cut).f1
    events = event_detection_by_probability(truth_w, said, threshold_w, cut).f1
    known = ~np.isnan(truth_w + said)
    use_f1, uses = _use_f1(name, (truth_w >= threshold_w) & known, (said >= cut) & known)
    return Score(float(minutes), float(events), use_f1, uses)


def _use_f1(name: str, truth: BoolArray, said: BoolArray) -> tuple[float, int]:
    """Count found uses that are right, and true uses that were found."""
    shape = SHAPES.get(kind(name), OTHER)
    true, found = runs_of(truth, shape), runs_of(said, shape)
    if not true:
        return float("nan"), 0
    right = int(agreeing(found, true, len(truth)).sum())
    met = int(agreeing(true, found, len(truth)).sum())
    precision, recall = right / max(len(found), 1), met / len(true)
    return 2 * precision * recall / max(precision + recall, 1e-12), len(true)
