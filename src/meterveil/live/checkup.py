"""Checks of a set-up: every connection read-only, and with consent a test step of the battery."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from meterveil.live.controller import Home
from meterveil.live.health import WORDS, Health
from meterveil.live.ports import BatteryReading, MeterReading, PortError, Ports

STEP_W = 300.0
WAIT_S = 20.0
SETTLE_S = 20.0
EDGE_W, SEEN_W = 3000.0, 500.0
"""An edge is hidden from a reader where its mean over an interval changes by less than `SEEN_W`."""


class Look(NamedTuple):
    """Result of looking at one connection."""

    what: str
    ok: bool
    text: str


class Step(NamedTuple):
    """Response to a test step."""

    told_w: float
    moved_w: float  # of the battery
    meter_moved_w: float
    dead_time_s: float
    settled_s: float


def look(ports: Ports, home: Home, wait_s: float = WAIT_S) -> list[Look]:
    """Read meter and battery once, without a command; wait for the first reading of devices that push.

    Both have the same seconds: a connection that fails does not add to the wait for the other one.
    """
    watch, end_s = Health(home.health), time.monotonic() + wait_s
    found = []
    for what, read in (("meter", ports.meter.read_meter), ("battery", ports.sensor.read_battery)):
        reading, error = _first(read, end_s)
        if reading is None:
            found.append(Look(what, False, error))
            continue
        now = ports.clock.now()
        if isinstance(reading, MeterReading):
            fault = watch.meter_fault(reading, now)
            text = f"{abs(reading.power_w):.0f} W {'imported' if reading.power_w >= 0 else 'exported'}"
        else:
            fault = watch.battery_fault(reading, now)
            does = "charging" if reading.power_w > 0 else "discharging"
            text = f"{100 * reading.soc:.0f} % charged, {does} at {abs(reading.power_w):.0f} W"
        found.append(Look(what, fault is None, WORDS[fault] if fault else text))
    return found


def step_battery(ports: Ports, power_w: float, pause: Callable[[float], None] = time.sleep) -> Step:
    """Hold the battery at 0 W, step it, watch battery and meter, and hand it back whatever happens."""
    command = _power_command(ports)
    try:
        command(0.0)
        pause(SETTLE_S / 2)
        before, meter_before = ports.sensor.read_battery().power_w, ports.meter.read_meter().power_w
        began_s = ports.clock.now().monotonic_s
        command(power_w)
        dead_s = settled_s = float("inf")
        while (passed_s := ports.clock.now().monotonic_s - began_s) < SETTLE_S:
            pause(0.5)
            moved_w = ports.sensor.read_battery().power_w - before
            if abs(moved_w) > abs(power_w) / 10:
                dead_s = min(dead_s, passed_s)
            if abs(moved_w - power_w) < abs(power_w) / 5:
                settled_s = min(settled_s, passed_s)
        meter_moved_w = ports.meter.read_meter().power_w - meter_before
        return Step(power_w, ports.sensor.read_battery().power_w - before, meter_moved_w, dead_s, settled_s)
    finally:
        command(None)


def _power_command(ports: Ports) -> Callable[[float | None], None]:
    """Return a function that commands the battery's power; an inverter with its own loop gets load plus power."""
    if ports.battery is not None:
        return ports.battery.command_battery
    target = ports.target
    if target is None:
        raise PortError("the battery takes no command; a test step needs one")
    load_w = ports.meter.read_meter().power_w - ports.sensor.read_battery().power_w
    return lambda power_w: target.command_meter(None if power_w is None else load_w + power_w)


def verdict(steps: list[Step]) -> list[Look]:
    """Judge signs, dead time and step response of test steps."""
    found = []
    for step in steps:
        signs = step.moved_w * step.told_w > 0
        meter_signs = step.meter_moved_w * step.told_w > 0
        told = f"{step.told_w:+.0f} W"
        if not signs or abs(step.moved_w - step.told_w) > abs(step.told_w) / 2:
            text = f"told {told}, the battery moved by {step.moved_w:+.0f} W; see sign and factor of the battery"
            found.append(Look(f"step {told}", False, text))
        elif not meter_signs:
            text = f"the meter moved by {step.meter_moved_w:+.0f} W; its sign is wrong, or the house was busy: repeat"
            found.append(Look(f"step {told}", False, text))
        else:
            text = f"follows after {step.dead_time_s:.1f} s, there after {step.settled_s:.1f} s"
            found.append(Look(f"step {told}", True, text))
    if all(part.ok for part in found):
        found.append(Look("readers", True, f"hidden from readers slower than {hidden_from_s(steps):.0f} s"))
    return found


def hidden_from_s(steps: list[Step]) -> float:
    """Return the reading interval in which a kettle's edge of 3 kW changes the mean by less than 500 W."""
    dead_s = max(step.dead_time_s for step in steps)
    per_s = STEP_W / max(*(step.settled_s - step.dead_time_s for step in steps), 0.3)
    late_s = 1.0 + dead_s + EDGE_W / per_s / 2
    return EDGE_W * late_s / SEEN_W


def _first(
    read: Callable[[], MeterReading | BatteryReading], end_s: float
) -> tuple[MeterReading | BatteryReading | None, str]:
    """Return the first reading before a time, or why there is none."""
    while True:
        try:
            return read(), ""
        except PortError as error:
            if time.monotonic() > end_s:
                return None, str(error)
        time.sleep(0.2)
