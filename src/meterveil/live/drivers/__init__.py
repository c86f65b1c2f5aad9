"""Drivers: devices of a home behind the ports, built from the settings."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from meterveil.errors import InputError
from meterveil.live.config import (
    Config,
    HomeAssistantTable,
    MqttBatteryTable,
    MqttMeterTable,
    MqttSensorTable,
    P1Table,
    ShellyMeterTable,
    SimulatedTable,
    SunSpecTable,
    VictronModbusTable,
    VictronMqttTable,
)
from meterveil.live.ports import Clock, Ports
from meterveil.live.simulated import Plant, SimulatedHouse, SystemClock

DRIVERS: dict[type, tuple[str, str]] = {
    MqttMeterTable: ("mqtt", "MqttMeter"),
    MqttSensorTable: ("mqtt", "MqttSensor"),
    MqttBatteryTable: ("mqtt", "MqttBattery"),
    SunSpecTable: ("sunspec", "SunSpecDevice"),
    P1Table: ("p1", "P1Meter"),
    HomeAssistantTable: ("home_assistant", "HomeAssistantDevice"),
    VictronMqttTable: ("victron", "VictronMqtt"),
    VictronModbusTable: ("victron", "VictronModbus"),
}
"""Settings -> file and class of their driver; imported when used."""


def build_ports(config: Config, clock: Clock) -> Ports:
    """Build the devices of a home; a device that is both meter and battery is built once."""
    meter = build_device(config.meter, clock)
    if isinstance(config.battery, ShellyMeterTable):
        from meterveil.live.drivers.shelly_meter import ShellyMeter  # noqa: PLC0415

        battery: Any = ShellyMeter(config.battery, meter, build_device(config.battery.sensor, clock), clock)
    else:
        battery = meter if config.battery == config.meter else build_device(config.battery, clock)
    if isinstance(config.battery, SimulatedTable):
        takes_target = config.battery.own_loop
    else:
        takes_target = hasattr(battery, "command_meter")
    return Ports(clock, meter, battery, None if takes_target else battery, battery if takes_target else None)


def build_device(table: Any, clock: Clock) -> Any:
    """Build one device; imports wait until a driver is used."""
    if isinstance(table, SimulatedTable):
        return _simulated(table, clock)
    name, kind = DRIVERS[type(table)]
    return getattr(import_module(f"meterveil.live.drivers.{name}"), kind)(table, clock)


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
