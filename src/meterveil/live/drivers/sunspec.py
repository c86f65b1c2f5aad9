"""Inverter with SunSpec registers over Modbus TCP: models are found by scanning, scale factors are read.

Discharging is positive on the device. The revert timer of the device is always set, so that a crash of this
process cannot leave the battery locked. Every write is read back.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from pymodbus.client import ModbusTcpClient
from pymodbus.exceptions import ModbusException

from meterveil.live.config import SunSpecTable
from meterveil.live.ports import BatteryReading, Clock, MeterReading, PortError

BASES = (40000, 50000, 0)
"""Addresses at which a SunSpec map may begin."""
MARK = (0x5375, 0x6E53)
END_MODEL = 0xFFFF
CONNECT_S = 3.0


class Point(NamedTuple):
    """Place of a value in a model, counted from its first register behind ID and length."""

    offset: int
    size: int = 1
    scale: int | None = None  # offset of its scale factor
    signed: bool = True


METER_POINTS = {"W": Point(16, 1, 20), "Hz": Point(14, 1, 15), "V": Point(5, 1, 13)}
"""Models 201 to 204; import is positive."""
STORAGE_POINTS = {
    "WChaMax": Point(0, 1, 16, signed=False),
    "StorCtl_Mod": Point(3, signed=False),
    "ChaState": Point(6, 1, 20, signed=False),
    "OutWRte": Point(10, 1, 23),
    "InWRte": Point(11, 1, 23),
    "InOutWRte_RvrtTms": Point(13, signed=False),
    "ChaGriSet": Point(15, signed=False),
}
"""Model 124."""
CONTROL_POINTS = {
    "WSetEna": Point(20, signed=False),
    "WSetMod": Point(21, signed=False),
    "WSet": Point(22, 2, 53),
    "WSetRvrt": Point(24, 2, 53),
    "WSetEnaRvrt": Point(28, signed=False),
    "WSetRvrtTms": Point(29, 2, signed=False),
}
"""Model 704."""
BATTERY_POINTS = {"SoC": Point(9, 1, 54, signed=False), "W": Point(45, 1, 61)}
"""Model 802."""
INVERTER_POINTS = {"W": Point(12, 1, 13)}
"""Models 101 to 103."""
TABLES: dict[int, dict[str, Point]] = {
    **dict.fromkeys((101, 102, 103), INVERTER_POINTS),
    124: STORAGE_POINTS,
    **dict.fromkeys((201, 202, 203, 204), METER_POINTS),
    704: CONTROL_POINTS,
    802: BATTERY_POINTS,
}
FORCE_DISCHARGE_LIMIT = 2
"""StorCtl_Mod: the discharge limit is active; a negative one charges."""
SET_WATTS = 1
"""WSetMod of model 704: watts."""


class SunSpecDevice:
    """Storage inverter; meter and battery at one address."""

    def __init__(self, table: SunSpecTable, clock: Clock) -> None:
        self._table, self._clock = table, clock
        self._client: Any = ModbusTcpClient(table.host, port=table.port, timeout=CONNECT_S, retries=1)
        self._models: dict[int, int] = {}  # model -> address of its first point
        self._told_w: float | None = None
        self._lock = threading.Lock()

    def read_meter(self) -> MeterReading:
        """Read the grid meter, models 201 to 204."""
        with self._lock:
            model = self._model(201, 202, 203, 204)
            values = self._read(model)
        known = [None if math.isnan(values[name]) else values[name] for name in ("Hz", "V")]
        return MeterReading(values["W"], self._clock.now().monotonic_s, *known)

    def read_battery(self) -> BatteryReading:
        """Read SoC and power, and the set-point that the device has now."""
        with self._lock:
            models = self._scan()
            if 802 in models:
                values = self._read(802)
                soc, power_w = values["SoC"] / 100.0, -values["W"]
            else:
                soc = self._read(self._model(124))["ChaState"] / 100.0
                power_w = -self._read(self._model(101, 102, 103))["W"]
            setpoint_w = self._setpoint_w()
        return BatteryReading(soc, power_w, self._clock.now().monotonic_s, setpoint_w)

    def command_battery(self, power_w: float | None) -> None:
        """Write a power with its revert timer and read it back; None disables the control."""
        with self._lock:
            self._told_w = power_w
            if self._control_model() == 704:
                self._command_704(power_w)
            else:
                self._command_124(power_w)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _command_704(self, power_w: float | None) -> None:
        if power_w is None:
            self._write(704, {"WSetEna": 0})
            return
        self._write(704, {"WSetMod": SET_WATTS, "WSetRvrtTms": self._table.timeout_s, "WSetEnaRvrt": 0})
        self._write(704, {"WSet": -power_w, "WSetEna": 1})

    def _command_124(self, power_w: float | None) -> None:
        if power_w is None:
            self._write(124, {"OutWRte": 100.0, "StorCtl_Mod": 0})
            return
        share = -100.0 * power_w / self._read(124)["WChaMax"]
        self._write(124, {"InOutWRte_RvrtTms": self._table.timeout_s, "ChaGriSet": 1})
        self._write(124, {"OutWRte": share, "StorCtl_Mod": FORCE_DISCHARGE_LIMIT})

    def _setpoint_w(self) -> float | None:
        """Return what the device was told, None where it is in its own mode."""
        if self._control_model() == 704:
            values = self._read(704)
            return -values["WSet"] if values["WSetEna"] == 1 else None
        values = self._read(124)
        return -values["OutWRte"] / 100.0 * values["WChaMax"] if values["StorCtl_Mod"] else None

    def _control_model(self) -> int:
        if self._table.model != "auto":
            return self._model(int(self._table.model))
        return self._model(704, 124)

    def _model(self, *wanted: int) -> int:
        models = self._scan()
        for model in wanted:
            if model in models:
                return model
        names = ", ".join(map(str, models))
        raise PortError(f"{self._where} has no SunSpec model {' or '.join(map(str, wanted))}; it has {names}")

    @property
    def _where(self) -> str:
        return f"the device at {self._table.host}:{self._table.port}"

    def _scan(self) -> dict[int, int]:
        """Walk through the chain of models once."""
        if self._models:
            return self._models
        for base in BASES:
            try:
                if tuple(self._registers(base, 2)) != MARK:
                    continue
            except PortError:
                if not self._client.connected:
                    raise
                continue
            address = base + 2
            while True:
                model, length = self._registers(address, 2)
                if model == END_MODEL:
                    return self._models
                self._models[model] = address + 2
                address += 2 + length
        raise PortError(f"{self._where} has no SunSpec map at {', '.join(map(str, BASES))}")

    def _read(self, model: int) -> dict[str, float]:
        """Read all known points of a model in one request."""
        points = TABLES[model]
        last = max(max(point.offset + point.size, (point.scale or 0) + 1) for point in points.values())
        registers = self._registers(self._models[model], last)
        return {name: _value(registers, point) for name, point in points.items()}

    def _write(self, model: int, values: dict[str, float]) -> None:
        """Write points one by one and read them back."""
        points, base = TABLES[model], self._models[model]
        registers = self._registers(base, max((points[name].scale or 0) + 1 for name in points))
        for name, value in values.items():
            point = points[name]
            raw = round(value / _scale(registers, point)) & (0xFFFF if point.size == 1 else 0xFFFFFFFF)
            words = [raw] if point.size == 1 else [raw >> 16, raw & 0xFFFF]
            self._ask("write_registers", base + point.offset, words)
            if self._registers(base + point.offset, point.size) != words:
                raise PortError(f"{self._where} did not keep {name} = {value:g}; it may refuse remote control")

    def _registers(self, address: int, count: int) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            part = min(count - len(words), 120)
            words += self._ask("read_holding_registers", address + len(words), count=part).registers
        return words

    def _ask(self, method: str, address: int, *values: Sequence[int], **options: Any) -> Any:
        try:
            if not self._client.connected and not self._client.connect():
                raise PortError(f"{self._where} does not answer; see address and port")
            answer = getattr(self._client, method)(address, *values, **options, device_id=self._table.unit)
        except (ModbusException, OSError) as error:
            self._client.close()
            raise PortError(f"{self._where}: {error}") from error
        if answer.isError():
            raise PortError(f"{self._where} refused register {address}: {answer}")
        return answer


def _value(registers: Sequence[int], point: Point) -> float:
    """Return a point in its unit; NaN where the device does not have it."""
    raw = 0
    for word in registers[point.offset : point.offset + point.size]:
        raw = raw << 16 | word
    bits = 16 * point.size
    missing = 1 << (bits - 1) if point.signed else (1 << bits) - 1
    if raw == missing:
        return math.nan
    if point.signed and raw >> (bits - 1):
        raw -= 1 << bits
    return raw * _scale(registers, point)


def _scale(registers: Sequence[int], point: Point) -> float:
    if point.scale is None:
        return 1.0
    exponent = registers[point.scale]
    exponent -= 0x10000 if exponent & 0x8000 else 0
    return 10.0**exponent if -10 <= exponent <= 10 else 1.0
