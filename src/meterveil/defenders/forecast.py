"""Usable share of a battery and its SoC after a planned minute, for rule-based defences."""

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import Battery


def charge_share(battery: Battery, soc: FloatArray) -> FloatArray:
    """Return the charged share of the usable range: 0 at `soc_min`, 1 at `soc_max`."""
    return (soc - battery.soc_min) / (np.asarray(battery.soc_max) - battery.soc_min)


def soc_after(battery: Battery, soc: FloatArray, power_w: FloatArray) -> FloatArray:
    """Return the SoC after a minute of this power, without the limits of its range."""
    limited_w = np.clip(power_w, -np.asarray(battery.discharge_w), battery.charge_w)
    efficiency = np.where(limited_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency))
    return soc + limited_w * efficiency * (KWH_PER_W_MINUTE / battery.capacity_kwh)
