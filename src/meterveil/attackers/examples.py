"""From households to the batches that a network learns from: gap-free windows, scaled by training days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from meterveil.attackers.protocol import AGGREGATE, FloatArray, IntArray, Meter, meter_of, truth_w
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import VALIDATION_SHARE, consecutive_pieces
from meterveil.data.windows import Scaler, complete_starts
from meterveil.errors import InputError

MAX_STATE_WEIGHT = 10.0


class Scaling(NamedTuple):
    """Figures of the learning days alone: scaled = (watts - shift) / factor."""

    reading_shift_w: float
    reading_factor_w: float
    power_shift_w: float
    power_factor_w: float
    state_weight: float
    """One over the entropy of the target's state, within bounds: rarer uses weigh more."""


class Batch(NamedTuple):
    """What a loss is computed from; `power` and `on` cover the minutes that the network answers for."""

    seen: Tensor  # (batch, channel, window): the scaled reading and, for recipes that ask, the clock
    power: Tensor  # (batch, output) scaled
    on: Tensor  # (batch, output) 0 or 1
    state_weight: float = 1.0
    """Makes a state as dear as a power: the rarer the target, the less its state alone would count."""


class Series(NamedTuple):
    """One stretch of neighbouring days of one household, with one target; NaN where unknown."""

    reading_w: FloatArray  # (minute,)
    target_w: FloatArray  # (minute,)
    clock: FloatArray  # (feature, minute)


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
    return [
        Series(piece.aggregate_w, truth_w(piece, target), clock_of(meter_of(piece))[0]) for piece in pieces
    ]


def clock_of(meter: Meter) -> FloatArray:
    """Write the time as (batch, feature, minute) on two circles, the day's and the week's.

    Midnight is next to midnight, and Sunday to Monday.
    """
    day = meter.minute_of_day / 1440.0
    week = (meter.weekday + day) / 7.0
    angles = 2.0 * np.pi * np.stack([day, week], axis=-2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-2)


def scaling_of(learning: Sequence[Series], target: str) -> Scaling:
    """Measure readings and target on the learning days."""
    reading = Scaler.fit(np.concatenate([series.reading_w for series in learning]))
    target_w = np.concatenate([series.target_w for series in learning])
    power = Scaler.fit(target_w)
    share = float(np.mean(_on(target_w[~np.isnan(target_w)], target)))
    entropy = -share * np.log(max(share, 1e-12)) - (1.0 - share) * np.log(max(1.0 - share, 1e-12))
    weight = 1.0 / max(float(entropy), 1.0 / MAX_STATE_WEIGHT)
    return Scaling(reading.mean, reading.std, power.mean, power.std, weight)


def _on(target_w: FloatArray, target: str) -> npt.NDArray[np.bool_]:
    threshold_w = np.inf if target == AGGREGATE else on_threshold_w(target)
    return np.asarray(target_w >= threshold_w)


@dataclass(frozen=True)
class Examples:
    """Hold every minute once; a window is a number."""

    seen: Tensor  # (channel, minute) scaled, zero where unknown
    drawn: Tensor  # (minute,) the target's share of the reading, on the reading's scale
    power: Tensor  # (minute,)
    on: Tensor  # (minute,)
    starts: IntArray  # (window,) first minute of every window without a gap
    active: IntArray  # (window,) those of them in which the target is on at some minute asked for
    window: int
    output: int
    state_weight: float

    @classmethod
    def of(
        cls, series: Sequence[Series], target: str, scaling: Scaling, window: int, output: int, clock: bool
    ) -> Examples:
        """Scale and join the series; windows never reach from one into the next."""
        offsets = np.cumsum([0, *(len(one.reading_w) for one in series)])
        starts = np.concatenate(
            [
                offset + complete_starts(np.stack([one.reading_w, one.target_w]), window)
                for offset, one in zip(offsets, series, strict=False)
                if len(one.reading_w) >= window
            ]
            or [np.zeros(0, dtype=np.int64)]
        )
        reading_w = np.concatenate([one.reading_w for one in series])
        target_w = np.concatenate([one.target_w for one in series])
        on = _on(target_w, target)
        seen = ((reading_w - scaling.reading_shift_w) / scaling.reading_factor_w)[None]
        if clock:
            seen = np.concatenate([seen, np.concatenate([one.clock for one in series], axis=-1)])
        first = starts + (window - output) // 2
        before = np.concatenate([[0], np.cumsum(on)])
        return cls(
            _tensor(seen),
            _tensor(target_w / scaling.reading_factor_w),
            _tensor((target_w - scaling.power_shift_w) / scaling.power_factor_w),
            _tensor(on.astype(np.float64)),
            starts,
            starts[before[first + output] > before[first]],
            window,
            output,
            scaling.state_weight,
        )

    def batch(self, starts: IntArray) -> Batch:
        """Gather the windows that begin at these minutes."""
        return self.mixed(starts, starts)

    def mixed(self, starts: IntArray, donors: IntArray) -> Batch:
        """Gather windows whose target is taken out and replaced by what it drew in the donor windows.

        Kelly's synthetic aggregates: every use of an appliance is seen on many backgrounds. The clock is the
        donor's, since habits belong to the appliance.
        """
        within = torch.arange(self.window)
        here, there = torch.from_numpy(starts)[:, None] + within, torch.from_numpy(donors)[:, None] + within
        seen = self.seen[:, there].movedim(0, 1)
        seen[:, 0] = self.seen[0, here] - self.drawn[here] + self.drawn[there]
        margin = (self.window - self.output) // 2
        asked = there[:, margin : margin + self.output]
        return Batch(seen, self.power[asked], self.on[asked], self.state_weight)

    def rest(self, starts: IntArray) -> Tensor:
        """Gather what all but the target drew above their lowest minute, (batch, window)."""
        here = torch.from_numpy(starts)[:, None] + torch.arange(self.window)
        rest = self.seen[0, here] - self.drawn[here]
        return rest - rest.amin(dim=1, keepdim=True)


def _tensor(values: FloatArray) -> Tensor:
    return torch.from_numpy(np.nan_to_num(values).astype(np.float32))
