"""Ports between the controller and the world: one method each, with its unit. A device may have several."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class PortError(RuntimeError):
    """Failed reading or command; the message says which device and what to do."""


class Instant(NamedTuple):
    """Moment on both clocks."""

    monotonic_s: float  # never jumps: for intervals
    utc_s: float  # Unix time: for the civil day; may jump


class MeterReading(NamedTuple):
    """Power at the grid connection."""

    power_w: float  # import is positive
    at_s: float  # monotonic time of the measurement
    frequency_hz: float | None = None  # where the device tells
    voltage_v: float | None = None  # where the device tells


class BatteryReading(NamedTuple):
    """State of the battery."""

    soc: float  # 0..1
    power_w: float  # charging is positive
    at_s: float  # monotonic time of the measurement
    setpoint_w: float | None = None  # what the device was told last, where it tells


class Clock(Protocol):
    """Time."""

    def now(self) -> Instant:
        """Return the present moment, in seconds."""
        ...


class Meter(Protocol):
    """Meter at the grid connection."""

    def read_meter(self) -> MeterReading:
        """Return the newest reading, in W; raise `PortError` without one."""
        ...


class BatterySensor(Protocol):
    """Battery that tells its state."""

    def read_battery(self) -> BatteryReading:
        """Return the newest reading, SoC and W; raise `PortError` without one."""
        ...


class BatteryCommand(Protocol):
    """Battery that takes a power."""

    def command_battery(self, power_w: float | None) -> None:
        """Request a power, in W; None hands the battery back to its own automatic mode."""
        ...


class MeterTarget(Protocol):
    """Inverter that holds the meter at a set-point by itself."""

    def command_meter(self, target_w: float | None) -> None:
        """Request a meter reading, in W; None hands the battery back to its own automatic mode."""
        ...


class Ports(NamedTuple):
    """Devices of a home; exactly one of the last two is used."""

    clock: Clock
    meter: Meter
    sensor: BatterySensor
    battery: BatteryCommand | None = None
    target: MeterTarget | None = None
