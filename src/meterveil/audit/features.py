"""What the shipped network sees of a meter: power above what runs anyway, so that any home's base fits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

WIDE_MINUTES = 241
"""The lowest reading over four hours is what runs anyway: no appliance that is asked for lasts longer."""
NARROW_MINUTES = 31
"""The lowest reading over half an hour also takes an oven or a washing drum away under a kettle."""

MOST_KW = 12.0
CHANNELS = 3


def features(reading_w: FloatArray) -> npt.NDArray[np.float32]:
    """Turn gap-free readings, (batch, minute), into (batch, channel, minute)."""
    above_kw = (reading_w - lowest(reading_w, WIDE_MINUTES)) / 1000.0
    step_kw = (reading_w - lowest(reading_w, NARROW_MINUTES)) / 1000.0
    channels = [np.clip(above_kw, 0.0, MOST_KW) / 2.0, _fine(above_kw), _fine(step_kw)]
    return np.stack(channels, axis=-2).astype(np.float32)


def lowest(reading_w: FloatArray, window: int) -> FloatArray:
    """Return the lowest reading over an odd number of minutes around each, along the last axis.

    Two overlapping windows of a power of two minutes cover it: the work grows with its logarithm.
    """
    half = window // 2
    found = np.pad(reading_w, [(0, 0)] * (reading_w.ndim - 1) + [(half, half)], mode="edge")
    reach = 1
    while reach * 2 <= window:
        found = np.minimum(found[..., :-reach], found[..., reach:])
        reach *= 2
    rest = window - reach
    return np.asarray(np.minimum(found[..., : found.shape[-1] - rest], found[..., rest:]))


def _fine(power_kw: FloatArray) -> FloatArray:
    """Spread small powers apart: a fridge is as visible as a shower."""
    return np.asarray(np.log1p(20.0 * np.clip(power_kw, 0.0, MOST_KW)) / 4.0)
