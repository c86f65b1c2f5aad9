"""Cost of battery power: appendix A.1 of the paper and D7.

Prices are currency per kWh, one number for each minute. A tariff gives these numbers: flat, in bands of the
day, or as a series (half-hourly, Agile-like).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.errors import InputError

DEGRADATION_PER_KWH = 0.075
"""Wear of the battery for each kWh moved, in or out (D7)."""


class Tariff(Protocol):
    """Price of every minute."""

    def price(self, minute_of_day: IntArray, utc_minute: IntArray) -> FloatArray:
        """Return the price per kWh at local minutes of the day, which are also given as UTC minutes."""
        ...


@dataclass(frozen=True)
class Bands:
    """Prices by local time of day: `prices[i]` holds from `starts[i]` until the next start.

    The band before the first start is the last one, so a night band may run over midnight. One band is
    a flat tariff.
    """

    starts: tuple[int, ...]
    """Local minutes of the day, increasing."""
    prices: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.starts or len(self.starts) != len(self.prices):
            raise InputError(
                f"a tariff has {len(self.starts)} band starts and {len(self.prices)} prices; "
                "give one price for each band, and at least one band"
            )
        if list(self.starts) != sorted(set(self.starts)) or not 0 <= self.starts[0] <= self.starts[-1] < 1440:
            raise InputError(f"tariff bands start at {self.starts}; allowed are increasing minutes 0..1439")
        if not np.all(np.isfinite(self.prices)):
            raise InputError(f"tariff prices are {self.prices}; give finite numbers per kWh")

    def price(self, minute_of_day: IntArray, utc_minute: IntArray) -> FloatArray:
        del utc_minute
        band = np.searchsorted(self.starts, minute_of_day, side="right") - 1
        return np.asarray(self.prices, dtype=np.float64)[band]


@dataclass(frozen=True)
class PriceSeries:
    """Published prices by time: `prices[i]` holds from `starts[i]` to the next start."""

    starts: IntArray
    """Minutes since the epoch (UTC), increasing."""
    prices: FloatArray
    step_minutes: int = 30
    """Minutes for which the last price holds."""

    def __post_init__(self) -> None:
        if len(self.starts) == 0 or len(self.starts) != len(self.prices):
            raise InputError(
                f"a price series has {len(self.starts)} times and {len(self.prices)} prices; "
                "give one price for each time, and at least one"
            )
        if np.any(np.diff(self.starts) <= 0) or not np.all(np.isfinite(self.prices)):
            raise InputError("a price series needs increasing times and finite prices per kWh")

    def price(self, minute_of_day: IntArray, utc_minute: IntArray) -> FloatArray:
        """Return the price of each minute; a minute outside the series is an error."""
        del minute_of_day
        slot = np.searchsorted(self.starts, utc_minute, side="right") - 1
        if np.any(slot < 0) or np.any(utc_minute >= self.starts[-1] + self.step_minutes):
            raise InputError("the price series does not cover these days; give a longer series or other days")
        return self.prices[slot]


PAPER_TARIFF = Bands(starts=(0, 7 * 60), prices=(0.1317, 0.3075))
"""The two bands with which the paper's cost table is consistent (D7)."""


def flat(price: float) -> Bands:
    """Return a tariff with the same price all day."""
    return Bands(starts=(0,), prices=(price,))


def usual_price(tariff: Tariff, every_minutes: int = 30) -> FloatArray:
    """Return the price by time of day, one for every so many minutes; of a price series the mean, by UTC."""
    slots = np.arange(0, 1440, every_minutes)
    if not isinstance(tariff, PriceSeries):
        return tariff.price(slots, slots)
    minutes = np.arange(tariff.starts[0], tariff.starts[-1] + tariff.step_minutes, every_minutes)
    price, slot = tariff.price(minutes, minutes), minutes % 1440 // every_minutes
    count = np.bincount(slot, minlength=len(slots))
    total = np.bincount(slot, price, minlength=len(slots))
    return np.where(count > 0, total / np.maximum(count, 1), price.mean())


class Cost(NamedTuple):
    """Cost of the battery's power, beyond what the household pays without it."""

    energy: FloatArray  # (batch,) may be negative: bought at a low price, used at a high one
    degradation: FloatArray  # (batch,)
    soc_neutral: FloatArray  # (batch,) energy + degradation + refilling to the SoC of the start

    @property
    def total(self) -> FloatArray:
        """Energy and degradation, as the paper reports it."""
        return self.energy + self.degradation


def energy_cost(battery: Battery, price: FloatArray, power_w: FloatArray) -> FloatArray:
    """Compute the time-of-use cost of each minute (`eq:app_tou_cost`), with the paper's efficiencies."""
    factor = np.where(power_w > 0.0, 1.0 / np.asarray(battery.charge_efficiency), battery.discharge_efficiency)
    return price * power_w * factor * KWH_PER_W_MINUTE


def degradation_cost(power_w: FloatArray, per_kwh: float = DEGRADATION_PER_KWH) -> FloatArray:
    """Compute the wear cost of each minute (`eq:app_degradation_cost`)."""
    return per_kwh * np.abs(power_w) * KWH_PER_W_MINUTE


def refill_cost(battery: Battery, soc_start: FloatArray, soc_end: FloatArray, cheapest: FloatArray) -> FloatArray:
    """Price the energy missing at the end at the cheapest rate (D7); a surplus counts back."""
    missing_kwh = (soc_start - soc_end) * battery.capacity_kwh
    return missing_kwh / battery.charge_efficiency * cheapest


def day_cost(
    battery: Battery,
    price: FloatArray,
    power_w: FloatArray,
    soc_start: FloatArray,
    soc_end: FloatArray,
    degradation_per_kwh: float = DEGRADATION_PER_KWH,
) -> Cost:
    """Return the cost of a trace, (batch, minute), also with the cost of restoring its first SoC."""
    by_minute = energy_cost(battery, price.T, power_w.T)  # (minute, batch), so that a battery may differ by row
    energy = np.sum(np.ascontiguousarray(by_minute.T), axis=-1)
    degradation = np.sum(degradation_cost(power_w, degradation_per_kwh), axis=-1)
    refill = refill_cost(battery, soc_start, soc_end, np.min(price, axis=-1))
    return Cost(energy, degradation, energy + degradation + refill)
