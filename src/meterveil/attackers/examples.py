"""Training batches of networks: windows without gaps, scaled by the learning days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from meterveil.attackers.protocol import Meter, meter_of, truth_w
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.splits import Scaler, complete_starts, consecutive_pieces, sliding_windows

MAX_STATE_WEIGHT = 10.0
LEVELS = 8
"""Number of levels of peak power between which uses are balanced."""


class Scaling(NamedTuple):
    """Scaling of the learning days: scaled = (watts - shift) / factor."""

    reading_shift_w: FloatArray  # ()
    reading_factor_w: FloatArray  # ()
    power_shift_w: FloatArray  # (target,)
    power_factor_w: FloatArray  # (target,)
    state_weight: FloatArray  # (target,)
    """One over the entropy of each target's state, bounded: rarer uses weigh more."""

    def reading(self, reading_w: FloatArray) -> FloatArray:
        return np.asarray((reading_w - self.reading_shift_w) / self.reading_factor_w)


class Batch(NamedTuple):
    """Input of a loss; `power` and `on` cover the minutes that the network estimates."""

    seen: Tensor  # (batch, channel, window): the scaled reading and, if the recipe has one, the clock
    power: Tensor  # (batch, target, output) scaled
    on: Tensor  # (batch, target, output) 0 or 1
    state_weight: Tensor  # (target, 1)


class Series(NamedTuple):
    """Consecutive days of one household; NaN where unknown."""

    reading_w: FloatArray  # (minute,)
    targets_w: FloatArray  # (target, minute)
    clock: FloatArray  # (feature, minute)


def series_of(household: Household, targets: Sequence[str], days: Sequence[date]) -> list[Series]:
    """Cut out runs of consecutive days, so that no window spans a missing day."""
    series = []
    for piece in consecutive_pieces(household, days):
        targets_w = np.stack([truth_w(piece, target) for target in targets])
        series.append(Series(piece.aggregate_w, targets_w, clock_of(meter_of(piece))[0]))
    return series


def clock_of(meter: Meter) -> FloatArray:
    """Return sine and cosine of the time of day and of the week, (batch, feature, minute)."""
    day = meter.minute_of_day / 1440.0
    week = (meter.weekday + day) / 7.0
    angles = 2.0 * np.pi * np.stack([day, week], axis=-2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-2)


def scaling_of(learning: Sequence[Series], targets: Sequence[str]) -> Scaling:
    """Compute the scaling of readings and targets on the learning days."""
    reading = Scaler.fit(np.concatenate([series.reading_w for series in learning]))
    targets_w = np.concatenate([series.targets_w for series in learning], axis=1)
    powers = [Scaler.fit(target_w) for target_w in targets_w]
    shift_w, factor_w = np.array([power.mean for power in powers]), np.array([power.std for power in powers])
    state_weight = np.array([_state_weight(*pair) for pair in zip(targets_w, targets, strict=True)])
    return Scaling(np.asarray(reading.mean), np.asarray(reading.std), shift_w, factor_w, state_weight)


def _state_weight(target_w: FloatArray, target: str) -> float:
    share = float(np.mean(_on(target_w[~np.isnan(target_w)], target)))
    entropy = -share * np.log(max(share, 1e-12)) - (1.0 - share) * np.log(max(1.0 - share, 1e-12))
    return 1.0 / max(float(entropy), 1.0 / MAX_STATE_WEIGHT)


def _on(target_w: FloatArray, target: str) -> BoolArray:
    threshold_w = np.inf if target == AGGREGATE else on_threshold_w(target)
    return np.asarray(target_w >= threshold_w)


class Uses(NamedTuple):
    """Windows in which a target is on in an estimated minute."""

    starts: IntArray  # (use,)
    odds: FloatArray  # (use,) probability to be drawn


@dataclass(frozen=True)
class Examples:
    """All minutes of some series, from which windows are gathered by their first minute."""

    seen: Tensor  # (channel, minute) scaled, zero where unknown
    drawn: Tensor  # (target, minute) each appliance's part of the scaled reading; 0 for the aggregate
    power: Tensor  # (target, minute)
    on: Tensor  # (target, minute)
    carries: Tensor  # (target, 1) change of the target's power per change of the reading
    starts: IntArray  # (window,) first minute of every window without a gap
    uses: tuple[Uses, ...]  # of each target
    window: int
    output: int
    state_weight: Tensor  # (target, 1)

    @classmethod
    def of(
        cls, series: Sequence[Series], targets: Sequence[str], scaling: Scaling, window: int, output: int, clock: bool
    ) -> Examples:
        """Scale and join the series; no window spans two of them."""
        starts = _starts(series, window)
        reading_w = np.concatenate([part.reading_w for part in series])
        targets_w = np.concatenate([part.targets_w for part in series], axis=1)
        on = np.stack([_on(*pair) for pair in zip(targets_w, targets, strict=True)])
        seen = scaling.reading(reading_w)[None]
        if clock:
            seen = np.concatenate([seen, np.concatenate([part.clock for part in series], axis=-1)])
        whole = np.array([target == AGGREGATE for target in targets])[:, None]
        shift_w, factor_w = scaling.power_shift_w[:, None], scaling.power_factor_w[:, None]
        first = starts + (window - output) // 2
        return cls(
            tensor(seen),
            tensor(np.where(whole, 0.0, targets_w / scaling.reading_factor_w)),
            tensor((targets_w - shift_w) / factor_w),
            tensor(on.astype(np.float64)),
            tensor(whole * scaling.reading_factor_w / factor_w),
            starts,
            tuple(_uses(starts, first, output, *pair) for pair in zip(targets_w, on, strict=True)),
            window,
            output,
            tensor(scaling.state_weight[:, None]),
        )

    def batch(self, starts: IntArray) -> Batch:
        return self.mixed(starts, np.tile(starts, (len(self.power), 1)))

    def mixed(self, starts: IntArray, donors: IntArray) -> Batch:
        """Gather windows in which each target is replaced by its power in the (target, batch) donor windows.

        These are Kelly's synthetic aggregates: a use of an appliance appears with many backgrounds.
        """
        within = torch.arange(self.window)
        here, there = torch.from_numpy(starts)[:, None] + within, torch.from_numpy(donors)[..., None] + within
        estimated = there[..., self._estimated]
        targets = range(len(self.power))
        power, on = (
            torch.stack([part[target, estimated[target]] for target in targets], dim=1)
            for part in (self.power, self.on)
        )
        batch = Batch(self.seen[:, here].movedim(0, 1), power, on, self.state_weight)
        given = torch.stack([self.drawn[target, there[target]] for target in targets]).sum(dim=0)
        return self._raised(batch, given - self.drawn[:, here].sum(dim=0))

    def stacked(self, batch: Batch, starts: IntArray, share: Tensor) -> Batch:
        """Add the other loads of these windows, above their lowest minute, to a share of the batch."""
        here = torch.from_numpy(starts)[:, None] + torch.arange(self.window)
        rest = self.seen[0, here] - self.drawn[:, here].sum(dim=0)
        return self._raised(batch, (rest - rest.amin(dim=1, keepdim=True)) * share[:, None])

    def _raised(self, batch: Batch, by: Tensor) -> Batch:
        """Raise the reading, and with it the aggregate, by (batch, window)."""
        seen = torch.cat([batch.seen[:, :1] + by[:, None], batch.seen[:, 1:]], dim=1)
        return batch._replace(seen=seen, power=batch.power + self.carries * by[:, None, self._estimated])

    @property
    def _estimated(self) -> slice:
        margin = (self.window - self.output) // 2
        return slice(margin, margin + self.output)


def _uses(starts: IntArray, first: IntArray, output: int, target_w: FloatArray, on: BoolArray) -> Uses:
    """Find the windows with a use; those with a rare peak, such as a fridge's defrosting, are drawn more."""
    peak_w = sliding_windows(np.where(on, target_w, 0.0), output)[first].max(axis=1)
    used = peak_w > 0.0
    if not used.any():
        return Uses(starts[used], peak_w[used])
    level = np.minimum((peak_w[used] / peak_w.max() * LEVELS).astype(np.int64), LEVELS - 1)
    odds = 1.0 / np.sqrt(np.bincount(level, minlength=LEVELS)[level])
    return Uses(starts[used], odds / odds.sum())


def _starts(series: Sequence[Series], window: int) -> IntArray:
    """Return the first minutes of all windows in which the reading and every target are known."""
    starts, offset = [np.zeros(0, dtype=np.int64)], 0
    for part in series:
        if len(part.reading_w) >= window:
            rows = np.concatenate([part.reading_w[None], part.targets_w])
            starts.append(offset + complete_starts(rows, window))
        offset += len(part.reading_w)
    return np.concatenate(starts)


def tensor(values: FloatArray | BoolArray) -> Tensor:
    """Return values in single precision, 0 where they are unknown."""
    return torch.from_numpy(np.nan_to_num(values).astype(np.float32))
