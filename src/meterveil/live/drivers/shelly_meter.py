"""Emulated Shelly meter for plug-in batteries that bring a meter to zero by themselves.

The battery asks this meter in place of the real one and gets the real power minus the target, so it holds the real
meter at the target. Nothing is commanded: without a fresh reading, or when this process dies, the battery gets no
answer and does what it does when its meter is lost. Without a target it gets the real power, as if we were not there.
"""

from __future__ import annotations

import json
import math
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from meterveil.live.config import ShellyMeterTable
from meterveil.live.ports import BatteryReading, BatterySensor, Clock, Meter, PortError

DEVICE = {"name": "meterveil", "id": "shellypro3em-meterveil", "mac": "020000000001", "model": "SPEM-003CEBEU",
          "gen": 2, "fw_id": "meterveil", "ver": "1.4.4", "app": "Pro3EM", "auth_en": False}  # fmt: skip
FRESH_S = 10.0
"""An older reading is not passed on."""
MOST_BYTES = 2_000


class ShellyMeter:
    """Shelly Pro 3EM that shows the real meter minus a target, over HTTP and UDP."""

    def __init__(self, table: ShellyMeterTable, meter: Meter, sensor: BatterySensor, clock: Clock) -> None:
        self._meter, self._sensor, self._clock = meter, sensor, clock
        self._timeout_s = table.timeout_s
        self._target: tuple[float, float] | None = None  # watts, time
        self._asked_s = -math.inf
        try:
            self._web = ThreadingHTTPServer((table.host, table.port), self._handler())
            self._udp = socketserver.ThreadingUDPServer((table.host, table.udp_port), self._datagrams())
        except OSError as error:
            raise PortError(f"the emulated meter cannot listen at {table.host}: {error}; choose other ports") from error
        self.port, self.udp_port = self._web.server_address[1], self._udp.server_address[1]
        for server in (self._web, self._udp):
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()

    def read_battery(self) -> BatteryReading:
        """Return the battery's own reading; a battery that does not ask the meter is not under control."""
        reading = self._sensor.read_battery()
        if self._target is not None and self._clock.now().monotonic_s - self._asked_s > self._timeout_s:
            raise PortError("no battery asks the emulated meter; give it this computer's address as its Shelly meter")
        return reading

    def command_meter(self, target_w: float | None) -> None:
        """Move the zero of the emulated meter to a target; None shows the real meter."""
        now_s = self._clock.now().monotonic_s
        if self._target is None:
            self._asked_s = now_s
        self._target = None if target_w is None else (target_w, now_s)

    def power_w(self) -> float | None:
        """Return what the battery is shown; None without a fresh reading."""
        now_s = self._clock.now().monotonic_s
        try:
            reading = self._meter.read_meter()
        except PortError:
            return None
        self._asked_s = now_s
        if not math.isfinite(reading.power_w) or not -1.0 <= now_s - reading.at_s <= FRESH_S:
            return None
        target = self._target
        is_held = target is not None and now_s - target[1] <= self._timeout_s
        return reading.power_w - target[0] if target and is_held else reading.power_w

    def close(self) -> None:
        """Stop answering."""
        for server in (self._web, self._udp):
            server.shutdown()
            server.server_close()
        if hasattr(self._sensor, "close"):
            self._sensor.close()

    def answer(self, method: str) -> dict[str, Any] | None:
        """Return the result of a call of the Shelly interface; None where there is none."""
        if method == "Shelly.GetDeviceInfo":
            return DEVICE
        power_w = self.power_w() if method in {"EM.GetStatus", "EM1.GetStatus", "Shelly.GetStatus"} else None
        if power_w is None:
            return None
        watts = round(power_w, 1)
        if method == "EM1.GetStatus":
            return {"id": 0, "act_power": watts}
        status = {"id": 0, "a_act_power": watts, "b_act_power": 0.0, "c_act_power": 0.0, "total_act_power": watts}
        return {"em:0": status} if method == "Shelly.GetStatus" else status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        meter = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                method = "Shelly.GetDeviceInfo" if path == "/shelly" else path.removeprefix("/rpc/")
                result = meter.answer(method)
                body = json.dumps(result if result is not None else {"code": 404, "message": "no reading"}).encode()
                self.send_response(404 if result is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                return

        return Handler

    def _datagrams(self) -> type[socketserver.BaseRequestHandler]:
        meter = self

        class Datagram(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                content, link = self.request
                try:
                    call = json.loads(content[:MOST_BYTES])
                    result = meter.answer(str(call["method"]))
                except (ValueError, TypeError, KeyError, RecursionError):
                    return
                if result is not None:
                    reply = {"id": call.get("id"), "src": DEVICE["id"], "dst": "unknown", "result": result}
                    link.sendto(json.dumps(reply).encode(), self.client_address)

        return Datagram
