"""Victron GX: its own loop holds the grid set-point, over MQTT or Modbus TCP.

Only the volatile set-point is written (`hub4 /Overrides/Setpoint`, registers 2716 and 2717; Venus OS 3.50 or newer).
It lapses by itself without a new command. Register 2700 and the setting behind it are stored in flash: they are read,
never written. Switch Dynamic ESS off: it writes the same set-point every five seconds.
"""

from __future__ import annotations

import json
import math
import threading
from typing import Any, ClassVar

from pymodbus.client import ModbusTcpClient
from pymodbus.exceptions import ModbusException

from meterveil.live.config import VictronModbusTable, VictronMqttTable
from meterveil.live.drivers.broker import Broker, number_in
from meterveil.live.ports import BatteryReading, Clock, MeterReading, PortError

SETPOINT = "hub4/0/Overrides/Setpoint"
GRID = tuple(f"system/0/Ac/Grid/L{phase}/Power" for phase in (1, 2, 3))
SOC, POWER = "system/0/Dc/Battery/Soc", "system/0/Dc/Battery/Power"
PATHS = (*GRID, SOC, POWER, SETPOINT)
KEEPALIVE_S = 25.0
"""Without one within 60 s a GX stops publishing."""
REFRESH_S = 2.0
"""A GX publishes changes only; older values are asked for."""

UNIT = 100
GRID_REGISTER, BATTERY_REGISTER = 820, 842  # three phases; power, SoC
SETPOINT_REGISTER, STORED_SETPOINT_REGISTER = 2716, 2700
UNSET = 0x7FFFFFFF


class VictronMqtt:
    """GX on its MQTT broker; the portal's id is found where it is not named."""

    def __init__(self, table: VictronMqttTable, clock: Clock) -> None:
        self._clock, self._portal = clock, table.portal_id
        self._values: dict[str, tuple[float, float]] = {}  # path -> value, time
        self._asked_s = self._kept_alive_s = -math.inf
        self._lock = threading.Lock()
        wanted = table.portal_id or "+"
        topics = (f"N/{wanted}/system/0/Serial", *(f"N/{wanted}/{path}" for path in PATHS))
        self._broker = Broker(table.broker, topics, self._hear)
        self._broker.start()

    def read_meter(self) -> MeterReading:
        """Return the sum of the phases that the GX knows."""
        phases = [self._read(path) for path in GRID if path in self._known()]
        if not phases:
            raise PortError(f"the GX at {self._broker.where} tells no grid power yet; see its grid meter")
        return MeterReading(sum(power_w for power_w, _ in phases), min(at_s for _, at_s in phases))

    def read_battery(self) -> BatteryReading:
        """Return SoC and power, and the set-point that is in force; the GX counts charging as positive."""
        (percent, _), (power_w, at_s) = self._read(SOC), self._read(POWER)
        told_w = self._known().get(SETPOINT, (math.nan, 0.0))[0]
        return BatteryReading(percent / 100.0, power_w, at_s, None if math.isnan(told_w) else told_w)

    def command_meter(self, target_w: float | None) -> None:
        """Write the volatile set-point; null gives the GX its own one back."""
        if not self._portal:
            raise PortError(f"the GX at {self._broker.where} has not told its portal id yet; wait, or set portal_id")
        value = None if target_w is None else round(target_w)
        self._broker.publish(f"W/{self._portal}/{SETPOINT}", json.dumps({"value": value}))

    def close(self) -> None:
        """Leave the broker."""
        self._broker.close()

    def _known(self) -> dict[str, tuple[float, float]]:
        """Return all values; keep the GX publishing, and ask for what it has not told lately."""
        now_s = self._clock.now().monotonic_s
        if self._portal and self._broker.is_connected:
            if now_s - self._kept_alive_s > KEEPALIVE_S:
                self._kept_alive_s = now_s
                self._broker.publish(f"R/{self._portal}/keepalive", "")
            if now_s - self._asked_s > REFRESH_S:
                self._asked_s = now_s
                for path in PATHS:
                    if now_s - self._values.get(path, (0.0, now_s))[1] > REFRESH_S:
                        self._broker.publish(f"R/{self._portal}/{path}", "")
        with self._lock:
            return dict(self._values)

    def _read(self, path: str) -> tuple[float, float]:
        known = self._known()
        if path not in known:
            raise PortError(f"the GX at {self._broker.where} has not told {path} yet; wait, or see its device list")
        return known[path]

    def _hear(self, topic: str, payload: bytes, retained: bool) -> None:
        _, portal, path = topic.split("/", 2)
        self._portal = self._portal or portal
        if portal != self._portal or path not in PATHS or retained:
            return
        value = number_in(payload, "value")
        with self._lock:
            if path in GRID and math.isnan(value):  # a phase that does not exist
                self._values.pop(path, None)
            else:
                self._values[path] = (value, self._clock.now().monotonic_s)


class VictronModbus:
    """GX on Modbus TCP, unit 100."""

    CONNECT_S: ClassVar[float] = 3.0

    def __init__(self, table: VictronModbusTable, clock: Clock) -> None:
        self._clock = clock
        self._where = f"the GX at {table.host}:{table.port}"
        self._client: Any = ModbusTcpClient(table.host, port=table.port, timeout=self.CONNECT_S, retries=1)
        self._lock = threading.Lock()

    def read_meter(self) -> MeterReading:
        """Return the sum of the three phases."""
        phases = self._registers(GRID_REGISTER, 3)
        return MeterReading(float(sum(map(_signed, phases))), self._clock.now().monotonic_s)

    def read_battery(self) -> BatteryReading:
        """Return SoC and power, and the set-point that is in force."""
        power, percent = self._registers(BATTERY_REGISTER, 2)
        told = self._setpoint()
        return BatteryReading(percent / 100.0, float(_signed(power)), self._clock.now().monotonic_s, told)

    def command_meter(self, target_w: float | None) -> None:
        """Write the volatile set-point and read it back; a release writes the stored one, and the override lapses."""
        value = _signed(self._registers(STORED_SETPOINT_REGISTER, 1)[0]) if target_w is None else round(target_w)
        self._ask("write_registers", SETPOINT_REGISTER, [value >> 16 & 0xFFFF, value & 0xFFFF])
        if target_w is not None and self._setpoint() != value:
            raise PortError(f"{self._where} did not keep the set-point; it needs Venus OS 3.50 and ESS mode 2")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _setpoint(self) -> float | None:
        high, low = self._registers(SETPOINT_REGISTER, 2)
        raw = high << 16 | low
        return None if raw == UNSET else float(raw - (raw >> 31 << 32))

    def _registers(self, address: int, count: int) -> list[int]:
        registers: list[int] = self._ask("read_holding_registers", address, count=count).registers
        return registers

    def _ask(self, method: str, address: int, *values: list[int], **options: Any) -> Any:
        with self._lock:
            try:
                if not self._client.connected and not self._client.connect():
                    raise PortError(f"{self._where} does not answer; switch Modbus TCP on in its settings")
                answer = getattr(self._client, method)(address, *values, **options, device_id=UNIT)
            except (ModbusException, OSError) as error:
                self._client.close()
                raise PortError(f"{self._where}: {error}") from error
        if answer.isError():
            raise PortError(f"{self._where} refused register {address}: {answer}")
        return answer


def _signed(word: int) -> int:
    return word - 0x10000 if word & 0x8000 else word
