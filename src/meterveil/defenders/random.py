"""Random baselines: that of the paper's comparison table, and one that moves as many kWh as a policy (D8).

The paper states no rate, only a degradation cost of 0.029 a day: 0.39 kWh moved (D7), two or three decoys.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meterveil.core import battery as bt
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View
from meterveil.defenders.inversion import without_decoys
from meterveil.errors import InputError

VERSION = 1  # raise it when a change alters what these defences do

PAPER_RATE = 1 / 560
"""Rate that moves the paper's 0.39 kWh on training days of UK-DALE house 1 with the synthetic library."""

EQUAL = "random_equal:"
"""Prefix of a name with a throughput: `random_equal:7.5` moves 7.5 kWh a day (D8)."""


@dataclass(frozen=True)
class RandomDecoys:
    """Policy that starts one of the 2K decoys, all equally likely, with a fixed rate."""

    rate: float = 1 / 30
    """Probability to start a decoy in a minute in which none runs: one about every half hour."""

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        starts, which = view.chance[:, 0] < self.rate, view.chance[:, 1]
        action = 1 + (which * (2 * view.library.size)).astype(np.int64)
        return replay_signature(view.library, action * starts), memory

    invert = without_decoys


class _Odds(NamedTuple):
    """Decoys that fit, separately for charging and discharging."""

    fits: BoolArray  # (batch, 2, K)
    energy_kwh: FloatArray  # (batch, 2) expected energy of one of them; zero where none fits
    minutes: FloatArray  # (batch, 2) expected length of one of them
    room_kwh: FloatArray  # (batch, 2) energy that the battery could still take or give


@dataclass(frozen=True)
class RandomEqual:
    """Policy that starts random decoys that fit, often enough to reach the day's throughput by midnight.

    Charging and discharging are weighted by the battery's free and stored energy and by what they would move
    at the present load, so that the SoC stays near the middle although discharge is clipped to the load (D3).
    """

    throughput_kwh: float = 6.1
    """Energy to move in a civil day, charged plus discharged; the paper's policy moves 6.1 (D7)."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.throughput_kwh < np.inf:
            raise InputError(
                f"throughput_kwh of random_equal is {self.throughput_kwh}; give a finite number of 0 or more"
            )

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Draw for every household whether to start a decoy, and which one."""
        left_kwh = np.maximum(self.throughput_kwh - view.state.moved_kwh, 0.0)
        pace_kwh = left_kwh / np.maximum(1440 - view.minute_of_day, 1)  # to be moved in a minute
        odds = _odds(view, left_kwh)
        direction = _shares(odds, pace_kwh)  # (batch, 2)
        spare_kwh = (direction * (odds.energy_kwh - pace_kwh[:, None] * odds.minutes)).sum(axis=1)
        starts = view.chance[:, 0] * (pace_kwh + np.maximum(spare_kwh, 0.0)) < pace_kwh
        each = direction / np.maximum(odds.fits.sum(axis=2), 1)
        cumulative = np.cumsum((odds.fits * each[:, :, None]).reshape(len(starts), -1), axis=1)  # (batch, 2K)
        drawn = view.chance[:, 1] * cumulative[:, -1]
        action = 1 + (cumulative[:, :-1] <= drawn[:, None]).sum(axis=1)
        return replay_signature(view.library, action * (starts & (cumulative[:, -1] > 0.0))), memory

    invert = without_decoys


def _odds(view: View, left_kwh: FloatArray) -> _Odds:
    """Find the decoys that neither the battery nor the day's target would cut off."""
    battery, soc = view.battery, view.state.soc
    empty_kwh = (np.asarray(battery.soc_max) - soc) * battery.capacity_kwh / battery.charge_efficiency
    stored_kwh = (soc - battery.soc_min) * battery.capacity_kwh * battery.discharge_efficiency
    room_kwh = np.maximum(np.stack([empty_kwh, stored_kwh], axis=1), 0.0)
    energy_kwh = _energy_kwh(view)
    fits = (energy_kwh > 0.0) & (energy_kwh <= np.minimum(room_kwh, left_kwh[:, None])[:, :, None])
    number = np.maximum(fits.sum(axis=2), 1)
    minutes = (fits * view.library.lengths[:-1]).sum(axis=2) / number
    return _Odds(fits, (energy_kwh * fits).sum(axis=2) / number, minutes, room_kwh)


def _energy_kwh(view: View) -> FloatArray:
    """Return the energy of each decoy for charging and discharging at the present load, (batch, 2, K).

    It is zero for households that do not wait; equal limits, such as that of charging, are summed up once.
    """
    allowed = bt.connection(view.battery, view.load_w)
    most_w = np.stack([allowed.highest_w, -allowed.lowest_w], axis=1)
    limits_w, which = np.unique(most_w[view.waits], return_inverse=True)
    watts = view.library.watts[: view.library.size]
    energy_kwh = np.zeros((*most_w.shape, view.library.size))
    each_kwh = np.minimum(watts, limits_w[:, None, None]).sum(axis=2) * KWH_PER_W_MINUTE  # (limit, K)
    energy_kwh[view.waits] = each_kwh[which.reshape(-1, 2)]
    return energy_kwh


def _shares(odds: _Odds, pace_kwh: FloatArray) -> FloatArray:
    """Return the probabilities of charging and discharging for the next decoy, (batch, 2).

    Both should move the same energy, more in the direction with more room. Where that is too slow even
    without a pause, because the load leaves little to discharge, charging gets the share that is needed.
    """
    some = odds.energy_kwh > 0.0
    weight = np.where(some, odds.room_kwh / np.where(some, odds.energy_kwh, 1.0), 0.0)
    charging = weight[:, 0] / np.maximum(weight.sum(axis=1), 1e-300)
    gain_kwh = odds.energy_kwh - pace_kwh[:, None] * odds.minutes
    gap_kwh = gain_kwh[:, 0] - gain_kwh[:, 1]
    needed = -gain_kwh[:, 1] / np.where(gap_kwh > 0.0, gap_kwh, np.inf)
    charging = np.where(some.all(axis=1), np.clip(np.maximum(charging, needed), 0.0, 1.0), charging)
    return np.stack([charging, 1.0 - charging], axis=1) * some
