"""Checks of every reading and of what the battery does with commands; each fault has a name."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from meterveil.live.ports import BatteryReading, Instant, MeterReading

METER_FAILED, METER_STALE = "meter_failed", "meter_stale"
METER_FROZEN, METER_ABSURD = "meter_frozen", "meter_absurd"
BATTERY_FAILED, BATTERY_STALE, BATTERY_ABSURD = "battery_failed", "battery_stale", "battery_absurd"
GRID_LOST = "grid_lost"
SECOND_WRITER, IGNORES_COMMANDS = "second_writer", "ignores_commands"
COMMAND_FAILED, WRITES_EXHAUSTED, POLICY_FAILED = "command_failed", "writes_exhausted", "policy_failed"
OUT_OF_ORDER, SOC_LOW, SOC_HIGH, NOT_HANDED_BACK = "meter_out_of_order", "soc_low", "soc_high", "not_handed_back"
CLOCK_JUMPED, STORE_FAILED = "clock_jumped", "store_failed"

WORDS = {
    METER_FAILED: "the meter gives no reading",
    METER_STALE: "the meter's newest reading is too old",
    METER_FROZEN: "the meter repeats one value although the battery should have moved it",
    METER_ABSURD: "the meter's reading is impossible",
    BATTERY_FAILED: "the battery gives no reading",
    BATTERY_STALE: "the battery's newest reading is too old",
    BATTERY_ABSURD: "the battery's reading is impossible",
    GRID_LOST: "the grid seems lost: 0 W with odd frequency or voltage, or a dead meter",
    SECOND_WRITER: "something else commands the battery; we step back",
    IGNORES_COMMANDS: "the battery does not follow commands; we step back",
    COMMAND_FAILED: "a command did not reach the battery",
    WRITES_EXHAUSTED: "today's register writes are used up; released until tomorrow",
    POLICY_FAILED: "the defence raised an error",
    OUT_OF_ORDER: "the meter's readings arrive out of order; older ones are left out",
    SOC_LOW: "the battery's charge is below its range; it is only charged",
    SOC_HIGH: "the battery's charge is above its range; it is only discharged",
    NOT_HANDED_BACK: "the last process ended without handing the battery back",
}
"""Fault -> sentence for log and dashboard."""

AHEAD_S = 5.0
"""A reading may be so much younger than the tick that asks for it: a busy computer pauses between the two."""
LATE_S = 2.0
"""A battery reading that is so much older than that of the meter is late."""

STEP_BACK = (SECOND_WRITER, IGNORES_COMMANDS)
"""Faults after which we wait before taking control again."""


@dataclass(frozen=True)
class HealthSettings:
    """Bounds of believable readings."""

    meter_stale_s: float = 10.0
    battery_stale_s: float = 15.0
    frozen_s: float = 60.0
    """Same value for so long, although the target is elsewhere."""
    dead_s: float = 1800.0
    """Same value for so long, whatever the target."""
    most_meter_w: float = 30_000.0
    most_battery_w: float = 10_000.0
    nominal_hz: float = 50.0
    nominal_v: float = 230.0
    near_w: float = 50.0
    """A meter so close to the target is where it should be."""
    follow_s: float = 20.0
    """Time within which the battery must do what it was told."""
    tolerance_w: float = 250.0
    step_back_s: float = 600.0


class _Run(NamedTuple):
    """Meter readings in a row with the same value."""

    power_w: float
    at_s: float  # of the last one
    readings: int
    since_s: float
    battery_w: float  # when the run began
    off_since_s: float | None  # since when the value is away from what it should be
    frozen: bool = False  # found out; stays so until the value changes


class Health:
    """Memory of readings and commands of one home."""

    def __init__(self, settings: HealthSettings) -> None:
        self.settings = settings
        self._run: _Run | None = None
        self._commands: deque[tuple[float, float]] = deque()  # (time, power) that were in force lately
        self._strange_since_s: float | None = None
        self._foreign: tuple[float, int] = (-math.inf, 0)  # last reading with a foreign set-point, how many in a row

    def meter_fault(
        self, reading: MeterReading, now: Instant, wanted_w: float | None = None, battery: BatteryReading | None = None
    ) -> str | None:
        """Name what is wrong with the meter; `wanted_w` is the reading that our command leads to, None without control.

        A battery whose reading is late tells nothing about the meter.
        """
        is_late = battery is None or reading.at_s - battery.at_s >= LATE_S
        battery_w = math.nan if battery is None or is_late else battery.power_w
        settings, power_w = self.settings, reading.power_w
        if not math.isfinite(power_w) or abs(power_w) > settings.most_meter_w or math.isnan(reading.at_s):
            return METER_ABSURD
        if not -AHEAD_S <= now.monotonic_s - reading.at_s <= settings.meter_stale_s:
            return METER_STALE
        if power_w == 0.0 and self._is_odd(reading):
            return GRID_LOST
        if self._is_frozen(reading, now, wanted_w, battery_w):
            return GRID_LOST if power_w == 0.0 else METER_FROZEN
        return None

    def _is_frozen(self, reading: MeterReading, now: Instant, wanted_w: float | None, battery_w: float) -> bool:
        """Tell whether a value repeats to the last digit where it should have moved."""
        settings, run = self.settings, self._run
        if run is None or reading.power_w != run.power_w:
            self._run = _Run(reading.power_w, reading.at_s, 1, now.monotonic_s, battery_w, None)
            return False
        if reading.at_s != run.at_s:
            run = run._replace(at_s=reading.at_s, readings=run.readings + 1)
        is_off = wanted_w is not None and abs(run.power_w - wanted_w) > settings.near_w
        off_since_s = (run.off_since_s or now.monotonic_s) if is_off else None
        frozen = run.frozen or now.monotonic_s - run.since_s > settings.dead_s
        if off_since_s is not None and run.readings >= 3:
            is_moved = abs(battery_w - run.battery_w) > 4 * settings.near_w
            frozen = frozen or is_moved or now.monotonic_s - off_since_s > settings.frozen_s
        self._run = run._replace(off_since_s=off_since_s, frozen=frozen)
        return frozen

    def battery_fault(self, reading: BatteryReading, now: Instant) -> str | None:
        """Name what is wrong with the battery's reading."""
        settings = self.settings
        is_possible = -0.02 <= reading.soc <= 1.02 and abs(reading.power_w) <= settings.most_battery_w
        if not is_possible or math.isnan(reading.at_s):  # NaN is not possible either
            return BATTERY_ABSURD
        if not -AHEAD_S <= now.monotonic_s - reading.at_s <= settings.battery_stale_s:
            return BATTERY_STALE
        return None

    def command_given(self, power_w: float | None, now: Instant) -> None:
        """Remember a command; None is a release."""
        if power_w is None:
            self._commands.clear()
            self._strange_since_s = None
            self._foreign = (-math.inf, 0)
        else:
            self._commands.append((now.monotonic_s, power_w))

    def obedience_fault(self, reading: BatteryReading, now: Instant, of_power: bool = True) -> str | None:
        """Name it where the battery does something else than it was told within the last `follow_s`.

        Commands of a meter target (not `of_power`) are only compared with the set-point that the device tells.
        """
        settings = self.settings
        while len(self._commands) > 1 and self._commands[1][0] < now.monotonic_s - settings.follow_s:
            self._commands.popleft()
        if not self._commands or now.monotonic_s - self._commands[0][0] < settings.follow_s:
            self._strange_since_s = None
            return None
        if self._has_foreign_setpoint(reading):
            return SECOND_WRITER
        if not of_power:
            return None
        powers = [power_w for _, power_w in self._commands]
        low_w = min(*powers, 0.0) - settings.tolerance_w  # less than told is a device that tapers
        high_w = max(*powers, 0.0) + settings.tolerance_w
        if not low_w <= reading.power_w <= high_w:
            return self._lasting(SECOND_WRITER, now)
        asleep = abs(reading.power_w) < 1.0 and min(map(abs, powers)) > settings.tolerance_w
        if asleep and (max(powers) < 0.0 or min(powers) > 0.0):
            return self._lasting(IGNORES_COMMANDS, now)
        self._strange_since_s = None
        return None

    def _lasting(self, fault: str, now: Instant) -> str | None:
        if self._strange_since_s is None:
            self._strange_since_s = now.monotonic_s
        return fault if now.monotonic_s - self._strange_since_s > self.settings.follow_s / 2 else None

    def _has_foreign_setpoint(self, reading: BatteryReading) -> bool:
        """Tell whether two readings in a row show a set-point that none of our commands asked for."""
        if reading.setpoint_w is None or reading.at_s == self._foreign[0]:
            return self._foreign[1] >= 2
        ours = any(abs(reading.setpoint_w - power_w) < self.settings.tolerance_w for _, power_w in self._commands)
        self._foreign = (reading.at_s, 0 if ours else self._foreign[1] + 1)
        return self._foreign[1] >= 2

    def _is_odd(self, reading: MeterReading) -> bool:
        odd_hz = reading.frequency_hz is not None and abs(reading.frequency_hz - self.settings.nominal_hz) > 1.0
        share = None if reading.voltage_v is None else reading.voltage_v / self.settings.nominal_v
        return odd_hz or (share is not None and not 0.8 <= share <= 1.15)
