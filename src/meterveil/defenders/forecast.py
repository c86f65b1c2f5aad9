"""What classical rules ask of a battery before they act: where it stands, and where a power would take it.

A forecast moves nothing; whatever is asked for in the end goes through `battery.step` like everything else.
"""

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import Battery


def charge_share(battery: Battery, soc: FloatArray) -> FloatArray:
    """Say how full the usable range is, 0 at `soc_min` and 1 at `soc_max`: papers let SoC run from 0 to 1."""
    return (soc - battery.soc_min) / (np.asarray(battery.soc_max) - battery.soc_min)


def soc_after(battery: Battery, soc: FloatArray, power_w: FloatArray) -> FloatArray:
    """Say where a minute of this power would take the SoC if its range had no ends."""
    limited_w = np.clip(power_w, -np.asarray(battery.discharge_w), battery.charge_w)
    efficiency = np.where(
        limited_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency)
    )
    return soc + limited_w * efficiency * (KWH_PER_W_MINUTE / battery.capacity_kwh)
