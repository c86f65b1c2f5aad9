"""The guard process: control loop, store, Home Assistant and dashboard of one home.

The loop runs in the main thread. Everybody else asks through a queue, so that no other thread touches the controller.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import sqlite3
import threading
import time
from collections import deque
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.live import health
from meterveil.live.certified import certificates
from meterveil.live.config import Config, home_of
from meterveil.live.controller import Controller
from meterveil.live.discovery import Discovery
from meterveil.live.drivers import build_ports, close_ports
from meterveil.live.ports import Clock
from meterveil.live.records import LIVE, PAUSED, SHADOW, Event, MinuteRecord, Status
from meterveil.live.simulated import SystemClock
from meterveil.live.store import Store
from meterveil.live.stranger import Stranger

TICK_S = 1.0
PUBLISH_EVERY = 5
"""Ticks between two messages to Home Assistant; a change of state is told at once."""
SNAPSHOT_MINUTES = 10
KEPT_SECONDS = 600
"""Ticks that a page shows when it is opened."""
READ_MINUTES = 30
"""Minutes between two readings by the shipped reader."""

log = logging.getLogger("meterveil.guard")


class Guard:
    """One home and everything around its controller."""

    def __init__(self, config: Config, live: bool = False, clock: Clock | None = None) -> None:
        self.config = config
        self.home = home_of(config, live)
        self.store = Store(store_path(config))
        self._latest_events: deque[Event] = deque((Event(*row) for row in self.store.events(8)), maxlen=8)
        self.ports = build_ports(config, clock or SystemClock())
        self.controller = Controller(
            self.home, self.ports, np.random.default_rng(), self._keep_minute, self._keep_event
        )
        self.controller.restore(self.store.memory())
        self.status = Status()
        self.stop = threading.Event()
        self.certificates: dict[str, float] = {}
        """Reader -> most bits that today's readings tell it about the load, from what the meter really showed (D18)."""
        self.stranger = Stranger()
        self._costs = (0.0, 0.0)
        self._asked: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._told: tuple[Any, ...] = ()
        self._seconds: tuple[tuple[float, ...], ...] = ()  # replaced, never changed: the page reads it
        self._ticks = 0
        self._full_disk = ""
        self.discovery = None
        if config.home_assistant_discovery is not None:
            most_kwh = min(float(self.home.battery.budget_kwh), 100.0)
            self.discovery = Discovery(config.home_assistant_discovery, config.name, most_kwh, self.ask)
        self.server = None
        if config.dashboard is not None:
            from meterveil.live.dashboard.app import Server  # noqa: PLC0415  a guard without a page does without

            page = config.dashboard
            password = page.password.read() if page.password else None
            self.server = Server(self, page.host, page.port, password)

    def ask(self, what: str, value: str) -> None:
        """Ask for a change from any thread; it is checked and done with the next tick."""
        self._asked.put((what, value))

    def run(self, tick_s: float = TICK_S) -> None:
        """Control until somebody stops us; the battery is handed back whatever happens."""
        _notify("READY=1")
        self._look_back()
        next_s = time.monotonic()
        try:
            while not self.stop.is_set():
                self.tick()
                _notify("WATCHDOG=1")
                next_s = max(next_s + tick_s, time.monotonic())
                self.stop.wait(next_s - time.monotonic())
        finally:
            self.close()

    def tick(self) -> None:
        """Do what was asked, tick, and tell."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._do(*self._asked.get_nowait())
        try:
            self.controller.tick()
        except Exception as error:
            log.exception("tick failed")
            self._keep_event(Event(time.time(), "tick_failed", f"{type(error).__name__}: {error}"))
            self.controller.release("the tick failed")
        if self.store.failure != self._full_disk:
            self._full_disk = self.store.failure
            name = health.STORE_FAILED if self._full_disk else "store_written"
            self._keep_event(Event(time.time(), name, self._full_disk or "what waited for the disk is written"))
        self._tell()

    def close(self) -> None:
        """Hand the battery back and leave everything."""
        _notify("STOPPING=1")
        self.controller.close("the guard stops")
        close_ports(self.ports)
        if self.discovery is not None:
            self.discovery.close()
        if self.server is not None:
            self.server.close()
        self.store.close()

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT end the loop, which then hands the battery back."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop.set())

    def state(self) -> dict[str, Any]:
        """Return everything that the dashboard shows now."""
        status = self.status
        return {
            **asdict(status),
            "fault_text": health.WORDS.get(status.fault, ""),
            "may_command": self.home.may_command,
            "cost_today": self._costs[0],
            "cost_month": self._costs[1],
            "certificate_bits": self.certificates.get(self.config.reader),
            "reader": self.config.reader,
            "certificates": list(self.certificates.items()),
            "found": self.stranger.found,
            "connections": self._connections(),
            "events": [list(event) for event in self._latest_events],
        }

    def history(self) -> dict[str, list[Any]]:
        """Return the minutes of the last day as columns, and the seconds of the last minutes."""
        now = int(self.ports.clock.now().utc_s // 60)
        rows = [MinuteRecord(*row) for row in self.store.minutes(now - 1440, now)]
        return {
            "time": [60 * row.utc_minute for row in rows],
            "load_w": [row.load_w for row in rows],
            "meter_w": [row.meter_w for row in rows],
            "soc": [None if row.soc is None else 100.0 * row.soc for row in rows],
            "seconds": [list(column) for column in zip(*self._seconds, strict=True)],
        }

    def _connections(self) -> list[dict[str, Any]]:
        fault = self.status.fault
        links: list[tuple[str, str, bool]] = [
            ("meter", self.config.meter.driver, not fault.startswith(("meter", "grid"))),
            ("battery", self.config.battery.driver, not fault.startswith(("battery", "command"))),
        ]
        if self.discovery is not None:
            links.append(("Home Assistant's broker", self.discovery.broker.where, self.discovery.broker.is_connected))
        links.append(("store", self.store.failure or "written", not self.store.failure))
        return [{"name": name, "text": text if ok else f"{text}: no connection", "ok": ok} for name, text, ok in links]

    def _do(self, what: str, value: str) -> None:
        controller = self.controller
        if what == "protection" and value in {"ON", "OFF"}:
            running = LIVE if self.home.may_command else SHADOW
            controller.set_mode(running if value == "ON" else PAUSED)
        elif what == "mode":
            controller.set_mode(value)
        elif what == "budget":
            with contextlib.suppress(ValueError):
                controller.set_budget(float(value))
        self._told = ()

    def _tell(self) -> None:
        status = self.controller.status
        self.status = replace(status)
        second = (status.utc_s, status.load_w, status.meter_w, 100.0 * status.soc)
        self._seconds = (*self._seconds[1 - KEPT_SECONDS :], second) if status.utc_s else ()
        key = (status.mode, status.in_control, status.fault, status.why, status.budget_kwh)
        self._ticks += 1
        if self.discovery is not None and (key != self._told or self._ticks % PUBLISH_EVERY == 0):
            self.discovery.publish(status, self.certificates.get(self.config.reader))
        self._told = key

    def _keep_minute(self, minute: MinuteRecord) -> None:
        self.store.put_minute(minute, self.controller.memory())
        self._sum_up(minute)
        if minute.utc_minute % READ_MINUTES == 0:
            self._read_as_stranger()
        if minute.utc_minute % SNAPSHOT_MINUTES == 0:
            self._keep_snapshot(60.0 * minute.utc_minute)

    def _look_back(self) -> None:
        """Show what an earlier process stored, so that the page does not start empty."""
        now = int(self.ports.clock.now().utc_s // 60)
        with contextlib.suppress(sqlite3.Error):
            for row in self.store.minutes(now - 2, now)[-1:]:
                self._sum_up(MinuteRecord(*row))
        self._read_as_stranger()

    def _read_as_stranger(self) -> None:
        if self.server is not None:
            with contextlib.suppress(sqlite3.Error):
                day = self.history()
                self.stranger.read(day["load_w"], day["meter_w"])

    def _sum_up(self, minute: MinuteRecord) -> None:
        """Find today's and this month's cost, and today's certificate."""
        with contextlib.suppress(sqlite3.Error):
            costs = {row[0]: row[4] for row in self.store.days(f"{minute.day[:7]}-01")}
            self._costs = (costs.get(minute.day, 0.0), sum(costs.values()))
            since = minute.utc_minute - 1500
            today = [MinuteRecord(*row) for row in self.store.minutes(since, minute.utc_minute) if row[1] == minute.day]
            self.certificates = certificates(self.home.policy, [*today, minute], self.config.timezone)

    def _keep_event(self, event: Event) -> None:
        log.info("%s: %s", event.name, event.text)
        self._latest_events.appendleft(event)
        self.store.put_event(event)
        self._keep_snapshot(event.utc_s)

    def _keep_snapshot(self, utc_s: float) -> None:
        """Keep the full state; settings name the places of secrets only."""
        controller = getattr(self, "controller", None)
        if controller is not None:
            state = {"status": asdict(controller.status), "memory": controller.memory()}
            self.store.put_snapshot(utc_s, {**state, "settings": self.config.model_dump(mode="json")})


def store_path(config: Config) -> Path:
    """Return the file of a home's store."""
    return Path(config.state) / f"{config.name}.sqlite"


def _notify(message: str) -> None:
    """Tell systemd, where it listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(message.encode())
