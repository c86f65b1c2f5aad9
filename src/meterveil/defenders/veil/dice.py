"""Decoys of the veil: a random timetable that depends on neither load nor battery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.core.certificate import DAY_MINUTES, SLOT_MINUTES
from meterveil.core.decoys import Library
from meterveil.errors import InputError

SLOTS = DAY_MINUTES // SLOT_MINUTES
USE_W = 1000.0
"""Rise of the load that counts as a use."""
LOW_SPIKES_W = (1000.0, 2000.0)
"""Heights of spikes that decoys cover: there a decoy takes little energy."""
LOW_SPIKE_MINUTES = 3
"""Longest spike of such a height."""
_EVERY_HOUR = 0.05
"""Share of the mean weight that every half hour has, so that a use at an unusual time may be a decoy too."""
_ROUNDING = 1e-9
"""Excess over a probability of 1 that rounding may cause."""
ANY_HOUR = (1.0,) * SLOTS
"""Weights of decoys that start at any hour alike."""


class Running(NamedTuple):
    """Decoys that run; one entry per household."""

    signature: IntArray  # the library's size for none, -1 before the first minute
    elapsed: IntArray  # minutes of it that have passed
    spike_left: IntArray  # minutes of a spike that are left, this one included; 0 for none
    spike_w: FloatArray  # its height; infinite for the highest that the battery allows


@dataclass(frozen=True)
class Dice:
    """How many decoys there are, when, and of which kind."""

    rate: float = 0.0
    """Mean probability to start a signature of the library in a minute without a decoy."""
    hours: tuple[float, ...] = ()
    """Weight of each half hour of the day; empty: those of the household's earlier days, and any hour without them."""
    spike_rate: float = 0.0
    """The same for a spike like those of the load."""
    spikes: tuple[tuple[float, int], ...] = ((np.inf, 5), (np.inf, 10), (np.inf, 15))
    """Height in watts and length in minutes of such spikes, all as likely; the battery's power bounds the height."""

    def __post_init__(self) -> None:
        weights = np.asarray(self.hours or ANY_HOUR, dtype=np.float64)
        if weights.shape != (SLOTS,) or not np.all(weights >= 0.0) or not 0.0 < weights.sum() < np.inf:
            raise InputError(
                f"hours of decoys are {SLOTS} weights, one for each half hour, 0 or more; got {self.hours}"
            )
        most = (self.rate + self.spike_rate) * weights.max() / weights.mean()
        if self.rate < 0.0 or self.spike_rate < 0.0 or not most <= 1.0 + _ROUNDING:
            raise InputError(
                f"decoy rates of {self.rate:g} and {self.spike_rate:g} a minute, at these hours, are not from 0 to 1; "
                "give fewer decoys"
            )
        if not self.spikes or not all(height_w > 0.0 and minutes >= 1 for height_w, minutes in self.spikes):
            raise InputError(f"spikes {self.spikes} are not pairs of watts above 0 and minutes, 1 or more; give one")

    @property
    def off(self) -> bool:
        """Whether there are no decoys at all."""
        return self.rate == 0.0 and self.spike_rate == 0.0

    def fitted(self, days_w: FloatArray) -> Self:
        """Learn the hours from earlier days, (day, 1440), unless they are given."""
        return self if self.off or self.hours else replace(self, hours=hours_of_use(days_w, USE_W))

    def covering(self, days_w: FloatArray, level_w: float, power_w: float, cover: float, most_kwh: float) -> Self:
        """Draw `cover` decoys for each spike that earlier days would have had, (day, 1440), or as many as fit.

        Decoys, and the spikes that the load causes at a low height, may take `most_kwh` a day. Without room for one
        decoy for each spike there are none.
        """
        past = past_spikes(days_w, level_w + power_w)
        a_day = (len(past) + 0.5) / len(days_w)  # the load may exceed for the first time
        first = [(level_w + power_w + 1.0, 1)]
        spikes = tuple(_low_spike(load_w - power_w, minutes) for load_w, minutes in past or first)
        for_load, for_decoys = (
            2.0 * a_day * KWH_PER_W_MINUTE * float(np.mean(w_minutes))
            for w_minutes in zip(*((power_w * n, (height_w - level_w) * n) for height_w, n in spikes), strict=True)
        )
        if for_decoys <= 0.0:  # the level is above every low height
            return self
        weights = np.asarray(self.hours or hours_of_use(days_w, USE_W))
        most_a_day = DAY_MINUTES * float(weights.mean() / weights.max() - self.rate)  # one in every minute at its peak
        cover = min(cover, (most_kwh - for_load) / for_decoys, most_a_day / a_day)
        return replace(self, spike_rate=cover * a_day / DAY_MINUTES, spikes=spikes) if cover >= 1.0 else self

    def mean_w(self, library: Library, highest_w: FloatArray) -> FloatArray:
        """Return the mean power that decoys add, with spikes up to this height, of one or several households."""
        spike_w = np.mean([np.minimum(height_w, highest_w) * minutes for height_w, minutes in self.spikes], axis=0)
        return np.asarray(library.mean_w(self.rate) + self.spike_rate * spike_w)

    def initial(self, batch: int) -> Running:
        """Begin without a decoy."""
        zero = np.zeros(batch, dtype=np.int64)
        return Running(zero - 1, zero, zero, np.zeros(batch))

    def thrown(
        self, running: Running, library: Library, minute_of_day: IntArray, quiet: BoolArray, chance: FloatArray
    ) -> Running:
        """Carry the timetable on by a minute; no decoy starts where `quiet`: a choice uses that random number."""
        if self.off:
            return running
        none = np.full_like(running.signature, library.size)
        before = np.where(running.signature < 0, none, running.signature)
        elapsed = running.elapsed + 1
        runs = (before < library.size) & (elapsed < library.lengths[before])
        left = np.maximum(running.spike_left - 1, 0)
        weights = np.asarray(self.hours or ANY_HOUR)
        weight = weights[minute_of_day // SLOT_MINUTES] / weights.mean()
        free = ~runs & (left == 0) & ~quiet
        starts = free & (chance[:, 0] < self.rate * weight)
        spikes = free & ~starts & (chance[:, 0] < (self.rate + self.spike_rate) * weight)
        kind = (chance[:, 1] * len(self.spikes)).astype(np.int64)
        heights_w, lengths = (np.asarray(part)[kind] for part in zip(*self.spikes, strict=True))
        signature = np.where(runs, before, np.where(starts, (chance[:, 1] * library.size).astype(np.int64), none))
        spike_w = np.where(spikes, heights_w, running.spike_w)
        return Running(signature, np.where(runs, elapsed, 0), np.where(spikes, lengths, left), spike_w)


def hours_of_use(days_w: FloatArray, above_w: float) -> tuple[float, ...]:
    """Learn plausible hours of decoys from earlier days, (day, 1440): where the load often rises by so much."""
    rises = np.diff(days_w, axis=1, prepend=days_w[:, :1]) > above_w
    counts = rises.reshape(len(days_w), SLOTS, SLOT_MINUTES).sum(axis=(0, 2)).astype(np.float64)
    around = (np.roll(counts, 1) + 2.0 * counts + np.roll(counts, -1)) / 4.0
    return tuple((around + max(float(around.mean()), 1.0) * _EVERY_HOUR).tolist())


def _low_spike(least_w: float, minutes: int) -> tuple[float, int]:
    """Return height and length of the spike of a load that the battery brings down to `least_w`."""
    height_w = min((height_w for height_w in LOW_SPIKES_W if height_w >= least_w), default=LOW_SPIKES_W[-1])
    return height_w, min(minutes, LOW_SPIKE_MINUTES)


def past_spikes(days_w: FloatArray, above_w: float) -> list[tuple[float, int]]:
    """List first load and length of each run of minutes with a load above this one, in earlier days, (day, 1440)."""
    exceeds = np.pad(days_w > above_w, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(exceeds, axis=1)
    (days, firsts), ends = np.nonzero(change == 1), np.nonzero(change == -1)[1]
    return [(float(days_w[day, first]), int(end - first)) for day, first, end in zip(days, firsts, ends, strict=True)]
