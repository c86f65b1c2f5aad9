"""From households to the batches that a network learns from: gap-free windows, scaled by training days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from meterveil.attackers.protocol import AGGREGATE, FloatArray, IntArray, truth_w
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import VALIDATION_SHARE, consecutive_pieces
from meterveil.data.windows import Scaler, complete_starts
from meterveil.errors import InputError

Scale = Literal["spread", "peak"]


class Scaling(NamedTuple):
    """Figures of the learning days alone: scaled = (watts - shift) / factor."""

    reading_shift_w: float
    reading_factor_w: float
    power_shift_w: float
    power_factor_w: float


class Batch(NamedTuple):
    """What a loss is computed from; `power` and `on` cover the minutes that the network answers for."""

    reading: Tensor  # (batch, window) scaled
    power: Tensor  # (batch, output) scaled
    on: Tensor  # (batch, output) 0 or 1


class Series(NamedTuple):
    """One stretch of neighbouring days of one household, with one target; NaN where unknown."""

    reading_w: FloatArray  # (minute,)
    target_w: FloatArray  # (minute,)


def learning_and_choosing_days(household: Household) -> tuple[list[date], list[date]]:
    """Split the days that have readings: the last fifth only decides when to stop."""
    days = [day for day in household.days() if not np.isnan(household.day(day).aggregate_w).all()]
    count = max(round(len(days) * VALIDATION_SHARE), 1)
    if len(days) <= count:
        raise InputError(f"{household.name} has {len(days)} days with readings; an attacker needs two")
    return days[:-count], days[-count:]


def series_of(household: Household, target: str, days: Sequence[date]) -> list[Series]:
    """Cut runs of neighbouring days out, so that no window reaches across a day that is left out."""
    pieces = consecutive_pieces(household, days)
    return [Series(piece.aggregate_w, truth_w(piece, target)) for piece in pieces]


def scaling_of(learning: Sequence[Series], scale: Scale) -> Scaling:
    """Measure readings and target on the learning days."""
    reading = Scaler.fit(np.concatenate([series.reading_w for series in learning]))
    target_w = np.concatenate([series.target_w for series in learning])
    if scale == "peak":
        return Scaling(reading.mean, reading.std, 0.0, max(float(np.nanmax(target_w)), 1.0))
    power = Scaler.fit(target_w)
    return Scaling(reading.mean, reading.std, power.mean, power.std)


@dataclass(frozen=True)
class Examples:
    """Hold every minute once; a window is a number."""

    reading: Tensor  # (minute,) scaled, zero where unknown
    power: Tensor  # (minute,)
    on: Tensor  # (minute,)
    starts: IntArray  # (window,) first minute of every window without a gap
    window: int
    output: int

    @classmethod
    def of(
        cls, series: Sequence[Series], target: str, scaling: Scaling, window: int, output: int
    ) -> Examples:
        """Scale and join the series; windows never reach from one into the next."""
        offsets = np.cumsum([0, *(len(one.reading_w) for one in series)])
        starts = [
            offset + complete_starts(np.stack(one), window)
            for offset, one in zip(offsets, series, strict=False)
            if len(one.reading_w) >= window
        ]
        reading_w = np.concatenate([one.reading_w for one in series])
        target_w = np.concatenate([one.target_w for one in series])
        threshold_w = np.inf if target == AGGREGATE else on_threshold_w(target)
        return cls(
            _tensor((reading_w - scaling.reading_shift_w) / scaling.reading_factor_w),
            _tensor((target_w - scaling.power_shift_w) / scaling.power_factor_w),
            _tensor((target_w >= threshold_w).astype(np.float64)),
            np.concatenate([*starts, np.zeros(0, dtype=np.int64)]),
            window,
            output,
        )

    def batch(self, starts: IntArray) -> Batch:
        """Gather the windows that begin at these minutes."""
        first = torch.from_numpy(starts)[:, None]
        seen = first + torch.arange(self.window)
        margin = (self.window - self.output) // 2
        asked = first + torch.arange(margin, margin + self.output)
        return Batch(self.reading[seen], self.power[asked], self.on[asked])


def _tensor(values: FloatArray) -> Tensor:
    return torch.from_numpy(np.nan_to_num(values).astype(np.float32))
