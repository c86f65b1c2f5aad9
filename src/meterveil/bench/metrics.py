"""Scores of one attacker on one target, minute by minute.

Arrays are (batch, minute) or (minute,): a score reduces the last axis and has the shape that is left;
flatten a batch first to score its minutes together. A minute where the truth or the prediction is NaN is
left out. What is undefined is NaN and never a number that looks like a score: means over cases leave it
out, as D12 does with an appliance that stands still on the test day.
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
    "rmse": 1,
    "mae": 1,
    "sae": 1,
    "precision": -1,
    "recall": -1,
    "f1": -1,
    "f1_head": -1,
    "f1_best": -1,
    "event_precision": -1,
    "event_recall": -1,
    "event_f1": -1,
    "information_bits": -1,
}
"""Metric -> sign of the change that makes an attacker worse."""


class Detection(NamedTuple):
    """How well the on-minutes, or the uses, of an appliance were found."""

    precision: FloatArray
    """Share of what was predicted that is true; NaN where nothing was predicted."""
    recall: FloatArray
    """Share of what is true that was predicted; NaN where the appliance was never on."""
    f1: FloatArray
    """NaN where the appliance was never on, else 0 where nothing true was predicted.

    With no true use the formula gives 0 for any false alarm and is undefined for none, so a raw and a masked
    score of one day could not be compared. Such false alarms show in the precision and in the errors.
    """


def harm_sign(metric: str) -> int:
    """Say which way a metric moves when an attacker gets worse: 1 up, -1 down."""
    if metric not in HARM_SIGN:
        raise InputError(f"there is no metric {metric!r}; there are {', '.join(HARM_SIGN)}")
    return HARM_SIGN[metric]


def seen(prediction: FloatArray, reading_w: FloatArray) -> FloatArray:
    """Make a prediction unknown where the meter was: what a model says over a gap is not scored."""
    return np.where(np.isnan(reading_w), np.nan, prediction)


def rmse(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return the root of the mean squared error; NaN where no minute is known."""
    return np.sqrt(_mean_over_known((prediction_w - truth_w) ** 2))


def mae(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return the mean absolute error; NaN where no minute is known."""
    return _mean_over_known(np.abs(prediction_w - truth_w))


def sae(truth_w: FloatArray, prediction_w: FloatArray) -> FloatArray:
    """Return |sum of predictions - sum of truths| / sum of truths, the error of the energy.

    NaN where the truth sums to nothing: no amount is a share of nothing.
    """
    known = _known(truth_w, prediction_w)
    true_sum = _sum_where(known, truth_w)
    difference = np.abs(_sum_where(known, prediction_w) - true_sum)
    return _ratio(difference, np.where(true_sum > 0, true_sum, 0.0))


def power_detection(truth_w: FloatArray, prediction_w: FloatArray, threshold_w: float) -> Detection:
    """Score the on-minutes of a prediction in watts; on is at least the threshold, in both alike (D10)."""
    return _detection(
        truth_w >= threshold_w, prediction_w >= threshold_w, known=_known(truth_w, prediction_w)
    )


def probability_detection(
    truth_w: FloatArray, probability: FloatArray, threshold_w: float, cut: float = 0.5
) -> Detection:
    """Score the on-minutes of an on/off head: a probability of at least `cut` is on.

    A thresholded regressor alone understates an attacker: it hedges in watts where a head decides.
    """
    return _detection(truth_w >= threshold_w, probability >= cut, known=_known(truth_w, probability))


def detection_from_counts(hits: IntArray, predicted: IntArray, true: IntArray) -> Detection:
    """Turn counts into precision, recall and F1; see `Detection` for what is undefined."""
    return Detection(
        precision=_ratio(hits, predicted),
        recall=_ratio(hits, true),
        f1=_ratio(2 * hits, np.where(true > 0, predicted + true, 0)),
    )


def leak(metric: str, prior: npt.ArrayLike, clean: npt.ArrayLike, masked: npt.ArrayLike) -> FloatArray:
    """Return the share of the way from the prior predictor to the clean attacker that is still covered.

    0 says that the meter tells no more than habits do, 1 that the defence is useless. Below 0 the attacker
    is misled and would do better not to look; above 1 the defence helps it. NaN where the clean attacker is
    no better than the prior: there is nothing to leak. A single case may divide by a tiny difference, so
    for many cases give their mean scores rather than average their leaks.
    """
    sign = harm_sign(metric)
    prior_score, clean_score, masked_score = (np.asarray(score, float) for score in (prior, clean, masked))
    whole = sign * (prior_score - clean_score)
    return _ratio(sign * (prior_score - masked_score), np.where(whole > 0, whole, 0.0))


def _known(truth: FloatArray, prediction: FloatArray) -> BoolArray:
    return ~(np.isnan(truth) | np.isnan(prediction))


def _sum_where(known: BoolArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.where(known, values, 0.0).sum(axis=-1))


def _mean_over_known(errors: FloatArray) -> FloatArray:
    known = ~np.isnan(errors)
    return _ratio(_sum_where(known, errors), known.sum(axis=-1))


def _detection(truth_on: BoolArray, predicted_on: BoolArray, known: BoolArray) -> Detection:
    true, predicted = truth_on & known, predicted_on & known
    return detection_from_counts(
        hits=(true & predicted).sum(axis=-1), predicted=predicted.sum(axis=-1), true=true.sum(axis=-1)
    )


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> FloatArray:
    """Divide; NaN where the whole is zero."""
    numerator, denominator = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    quotient: FloatArray = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient
