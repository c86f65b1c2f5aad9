"""Windows of minutes for models that look at an hour or a day at a time, and their scaling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from meterveil.data.household import FloatArray
from meterveil.errors import InputError


def sliding_windows(values: FloatArray, length: int, stride: int = 1) -> FloatArray:
    """View (..., minute) as (..., window, minute in window) without copying; the view is read-only."""
    _check_window(values.shape[-1], length, stride)
    views = np.lib.stride_tricks.sliding_window_view(values, length, axis=-1)
    return views[..., ::stride, :]


def complete_starts(channels: FloatArray, length: int, stride: int = 1) -> npt.NDArray[np.int64]:
    """Return the first minute of every window in which every channel knows all minutes.

    `channels` is (minute,) or (channel, minute).
    """
    _check_window(channels.shape[-1], length, stride)
    unknown = np.isnan(np.atleast_2d(channels)).any(axis=0)
    before = np.concatenate([[0], np.cumsum(unknown)])
    starts = np.arange(0, channels.shape[-1] - length + 1, stride, dtype=np.int64)
    complete: npt.NDArray[np.int64] = starts[before[starts + length] == before[starts]]
    return complete


@dataclass(frozen=True)
class Scaler:
    """Scaling of watts to zero mean and unit spread, from training days alone."""

    mean: float
    std: float

    @classmethod
    def fit(cls, training: FloatArray) -> Self:
        """Measure mean and spread of training values; unknown minutes are ignored.

        A channel that never changes gets a spread of 1 W, so that it is scaled to zeros.
        """
        known = training[~np.isnan(training)]
        if known.size == 0:
            raise InputError("the training values of a scaler are all unknown; give days with readings")
        return cls(float(known.mean()), float(known.std()) or 1.0)

    def transform(self, watts: FloatArray) -> FloatArray:
        """Scale watts."""
        return (watts - self.mean) / self.std


def _check_window(minutes: int, length: int, stride: int) -> None:
    if length < 1 or stride < 1:
        raise InputError(f"a window of {length} minutes every {stride} is empty; give 1 or more of both")
    if length > minutes:
        raise InputError(f"a window of {length} minutes does not fit into {minutes}; give a longer record")
