"""Drivers: devices of a home behind the ports, built from the settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from meterveil.errors import InputError
from meterveil.live.config import (
    Config,
    HomeAssistantTable,
    MqttBatteryTable,
    MqttMeterTable,
    P1Table,
    SimulatedTable,
    SunSpecTable,
)
from meterveil.live.controller import Ports
from meterveil.live.ports import Clock
from meterveil.live.simulated import Plant, SimulatedHouse, SystemClock


def build_ports(config: Config, clock: Clock) -> Ports:
    """Build the devices of a home; a device that is both meter and battery is built once."""
    meter = build_device(config.meter, clock)
    battery = meter if config.battery == config.meter else build_device(config.battery, clock)
    own_loop = isinstance(config.battery, SimulatedTable) and config.battery.own_loop
    return Ports(clock, meter, battery, battery, battery if own_loop else None)


def build_device(table: Any, clock: Clock) -> Any:
    """Build one device; imports wait until a driver is used."""
    # ruff: noqa: PLC0415
    if isinstance(table, SimulatedTable):
        return _simulated(table, clock)
    if isinstance(table, MqttMeterTable):
        from meterveil.live.drivers.mqtt import MqttMeter

        return MqttMeter(table, clock)
    if isinstance(table, MqttBatteryTable):
        from meterveil.live.drivers.mqtt import MqttBattery

        return MqttBattery(table, clock)
    if isinstance(table, SunSpecTable):
        from meterveil.live.drivers.sunspec import SunSpecDevice

        return SunSpecDevice(table, clock)
    if isinstance(table, P1Table):
        from meterveil.live.drivers.p1 import P1Meter

        return P1Meter(table, clock)
    if isinstance(table, HomeAssistantTable):
        from meterveil.live.drivers.home_assistant import HomeAssistantDevice

        return HomeAssistantDevice(table, clock)
    raise InputError(f"there is no driver for {type(table).__name__}")


def close_ports(ports: Ports) -> None:
    """Close every connection once."""
    devices: dict[int, Any] = {id(port): port for port in ports if hasattr(port, "close")}
    for device in devices.values():
        device.close()


def _simulated(table: SimulatedTable, clock: Clock) -> SimulatedHouse:
    try:
        load_w = np.load(table.load, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{table.load} holds no load by second: {error}") from error
    if not isinstance(clock, SystemClock):
        raise InputError("a simulated house in settings runs on the computer's clock")
    local = clock.now().utc_s % 86_400
    plant = Plant(dead_time_s=table.dead_time_s, own_loop=table.own_loop)
    return SimulatedHouse(np.roll(load_w, -int(local)), clock, plant, soc=table.soc)
