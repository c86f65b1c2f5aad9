"""What a home battery can deliver in a minute: appendix A.2 of the paper, D3 and D4.

`step` turns every request (a decoy, a flat level, a live controller) into power: as much of the request as
all limits allow, never more and never of the other sign.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.errors import InputError

INITIAL_SOC = 0.5
"""State of charge at the start of every simulation (D6)."""

_BELOW = 1.0 - 8.0 * float(np.finfo(np.float64).eps)
"""Factor that keeps sums below their limit in spite of rounding."""

_LEAST_W = 1e-6
"""Smallest usable power; less is what rounding leaves of an exhausted range."""


@dataclass(frozen=True)
class Battery:
    """Battery and its grid connection; every field is a number, or one number per household."""

    capacity_kwh: float | FloatArray = 8.0
    charge_w: float | FloatArray = 4000.0
    """Highest charging power, in watts at the meter."""
    discharge_w: float | FloatArray = 4000.0
    """Highest discharging power, in watts at the meter, as a positive number."""
    charge_efficiency: float | FloatArray = 1.0
    discharge_efficiency: float | FloatArray = 1.0
    soc_min: float | FloatArray = 0.1
    soc_max: float | FloatArray = 0.9
    budget_kwh: float | FloatArray = 8.0
    """Energy that may be moved, in and out together, in one local civil day; inf for no limit."""
    export_limit_w: float | FloatArray = 0.0
    """Power that the battery may push into the grid (D3); inf for no limit."""
    import_limit_w: float | FloatArray = float("inf")
    """Meter reading above which the battery must not charge (main fuse); inf for no limit."""

    def __post_init__(self) -> None:
        for field in fields(self):
            low, high, words = _ALLOWED[field.name]
            value = np.asarray(getattr(self, field.name), dtype=np.float64)
            if not np.all((value >= low) & (value <= high)):
                raise InputError(f"battery {field.name} is {value}; allowed is {words}")
        if not np.all(np.asarray(self.soc_min) < np.asarray(self.soc_max)):
            raise InputError(f"battery soc_min {self.soc_min} is not below soc_max {self.soc_max}; leave room between")


_INF = float("inf")
_ALLOWED = {
    "capacity_kwh": (1e-3, 1e6, "0.001 to 1,000,000 kWh"),
    "charge_w": (0.0, 1e9, "0 to 1e9 W"),
    "discharge_w": (0.0, 1e9, "0 to 1e9 W, as a positive number"),
    "charge_efficiency": (1e-3, 1.0, "0.001 to 1"),
    "discharge_efficiency": (1e-3, 1.0, "0.001 to 1"),
    "soc_min": (0.0, 1.0, "0 to 1"),
    "soc_max": (0.0, 1.0, "0 to 1"),
    "budget_kwh": (0.0, _INF, "0 or more kWh a day, inf for no limit"),
    "export_limit_w": (0.0, _INF, "0 or more W, inf for no limit"),
    "import_limit_w": (0.0, _INF, "0 or more W, inf for no limit"),
}


def batteries_of(battery: Battery, rows: IntArray, batch: int) -> Battery:
    """Return the batteries of some households of a batch; the fields were checked before."""
    chosen = object.__new__(Battery)
    for field in fields(Battery):
        values = np.broadcast_to(np.asarray(getattr(battery, field.name)), batch)[rows]
        object.__setattr__(chosen, field.name, values)
    return chosen


class BatteryState(NamedTuple):
    """State of the battery, which changes from minute to minute."""

    soc: FloatArray  # (batch,) state of charge, 0..1
    moved_kwh: FloatArray  # (batch,) moved so far in this civil day, in and out together


class Connection(NamedTuple):
    """Limits of inverter and grid connection beside a load; every array has the shape of the load."""

    lowest_w: FloatArray  # zero or less: discharging
    highest_w: FloatArray  # zero or more: charging
    unknown: BoolArray  # the load is unknown: the battery must idle


class Delivery(NamedTuple):
    """Power that a request results in."""

    power_w: FloatArray  # (batch,)
    ended: BoolArray  # (batch,) SoC range or budget cut the request, or the load was unknown: stop (D4)


def start_day(state: BatteryState, new_day: BoolArray) -> BatteryState:
    """Restore the full budget of the households whose civil day begins."""
    return state._replace(moved_kwh=np.where(new_day, 0.0, state.moved_kwh)) if np.count_nonzero(new_day) else state


def budget_left_kwh(battery: Battery, state: BatteryState) -> FloatArray:
    """Return the energy that may still be moved today."""
    return np.maximum(battery.budget_kwh - state.moved_kwh, 0.0)


def step(
    battery: Battery, state: BatteryState, request_w: FloatArray, load_w: FloatArray
) -> tuple[BatteryState, Delivery]:
    """Deliver as much of a minute's request as every constraint allows.

    Power, export and import limits clip the minute; an exhausted SoC range or budget delivers what is
    left and sets `ended` (D4). Where the load or the request is unknown (NaN) the battery idles, so that
    neither a failed meter reading nor a failed policy moves it. Equations `app_power_constraint` to
    `app_throughput_budget`.
    """
    return deliver(battery, state, request_w, connection(battery, load_w))


def connection(battery: Battery, load_w: FloatArray) -> Connection:
    """Return the limits of inverter and grid connection, for one minute or for many at once.

    Where the load alone exceeds a limit, the battery adds nothing and does not correct it. Rounding may carry
    load plus limit over by one unit in the last place; the limit is then moved back by it.
    """
    unknown = np.isnan(load_w)
    lowest_w = np.minimum(np.maximum(-load_w - battery.export_limit_w, -np.asarray(battery.discharge_w)), 0.0)
    highest_w = np.maximum(np.minimum(battery.import_limit_w - load_w, battery.charge_w), 0.0)
    exports = load_w + lowest_w < np.minimum(-np.asarray(battery.export_limit_w), load_w)
    imports = load_w + highest_w > np.maximum(battery.import_limit_w, load_w)
    lowest_w[exports] = np.nextafter(lowest_w[exports], 0.0)
    highest_w[imports] = np.nextafter(highest_w[imports], 0.0)
    lowest_w[unknown], highest_w[unknown] = 0.0, 0.0
    return Connection(lowest_w, highest_w, unknown)


def deliver(
    battery: Battery,
    state: BatteryState,
    request_w: FloatArray,
    allowed: Connection,
    room: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[BatteryState, Delivery]:
    """Do the same as `step` with known limits of the connection, and with `room_w` where it is known already."""
    unclear = allowed.unknown | np.isnan(request_w)
    wanted_w = np.minimum(np.maximum(request_w, allowed.lowest_w), allowed.highest_w)
    wanted_w[unclear] = 0.0
    discharge_w, charge_w = room_w(battery, state) if room is None else room
    power_w = np.minimum(np.maximum(wanted_w, -discharge_w), charge_w)
    stored_w = power_w * np.where(
        power_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency)
    )
    soc = state.soc + stored_w * (KWH_PER_W_MINUTE / battery.capacity_kwh)
    moved_kwh = state.moved_kwh + np.abs(power_w) * KWH_PER_W_MINUTE
    return BatteryState(soc, moved_kwh), Delivery(power_w, unclear | (power_w != wanted_w))


def room_w(battery: Battery, state: BatteryState) -> tuple[FloatArray, FloatArray]:
    """Return the discharging and charging power that exhausts SoC range or budget within this minute.

    It is never negative: a SoC outside the range leaves room only in the direction back into it.
    """
    whole_w = battery.capacity_kwh * (_BELOW / KWH_PER_W_MINUTE)
    budget_w = (battery.budget_kwh - state.moved_kwh) * (_BELOW / KWH_PER_W_MINUTE)
    discharge_w = (state.soc - battery.soc_min) * (whole_w * battery.discharge_efficiency)
    charge_w = (battery.soc_max - state.soc) * (whole_w / battery.charge_efficiency)
    discharge_w, charge_w = np.minimum(discharge_w, budget_w), np.minimum(charge_w, budget_w)
    return discharge_w * (discharge_w > _LEAST_W), charge_w * (charge_w > _LEAST_W)


def charge_share(battery: Battery, soc: FloatArray) -> FloatArray:
    """Return the charged share of the usable range: 0 at `soc_min`, 1 at `soc_max`."""
    return (soc - battery.soc_min) / (np.asarray(battery.soc_max) - battery.soc_min)


def soc_after(battery: Battery, soc: FloatArray, power_w: FloatArray) -> FloatArray:
    """Return the SoC after a minute of this power, without the limits of its range."""
    limited_w = np.clip(power_w, -np.asarray(battery.discharge_w), battery.charge_w)
    efficiency = np.where(limited_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency))
    return soc + limited_w * efficiency * (KWH_PER_W_MINUTE / battery.capacity_kwh)
