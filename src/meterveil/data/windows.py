"""Windows of minutes for models that look at an hour or a day at a time, and their scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Self

import numpy as np
import numpy.typing as npt

from meterveil.data.household import FloatArray, Household
from meterveil.data.splits import consecutive_pieces
from meterveil.errors import InputError


def sliding_windows(values: FloatArray, length: int, stride: int = 1) -> FloatArray:
    """View (..., minute) as (..., window, minute in window) without copying; the view is read-only."""
    _check_window(values.shape[-1], length, stride)
    views = np.lib.stride_tricks.sliding_window_view(values, length, axis=-1)
    return views[..., ::stride, :]


def complete_windows(channels: FloatArray, length: int, stride: int = 1) -> FloatArray:
    """Copy out the windows in which no minute is unknown.

    `channels` is (minute,) or (channel, minute); a window counts only where every channel knows all of its
    minutes, so that the channels of a window stay aligned. Returns (window, length) or
    (channel, window, length).
    """
    views = sliding_windows(channels, length, stride)
    return views[..., complete_starts(channels, length, stride) // stride, :]


def complete_starts(channels: FloatArray, length: int, stride: int = 1) -> npt.NDArray[np.int64]:
    """First minute of every window in which no channel has an unknown minute."""
    _check_window(channels.shape[-1], length, stride)
    unknown = np.isnan(np.atleast_2d(channels)).any(axis=0)
    before = np.concatenate([[0], np.cumsum(unknown)])
    starts = np.arange(0, channels.shape[-1] - length + 1, stride, dtype=np.int64)
    complete: npt.NDArray[np.int64] = starts[before[starts + length] == before[starts]]
    return complete


@dataclass(frozen=True)
class Scaler:
    """Shift and stretch watts to zero mean and unit spread, with figures of the training days alone."""

    mean: float
    std: float

    @classmethod
    def fit(cls, training: FloatArray) -> Self:
        """Measure mean and spread of training values; unknown minutes are ignored.

        A channel that never changes gets a spread of 1 W: an appliance that was off all along is scaled to
        zeros, not to infinities.
        """
        known = training[~np.isnan(training)]
        if known.size == 0:
            raise InputError("a scaler was given no known minute; give training days with readings")
        return cls(float(known.mean()), float(known.std()) or 1.0)

    @classmethod
    def fit_days(cls, household: Household, training: Sequence[date], channel: str = "aggregate") -> Self:
        """Measure one channel on the training days and on no other minute of the household."""
        pieces = consecutive_pieces(household, training)
        if not pieces:
            raise InputError("a scaler was given no training day; give at least one")
        return cls.fit(np.concatenate([channel_w(piece, channel) for piece in pieces]))

    def transform(self, watts: FloatArray) -> FloatArray:
        """Scale watts."""
        return (watts - self.mean) / self.std

    def inverse(self, scaled: FloatArray) -> FloatArray:
        """Turn scaled values back into watts."""
        return scaled * self.std + self.mean


def channel_w(household: Household, channel: str) -> FloatArray:
    """Return the readings of the aggregate or of one appliance, by name."""
    if channel == "aggregate":
        return household.aggregate_w
    return household.select([channel]).appliances_w[channel]


def _check_window(minutes: int, length: int, stride: int) -> None:
    if length < 1 or stride < 1:
        raise InputError(f"a window of {length} minutes every {stride} is none; give 1 or more of both")
    if length > minutes:
        raise InputError(f"a window of {length} minutes does not fit into {minutes}; give a longer record")
