"""Heuristic decider: hold the usual mean load, charge in the cheap hours, correct the state of charge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.certificate import SLOT_MINUTES
from meterveil.defenders.veil.situation import SLOTS, Situation


@dataclass(frozen=True)
class Heuristic:
    """Decider that wants the usual mean of the coming block, plus what brings the battery to its plan."""

    shift_kwh: float = 1.0
    """Energy that is charged in the hours with a price below the mean and used in the others."""
    refill_hours: float = 12.0
    """Time to correct a deviation of the SoC; a longer block corrects it by its end."""

    def scores(self, situation: Situation) -> FloatArray:
        """Rate each level by its distance from the wanted one."""
        return -np.abs(np.asarray(situation.rules.menu_w) - self.wanted_w(situation)[:, None])

    def wanted_w(self, situation: Situation) -> FloatArray:
        """Return the level before it is rounded to the menu, (batch,)."""
        battery, price = situation.battery, situation.price
        cheap = price < price.mean()
        hours = np.maximum(np.array([cheap.sum(), (~cheap).sum()]) * (SLOT_MINUTES / 60.0), 1.0)
        shift_w = np.where(cheap, 1.0 / hours[0], -1.0 / hours[1]) * (1000.0 * self.shift_kwh * cheap.any())
        plan_w = situation.usual_w + shift_w - np.reshape(situation.decoy_w, (-1, 1))
        first = situation.minute_of_day // SLOT_MINUTES
        slot = np.arange(SLOTS)
        length = slots_to_next(situation)
        coming = (slot - first[:, None]) % SLOTS < length[:, None]  # (batch, half hour)
        coming = coming & situation.rules.protected(slot * SLOT_MINUTES)  # the battery rests in the other hours
        veiled = np.maximum(coming.sum(axis=1), 1)
        mean_w = np.sum(plan_w * coming, axis=1) / veiled
        before = np.concatenate([[0.0], np.cumsum(shift_w)])[first] * (SLOT_MINUTES / 60_000.0)
        middle = (np.asarray(battery.soc_min) + battery.soc_max) / 2.0
        planned = middle + (before - self.shift_kwh / 2.0 * cheap.any()) / battery.capacity_kwh
        lacks_kwh = (planned - situation.soc) * battery.capacity_kwh
        correction_hours = np.maximum(self.refill_hours, veiled * (SLOT_MINUTES / 60.0))
        return np.asarray(mean_w + lacks_kwh * 1000.0 / correction_hours)


def slots_to_next(situation: Situation) -> FloatArray:
    """Return the number of half hours to the next scheduled decision, (batch,)."""
    times = np.array(situation.rules.choice_minutes) // SLOT_MINUTES
    ahead = (times - (situation.minute_of_day // SLOT_MINUTES)[:, None] - 1) % SLOTS + 1
    least: FloatArray = np.min(ahead, axis=1).astype(np.float64)
    return least
