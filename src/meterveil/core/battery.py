"""What a home battery can do in a minute: appendix A.2 of the paper, D3 and D4.

`step` is the only place where a request becomes power. Whatever asks (a decoy, a flat level, a live
controller) gets as much of its request as every limit allows, never more and never of the other sign.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray
from meterveil.errors import InputError

_BELOW = 1.0 - 8.0 * float(np.finfo(np.float64).eps)
"""Rounding may lift a sum a few units in the last place over its limit; room shrunk by this cannot."""

_LEAST_W = 1e-6
"""Room under a microwatt is none: what rounding leaves of an exhausted range is not worth a decision."""


@dataclass(frozen=True)
class Battery:
    """Describe a battery and its connection; every field is a number, or one number per household."""

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
            raise InputError(
                f"battery soc_min {self.soc_min} is not below soc_max {self.soc_max}; leave room between"
            )


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


class BatteryState(NamedTuple):
    """What changes from minute to minute."""

    soc: FloatArray  # (batch,) state of charge, 0..1
    moved_kwh: FloatArray  # (batch,) moved so far in this civil day, in and out together


class Delivery(NamedTuple):
    """What came of a request."""

    power_w: FloatArray  # (batch,)
    ended: BoolArray  # (batch,) SoC range or budget cut the request, or the load was unknown: stop (D4)


def start_day(state: BatteryState, new_day: BoolArray) -> BatteryState:
    """Give the households whose civil day begins their full budget back."""
    return state._replace(moved_kwh=np.where(new_day, 0.0, state.moved_kwh))


def budget_left_kwh(battery: Battery, state: BatteryState) -> FloatArray:
    """Energy that may still be moved today."""
    return np.maximum(battery.budget_kwh - state.moved_kwh, 0.0)


def step(
    battery: Battery, state: BatteryState, request_w: FloatArray, load_w: FloatArray
) -> tuple[BatteryState, Delivery]:
    """Deliver as much of a minute's request as every constraint allows.

    Power, export and import limits clip the minute; an exhausted SoC range or budget delivers what is
    left and says `ended` (D4). Where the load is unknown (NaN) the battery idles: a failed meter reading
    must not move it. Equations `app_power_constraint` to `app_throughput_budget`.
    """
    known = ~np.isnan(load_w)
    wanted_w = np.where(known, _clip_to_connection(battery, request_w, load_w), 0.0)
    room_w = np.minimum(_soc_room_w(battery, state, wanted_w > 0.0), _budget_room_w(battery, state))
    room_w = room_w * (room_w > _LEAST_W)
    power_w = np.minimum(np.maximum(wanted_w, -room_w), room_w)
    stored_w = power_w * np.where(
        power_w > 0.0, battery.charge_efficiency, 1.0 / np.asarray(battery.discharge_efficiency)
    )
    soc = state.soc + stored_w * (KWH_PER_W_MINUTE / battery.capacity_kwh)
    moved_kwh = state.moved_kwh + np.abs(power_w) * KWH_PER_W_MINUTE
    return BatteryState(soc, moved_kwh), Delivery(power_w, ~known | (power_w != wanted_w))


def _soc_room_w(battery: Battery, state: BatteryState, charging: BoolArray) -> FloatArray:
    """Power that would exhaust the SoC range within this minute, in the direction that is asked for.

    Never negative: a SoC outside the range leaves room only in the direction that leads back in.
    """
    room = np.where(charging, battery.soc_max - state.soc, state.soc - battery.soc_min)
    loss = np.where(charging, 1.0 / np.asarray(battery.charge_efficiency), battery.discharge_efficiency)
    return np.maximum(room, 0.0) * loss * (battery.capacity_kwh * (_BELOW / KWH_PER_W_MINUTE))


def _budget_room_w(battery: Battery, state: BatteryState) -> FloatArray:
    """Power that would exhaust the day's budget within this minute."""
    return budget_left_kwh(battery, state) * (_BELOW / KWH_PER_W_MINUTE)


def _clip_to_connection(battery: Battery, request_w: FloatArray, load_w: FloatArray) -> FloatArray:
    """Clip a request to the limits of inverter and connection, towards zero only.

    A load that is past a limit by itself stays the household's business: the battery then adds nothing,
    and is not turned round to mend it.
    """
    lowest_w = np.minimum(np.maximum(-load_w - battery.export_limit_w, -np.asarray(battery.discharge_w)), 0.0)
    highest_w = np.maximum(np.minimum(battery.import_limit_w - load_w, battery.charge_w), 0.0)
    power_w = np.minimum(np.maximum(request_w, lowest_w), highest_w)
    meter_w = load_w + power_w
    overshoots = (meter_w < np.minimum(-np.asarray(battery.export_limit_w), load_w)) | (
        meter_w > np.maximum(battery.import_limit_w, load_w)
    )
    clipped_w: FloatArray = np.where(overshoots, np.nextafter(power_w, 0.0), power_w)
    return clipped_w
