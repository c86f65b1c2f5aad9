"""Was each use of an appliance found? A use is a run of on-minutes, and its time is its first minute.

Minute scores reward an attacker for the middle of a long run; what a resident minds is that the use and its
time are known.
"""

from __future__ import annotations

import numpy as np

from meterveil.bench.metrics import BoolArray, Detection, FloatArray, detection_from_counts

TOLERANCE_MINUTES = 2


def event_detection(
    truth_w: FloatArray,
    prediction_w: FloatArray,
    threshold_w: float,
    tolerance_minutes: int = TOLERANCE_MINUTES,
) -> Detection:
    """Score the uses in a prediction in watts; (batch, minute) or (minute,), one score for each row.

    A true use is found by a predicted use that begins within the tolerance. Each finds at most one, in the
    order of time; on a line no other matching finds more. What cannot be judged is left out: a use whose
    beginning is unseen (it runs in the first minute, or out of a minute that is NaN in either array), and a
    use without a match that begins within the tolerance of such a minute or of the record's ends.
    """
    return _score(truth_w, prediction_w, threshold_w, threshold_w, tolerance_minutes)


def event_detection_by_probability(
    truth_w: FloatArray,
    probability: FloatArray,
    threshold_w: float,
    cut: float = 0.5,
    tolerance_minutes: int = TOLERANCE_MINUTES,
) -> Detection:
    """Score the uses that an on/off head finds, as `event_detection` does."""
    return _score(truth_w, probability, threshold_w, cut, tolerance_minutes)


def _score(
    truth_w: FloatArray, prediction: FloatArray, truth_cut: float, prediction_cut: float, tolerance: int
) -> Detection:
    shape = truth_w.shape[:-1]
    truth, predicted = (values.reshape(-1, truth_w.shape[-1]) for values in (truth_w, prediction))
    unknown = np.isnan(truth) | np.isnan(predicted)
    vague = _near(unknown, tolerance)
    true_starts = _starts(truth >= truth_cut, unknown)
    predicted_starts = _starts(predicted >= prediction_cut, unknown)
    true_hit, predicted_hit = _match(true_starts, predicted_starts, tolerance)
    return detection_from_counts(
        hits=true_hit.sum(axis=-1).reshape(shape),
        predicted=(predicted_hit | predicted_starts & ~vague).sum(axis=-1).reshape(shape),
        true=(true_hit | true_starts & ~vague).sum(axis=-1).reshape(shape),
    )


def _starts(on: BoolArray, unknown: BoolArray) -> BoolArray:
    """Mark the on-minutes that follow a known off-minute."""
    starts = np.zeros_like(on)
    starts[:, 1:] = on[:, 1:] & ~unknown[:, 1:] & ~on[:, :-1] & ~unknown[:, :-1]
    return starts


def _near(unknown: BoolArray, tolerance: int) -> BoolArray:
    """Mark the minutes within the tolerance of an unknown one; outside the record, all are unknown."""
    padded = np.pad(unknown, ((0, 0), (tolerance, tolerance)), constant_values=True)
    reach = np.lib.stride_tricks.sliding_window_view(padded, 2 * tolerance + 1, axis=-1)
    return np.asarray(reach.any(axis=-1))


def _match(true: BoolArray, predicted: BoolArray, tolerance: int) -> tuple[BoolArray, BoolArray]:
    """Pair starts one to one in the order of time, and mark those that found a partner.

    Rows are laid end to end, too far apart for a pair across them.
    """
    stride = true.shape[-1] + tolerance + 1
    true_at, predicted_at = (_times(starts, stride) for starts in (true, predicted))
    true_hit, predicted_hit = np.zeros_like(true), np.zeros_like(predicted)
    i = j = 0
    while i < len(true_at) and j < len(predicted_at):
        ahead = predicted_at[j] - true_at[i]
        if abs(ahead) <= tolerance:
            true_hit[divmod(true_at[i], stride)] = predicted_hit[divmod(predicted_at[j], stride)] = True
        i, j = i + (ahead >= -tolerance), j + (ahead <= tolerance)
    return true_hit, predicted_hit


def _times(starts: BoolArray, stride: int) -> list[int]:
    row, minute = np.nonzero(starts)
    return [int(time) for time in row * stride + minute]
