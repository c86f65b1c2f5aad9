"""Entities of a Home Assistant over its WebSocket: any sensor is read, number and select entities take commands."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import queue
import threading
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.request import Request, urlopen

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from meterveil.live.config import HomeAssistantTable
from meterveil.live.ports import BatteryReading, Clock, MeterReading, PortError

ANSWER_S = 5.0
RETRY_S = 2.0
QUIET_S = 5.0
"""The WebSocket tells changes only. An entity that is silent for so long is asked when it was reported last."""
WATTS = {"W": 1.0, "kW": 1000.0, "MW": 1e6}
"""Unit of a power sensor -> watts."""


class Link:
    """One WebSocket: connects again by itself, keeps the newest state of some entities, calls services."""

    def __init__(self, url: str, token: str, entities: tuple[str, ...], clock: Clock) -> None:
        self.where = url
        self._token, self._entities, self._clock = token, entities, clock
        self._states: dict[str, tuple[str, str, float]] = {}  # entity -> state, unit, time
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}
        self._numbers = itertools.count(1)
        self._socket: ClientConnection | None = None
        self._closed = threading.Event()
        self._failure = "not connected yet"
        self._thread = threading.Thread(target=self._run, name="home-assistant", daemon=True)
        self._thread.start()
        self._asker = threading.Thread(target=self._ask_the_silent, name="home-assistant-silent", daemon=True)
        self._asker.start()

    def state(self, entity: str) -> tuple[str, str, float]:
        """Return state, unit and time of an entity."""
        if self._socket is None:
            raise PortError(f"Home Assistant at {self.where}: {self._failure}")
        if entity not in self._states:
            raise PortError(f"Home Assistant has no entity {entity}; see Developer tools, States")
        return self._states[entity]

    def call(self, domain: str, service: str, entity: str, **data: Any) -> None:
        """Call a service and wait for Home Assistant's answer."""
        message = {
            "type": "call_service",
            "domain": domain,
            "service": service,
            "target": {"entity_id": entity},
            "service_data": data,
        }
        self.ask(message)

    def ask(self, message: dict[str, Any]) -> Any:
        """Send a command and return its result."""
        socket, number = self._socket, next(self._numbers)
        if socket is None:
            raise PortError(f"Home Assistant at {self.where}: {self._failure}")
        answer: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers[number] = answer
        try:
            socket.send(json.dumps({"id": number, **message}))
            reply = answer.get(timeout=ANSWER_S)
        except (queue.Empty, WebSocketException, OSError) as error:
            raise PortError(f"Home Assistant at {self.where} did not answer {message['type']}") from error
        finally:
            self._answers.pop(number, None)
        if not reply.get("success"):
            raise PortError(f"Home Assistant refused: {reply.get('error', {}).get('message', 'no reason given')}")
        return reply.get("result")

    def close(self) -> None:
        """Leave."""
        self._closed.set()
        if self._socket is not None:
            self._socket.close()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with connect(
                    self.where, max_size=16_000_000, open_timeout=5, ping_interval=5, ping_timeout=5
                ) as socket:
                    self._log_in(socket)
                    for text in socket:
                        self._hear(json.loads(text))
            except (WebSocketException, OSError, ValueError, PortError, KeyError) as error:
                self._failure = str(error) or type(error).__name__
            self._socket = None
            self._closed.wait(RETRY_S)

    def _ask_the_silent(self) -> None:
        """Renew the time of entities that are reported with the same value, as an idle battery's power is."""
        base = self.where.removesuffix("/api/websocket").replace("ws", "http", 1)
        while not self._closed.wait(QUIET_S):
            for entity, (text, unit, at_s) in list(self._states.items()):
                now_s = self._clock.now().monotonic_s
                if self._socket is None or now_s - at_s < QUIET_S:
                    continue
                asked = Request(f"{base}/api/states/{entity}", headers={"Authorization": f"Bearer {self._token}"})  # noqa: S310
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    with urlopen(asked, timeout=ANSWER_S) as reply:  # noqa: S310  the address of the settings
                        age_s = reported_age_s(json.load(reply)["last_reported"], reply.headers["Date"])
                    if self._states.get(entity) == (text, unit, at_s):
                        self._states[entity] = (text, unit, max(at_s, now_s - age_s))

    def _log_in(self, socket: ClientConnection) -> None:
        json.loads(socket.recv(ANSWER_S))
        socket.send(json.dumps({"type": "auth", "access_token": self._token}))
        if json.loads(socket.recv(ANSWER_S)).get("type") != "auth_ok":
            raise PortError("the token is refused; make a long-lived one in your profile's security page")
        socket.send(
            json.dumps({"id": next(self._numbers), "type": "subscribe_entities", "entity_ids": list(self._entities)})
        )
        self._socket = socket

    def _hear(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if message.get("type") == "result" and number in self._answers:
            self._answers[number].put(message)
        if message.get("type") != "event":
            return
        event = message.get("event") or {}
        at_s = self._clock.now().monotonic_s
        for entity, state in (event.get("a") or {}).items():
            self._states[entity] = (state["s"], (state.get("a") or {}).get("unit_of_measurement", ""), at_s)
        for entity, change in (event.get("c") or {}).items():
            added = change.get("+") or {}
            before = self._states.get(entity, ("unknown", "", at_s))
            unit = (added.get("a") or {}).get("unit_of_measurement", before[1])
            self._states[entity] = (added.get("s", before[0]), unit, at_s)
        for entity in event.get("r") or ():
            self._states.pop(entity, None)


def reported_age_s(last_reported: str, date: str) -> float:
    """Return how long ago an entity was reported, both times by Home Assistant's own clock."""
    return max((parsedate_to_datetime(date) - datetime.fromisoformat(last_reported)).total_seconds(), 0.0)


class HomeAssistantDevice:
    """Meter or battery that Home Assistant knows."""

    def __init__(self, table: HomeAssistantTable, clock: Clock) -> None:
        self._table, self._clock = table, clock
        named = (table.power, table.soc, table.command, table.mode)
        self._link = Link(table.url, table.token.read(), tuple(filter(None, named)), clock)

    def read_meter(self) -> MeterReading:
        """Return the newest state of the power sensor."""
        return MeterReading(*self._power())

    def read_battery(self) -> BatteryReading:
        """Return SoC and power, and what the number entity shows."""
        text, unit, _ = self._link.state(self._table.soc)
        soc = _number(text) / (1.0 if unit == "" else 100.0)
        power_w, at_s = self._power()
        if power_w == 0.0:  # Home Assistant may tell an idle battery once only; commands show whether it lives
            at_s = self._clock.now().monotonic_s
        return BatteryReading(soc, power_w, at_s)

    def command_battery(self, power_w: float | None) -> None:
        """Set mode and power; None selects the automatic mode with a power of 0."""
        table = self._table
        if not table.command:
            raise PortError("no `command` entity is named in the settings")
        if power_w is None:
            self._link.call("number", "set_value", table.command, value=0)
            self._select(table.mode_auto)
            return
        if not self._is_selected(table.mode_remote):
            self._select(table.mode_remote)
        self._link.call("number", "set_value", table.command, value=round(power_w * table.command_factor))

    def close(self) -> None:
        """Leave."""
        self._link.close()

    def _select(self, option: str) -> None:
        if self._table.mode and option:
            self._link.call("select", "select_option", self._table.mode, option=option)

    def _is_selected(self, option: str) -> bool:
        """Tell whether Home Assistant shows this mode; right after a change it may still show the one before."""
        with contextlib.suppress(PortError):
            return self._link.state(self._table.mode)[0] == option
        return False

    def _power(self) -> tuple[float, float]:
        text, unit, at_s = self._link.state(self._table.power)
        return _number(text) * WATTS.get(unit, 1.0) * self._table.power_factor, at_s


def _number(text: str) -> float:
    """Return a state's number; NaN where it is unavailable or unknown."""
    try:
        return float(text)
    except ValueError:
        return math.nan
