"""Scores of one attacker on one target, and the paper's headlines over many such cases (D9).

Arrays of minutes are (batch, minute) or (minute,); a score reduces the last axis. Minutes in which the truth
or the prediction is NaN are left out. An undefined score is NaN, such as that of an appliance that was not
used on the test day (D12), and means over cases leave it out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

HARM_SIGN: dict[str, int] = {
    **dict.fromkeys(("rmse", "mae", "sae"), 1),
    **dict.fromkeys(("f1", "f1_head", "f1_best", "event_f1", "information_bits"), -1),
}
"""Metric -> sign of a change that makes an attacker worse."""

TOLERANCE_MINUTES = 2
"""Most minutes between the beginnings of a true use and of a predicted one that finds it."""

MISLED = "misled"
"""Label of a negative leak of a fixed attacker."""
MISLED_NOTE = (
    "Misled: a fixed attacker, which never saw the defence, scores below guessing from routine. It would do "
    "better after retraining: measure adaptive attackers too."
)
UNKNOWN = "unknown"
"""Text in place of a leak where no attacker reads more than the prior without a defence."""
UNKNOWN_NOTE = (
    "Unknown leak: even without a defence the attackers read no more than routine tells. Use stronger attackers or "
    "more days."
)
UNDERTRAINED = "undertrained"
"""Text in place of a negative leak (D17)."""
MOST_BELOW_PRIOR = 0.02
"""F1 below the prior up to which an attacker still counts: habits were as good as its reading."""
UNDERTRAINED_NOTE = (
    "Undertrained attackers score below guessing from routine: a weak measurement, no success of the defence. "
    f"They count as routine; more than {MOST_BELOW_PRIOR} below, the defence has no rank."
)


class Detection(NamedTuple):
    """Precision, recall and F1 of the on-minutes, or of the uses, of an appliance."""

    precision: FloatArray  # NaN where nothing was predicted
    recall: FloatArray  # NaN where the appliance was never on
    f1: FloatArray  # NaN where the appliance was never on: 0 for any false alarm would not compare


def harm_sign(metric: str) -> int:
    """Return the direction in which a metric moves when an attacker gets worse: 1 up, -1 down."""
    if metric not in HARM_SIGN:
        raise InputError(f"there is no metric {metric!r}; there are {', '.join(HARM_SIGN)}")
    return HARM_SIGN[metric]


def seen(prediction: FloatArray, reading_w: FloatArray) -> FloatArray:
    """Make a prediction NaN where the meter has no reading, so that gaps are not scored."""
    return np.where(np.isnan(reading_w), np.nan, prediction)


def rmse(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return the root of the mean squared error; NaN where no minute is known."""
    return np.sqrt(_mean_over_known((prediction_w - truth_w) ** 2))


def mae(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return the mean absolute error; NaN where no minute is known."""
    return _mean_over_known(np.abs(prediction_w - truth_w))


def sae(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return the error of the energy, |sum of predictions - sum of truths| / sum of truths.

    NaN where the truth sums to zero.
    """
    known = _known(truth_w, prediction_w)
    true_sum = _sum_where(known, truth_w)
    difference = np.abs(_sum_where(known, prediction_w) - true_sum)
    return _ratio(difference, np.where(true_sum > 0, true_sum, 0.0))


def power_detection(truth_w: FloatArray, prediction_w: FloatArray, threshold_w: float) -> Detection:
    """Score the on-minutes of a prediction in watts, with one threshold for truth and prediction (D10)."""
    return _detection(truth_w >= threshold_w, prediction_w >= threshold_w, known=_known(truth_w, prediction_w))


def probability_detection(
    truth_w: FloatArray, probability: FloatArray, threshold_w: float, cut: float = 0.5
) -> Detection:
    """Score the on-minutes of an on/off head: a probability of at least `cut` is on.

    The threshold on predicted watts alone would understate an attacker.
    """
    return _detection(truth_w >= threshold_w, probability >= cut, known=_known(truth_w, probability))


class Counts(NamedTuple):
    """Uses that were found, uses that were predicted, and true uses."""

    hits: IntArray
    predicted: IntArray
    true: IntArray


def event_counts(
    truth_w: FloatArray,
    prediction: FloatArray,
    threshold_w: float,
    tolerance_minutes: int = TOLERANCE_MINUTES,
    cut: float | None = None,
) -> Counts:
    """Count single uses of an appliance: runs of on-minutes, each at the time of its first minute.

    Scores by minute reward an attacker for the middle of a long run; these count the uses that it finds. The
    prediction is in watts, or a probability with `cut` as its threshold. A true use is found by a
    predicted use that begins within the tolerance; each finds at most one, in the order of time. Left out
    are uses whose beginning is unseen (they run in the first minute, or after a minute that is NaN in either
    array), and unmatched uses that begin within the tolerance of such a minute or of the record's ends. `detection`
    turns the counts into scores.
    """
    shape = truth_w.shape[:-1]
    truth, predicted = (values.reshape(-1, truth_w.shape[-1]) for values in (truth_w, prediction))
    unknown = np.isnan(truth) | np.isnan(predicted)
    vague = _near(unknown, tolerance_minutes)
    true_starts = _starts(truth >= threshold_w, unknown)
    predicted_starts = _starts(predicted >= (threshold_w if cut is None else cut), unknown)
    true_hit, predicted_hit = _match(true_starts, predicted_starts, tolerance_minutes)
    return Counts(
        hits=true_hit.sum(axis=-1).reshape(shape),
        predicted=(predicted_hit | predicted_starts & ~vague).sum(axis=-1).reshape(shape),
        true=(true_hit | true_starts & ~vague).sum(axis=-1).reshape(shape),
    )


def detection(counts: Counts) -> Detection:
    """Return precision, recall and F1 of counts."""
    hits, predicted, true = counts
    return Detection(
        precision=_ratio(hits, predicted),
        recall=_ratio(hits, true),
        f1=_ratio(2 * hits, np.where(true > 0, predicted + true, 0)),
    )


def leak(metric: str, prior: npt.ArrayLike, clean: npt.ArrayLike, masked: npt.ArrayLike) -> FloatArray:
    """Return what the attacker gains over guessing from routine, as a share of its gain without a defence.

    1 = as exposed as without a defence, 0 = no better than guessing from routine; below 0 the attacker is
    undertrained (D17). NaN where the attacker gains nothing without a defence. A single case may divide by a
    tiny difference: for many cases, give mean scores rather than averaging leaks.
    """
    sign = harm_sign(metric)
    prior_score, clean_score, masked_score = (np.asarray(score, float) for score in (prior, clean, masked))
    whole = sign * (prior_score - clean_score)
    return _ratio(sign * (prior_score - masked_score), np.where(whole > 0, whole, 0.0))


def delta(raw: npt.ArrayLike, masked: npt.ArrayLike) -> FloatArray:
    """Return masked - raw, the paper's Delta."""
    return np.subtract(masked, raw, dtype=np.float64)


def headline_percent(metric: str, raw: npt.ArrayLike, masked: npt.ArrayLike) -> float:
    """Return the paper's "RMSE Inc." or "F1 Red.": the ratio of means over all cases, in percent (D9).

    Cases with an undefined score are left out; the aggregate channel is not a case.
    """
    before, after = np.broadcast_arrays(np.asarray(raw, float), np.asarray(masked, float))
    defined = ~(np.isnan(before) | np.isnan(after))
    whole = before[defined].sum()
    if whole == 0:
        return float("nan")
    return float(100 * harm_sign(metric) * (after[defined].sum() - whole) / whole)


def _known(truth: FloatArray, prediction: FloatArray) -> BoolArray:
    return ~(np.isnan(truth) | np.isnan(prediction))


def _sum_where(known: BoolArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.where(known, values, 0.0).sum(axis=-1))


def _mean_over_known(errors: FloatArray) -> FloatArray:
    known = ~np.isnan(errors)
    return _ratio(_sum_where(known, errors), known.sum(axis=-1))


def _detection(truth_on: BoolArray, predicted_on: BoolArray, known: BoolArray) -> Detection:
    true, predicted = truth_on & known, predicted_on & known
    return detection(Counts((true & predicted).sum(axis=-1), predicted.sum(axis=-1), true.sum(axis=-1)))


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> FloatArray:
    """Divide; NaN where the whole is zero."""
    numerator, denominator = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    quotient: FloatArray = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


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
