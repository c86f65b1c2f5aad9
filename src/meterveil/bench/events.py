"""Detection of single uses of an appliance: a use is a run of on-minutes, its time is its first minute.

Scores by minute reward an attacker for the middle of a long run; these count the uses that it finds in time.
"""

from __future__ import annotations

import numpy as np

from meterveil.bench.metrics import BoolArray, Detection, FloatArray, detection_from_counts

TOLERANCE_MINUTES = 2


def event_detection(
    truth_w: FloatArray,
    prediction: FloatArray,
    threshold_w: float,
    tolerance_minutes: int = TOLERANCE_MINUTES,
    cut: float | None = None,
) -> Detection:
    """Score the uses in a prediction; (batch, minute) or (minute,), one score for each row.

    The prediction is in watts, or a probability with `cut` as its threshold. A true use is found by a
    predicted use that begins within the tolerance; each finds at most one, in the order of time. Left out
    are uses whose beginning is unseen (they run in the first minute, or after a minute that is NaN in either
    array), and unmatched uses that begin within the tolerance of such a minute or of the record's ends.
    """
    shape = truth_w.shape[:-1]
    truth, predicted = (values.reshape(-1, truth_w.shape[-1]) for values in (truth_w, prediction))
    unknown = np.isnan(truth) | np.isnan(predicted)
    vague = _near(unknown, tolerance_minutes)
    true_starts = _starts(truth >= threshold_w, unknown)
    predicted_starts = _starts(predicted >= (threshold_w if cut is None else cut), unknown)
    true_hit, predicted_hit = _match(true_starts, predicted_starts, tolerance_minutes)
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
    """Mark the minutes within the tolerance of an unknown one; minutes outside the record are unknown."""
    padded = np.pad(unknown, ((0, 0), (tolerance, tolerance)), constant_values=True)
    reach = np.lib.stride_tricks.sliding_window_view(padded, 2 * tolerance + 1, axis=-1)
    return np.asarray(reach.any(axis=-1))


def _match(true: BoolArray, predicted: BoolArray, tolerance: int) -> tuple[BoolArray, BoolArray]:
    """Pair starts one to one in the order of time, and mark those with a partner.

    Rows are put end to end, too far apart for a pair across them. No other matching finds more.
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
