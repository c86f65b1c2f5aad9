"""From scores of single cases to the paper's headlines: Delta, relative change and significance (D9).

A case is one attacker on one appliance; the aggregate channel is not one of them. A case whose score is
undefined (NaN) is left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr  # type: ignore[import-untyped]

from meterveil.bench.metrics import BoolArray, FloatArray, harm_sign
from meterveil.errors import InputError

SIGNIFICANT_BELOW = 0.05


def delta(raw: npt.ArrayLike, masked: npt.ArrayLike) -> FloatArray:
    """Return masked - raw, the paper's Delta: positive errors and negative scores are privacy gained."""
    return np.subtract(masked, raw, dtype=np.float64)


def headline_percent(metric: str, raw: npt.ArrayLike, masked: npt.ArrayLike) -> float:
    """Return the paper's "RMSE Inc." or "F1 Red.": how far the mean over all cases moved, as a harm (D9).

    It is a ratio of means. A mean of ratios would be ruled by the cases that were near zero before.
    """
    before, after = np.broadcast_arrays(np.asarray(raw, float), np.asarray(masked, float))
    defined = ~(np.isnan(before) | np.isnan(after))
    whole = before[defined].sum()
    if whole == 0:
        return float("nan")
    return float(100 * harm_sign(metric) * (after[defined].sum() - whole) / whole)


def p_value(masked_by_seed: FloatArray, raw: npt.ArrayLike) -> FloatArray:
    """Test whether the mean over seeds, the last axis, is the raw value: two-sided one-sample t-test.

    Seeds that all agree leave no doubt: p is 1 where they equal the raw value and 0 where they do not. The
    paper prints no p for these and counts them as significant.
    """
    seeds = masked_by_seed.shape[-1]
    if seeds < 2:
        raise InputError(f"a t-test over {seeds} seed says nothing; give at least 2, the paper has 5")
    change = masked_by_seed - np.asarray(raw, float)[..., None]
    mean = change.mean(axis=-1)
    error = change.std(axis=-1, ddof=1) / np.sqrt(seeds)
    certain = np.where(mean == 0, 0.0, np.inf)
    t = np.divide(np.abs(mean), error, out=certain, where=error != 0)
    return np.asarray(2 * stdtr(seeds - 1, -t))


def is_harmful(metric: str, change: npt.ArrayLike, p: npt.ArrayLike) -> BoolArray:
    """Mark the cases that changed significantly and to the attacker's harm; the other way does not count."""
    return (harm_sign(metric) * np.asarray(change, float) > 0) & (np.asarray(p, float) < SIGNIFICANT_BELOW)
