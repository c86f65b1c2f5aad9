"""Meter with a P1 port (DSMR), read over TCP as ser2net, HomeWizard-like bridges or ESPHome serve it."""

from __future__ import annotations

import re
import socket
import threading

from meterveil.live.config import P1Table
from meterveil.live.ports import Clock, MeterReading, PortError

IMPORT, EXPORT, VOLTAGE = "1-0:1.7.0", "1-0:2.7.0", "1-0:32.7.0"
MOST_BYTES = 20_000
"""A telegram has 1 to 2 kB; more without an end is no telegram."""
SILENT_S = 30.0
RETRY_S = 2.0
_LINE = re.compile(rb"^(\d-\d:\d+\.\d+\.\d+)\(([0-9.]+)\*?(\w*)\)", re.MULTILINE)
_END = re.compile(rb"!([0-9A-Fa-f]{4})?\r?\n")


class P1Meter:
    """P1 port; power from and to the grid are two positive numbers in kW."""

    def __init__(self, table: P1Table, clock: Clock) -> None:
        self._address, self._clock = (table.host, table.port), clock
        self._newest: MeterReading | None = None
        self._failure = "no telegram yet"
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="p1", daemon=True)
        self._thread.start()

    def read_meter(self) -> MeterReading:
        """Return the newest telegram's power."""
        if self._newest is None:
            raise PortError(f"the P1 port at {self._address[0]}:{self._address[1]}: {self._failure}")
        return self._newest

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._thread.join(SILENT_S + 5.0 if self._newest is None else 5.0)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with socket.create_connection(self._address, 5.0) as link:
                    link.settimeout(1.0)
                    self._listen(link)
            except OSError as error:
                self._failure = str(error)
            self._closed.wait(RETRY_S)

    def _listen(self, link: socket.socket) -> None:
        buffer, quiet_s = b"", 0.0
        while not self._closed.is_set():
            try:
                part = link.recv(4096)
            except TimeoutError:
                quiet_s += 1.0
                if quiet_s > SILENT_S:
                    raise
                continue
            if not part:
                raise ConnectionError("the other side closed the connection")
            buffer, quiet_s = (buffer + part)[-MOST_BYTES:], 0.0
            while end := _END.search(buffer):
                self._take(buffer[: end.end()])
                buffer = buffer[end.end() :]

    def _take(self, telegram: bytes) -> None:
        reading = power_w(telegram)
        if reading is None:
            self._failure = "a telegram with a wrong checksum or without power"
            return
        watts, voltage_v = reading
        self._newest = MeterReading(watts, self._clock.now().monotonic_s, voltage_v=voltage_v)


def power_w(telegram: bytes) -> tuple[float, float | None] | None:
    """Return power and voltage of a telegram; None where its checksum is wrong or it has no power."""
    start, end = telegram.find(b"/"), telegram.rfind(b"!")
    if start < 0 or end < start:
        return None
    given = telegram[end + 1 : end + 5]
    if given.strip() and int(given, 16) != checksum(telegram[start : end + 1]):
        return None
    values: dict[str, float] = {}
    for name, number, unit in _LINE.findall(telegram):
        try:
            values[name.decode()] = float(number) * (1000.0 if unit == b"kW" else 1.0)
        except ValueError:
            return None
    if IMPORT not in values:
        return None
    return values[IMPORT] - values.get(EXPORT, 0.0), values.get(VOLTAGE)


def checksum(content: bytes) -> int:
    """Return the CRC-16 of a telegram from `/` to `!` (polynomial 0xA001, no start value)."""
    crc = 0
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
    return crc
