"""The guard as a device of Home Assistant: one retained discovery message, a state topic, and commands.

Availability is the connection's last will. When Home Assistant starts again, everything is published anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from meterveil import __version__
from meterveil.live.config import BrokerTable
from meterveil.live.drivers.broker import Broker
from meterveil.live.ports import PortError
from meterveil.live.records import LIVE, PAUSED, SHADOW, Status

BIRTH = "homeassistant/status"

_SENSORS: dict[str, dict[str, Any]] = {
    "load": {"name": "Household load", "dev_cla": "power", "unit_of_meas": "W", "stat_cla": "measurement"},
    "meter": {"name": "Meter", "dev_cla": "power", "unit_of_meas": "W", "stat_cla": "measurement"},
    "battery": {"name": "Battery power", "dev_cla": "power", "unit_of_meas": "W", "stat_cla": "measurement"},
    "soc": {"name": "Battery", "dev_cla": "battery", "unit_of_meas": "%", "stat_cla": "measurement"},
    "target": {"name": "Meter target", "dev_cla": "power", "unit_of_meas": "W", "stat_cla": "measurement"},
    "moved": {"name": "Moved today", "unit_of_meas": "kWh", "stat_cla": "total_increasing"},
    "why": {"name": "Last decision"},
    "fault": {"name": "Fault"},
    "certificate": {"name": "Certificate today", "unit_of_meas": "bit"},
}
EXPIRE_S = 60
"""Sensors become unavailable after so long without news."""


def discovery_message(name: str, most_kwh: float) -> dict[str, Any]:
    """Describe the device with all its entities."""
    base = f"meterveil/{name}"

    def entity(key: str, platform: str, **more: Any) -> dict[str, Any]:
        return {"p": platform, "uniq_id": f"meterveil_{name}_{key}", "val_tpl": f"{{{{ value_json.{key} }}}}", **more}

    def steered(key: str, platform: str, **more: Any) -> dict[str, Any]:
        return entity(key, platform, cmd_t=f"{base}/{key}/set", **more)

    entities = {key: entity(key, "sensor", exp_aft=EXPIRE_S, **more) for key, more in _SENSORS.items()}
    entities["protection"] = steered("protection", "switch", name="Protection")
    entities["mode"] = steered("mode", "select", name="Mode", ops=[SHADOW, LIVE])
    limits = {"min": 0, "max": most_kwh, "step": 0.5, "unit_of_meas": "kWh"}
    entities["budget"] = steered("budget", "number", name="Daily budget", **limits)
    return {
        "dev": {"ids": [f"meterveil_{name}"], "name": "meterveil", "mf": "meterveil", "sw": __version__},
        "o": {"name": "meterveil", "sw": __version__},
        "avty_t": f"{base}/availability",
        "stat_t": f"{base}/state",
        "cmps": entities,
    }


def state_message(status: Status, certificate_bits: float | None) -> dict[str, Any]:
    """Return the values of all entities; unknown ones are null."""
    numbers = {
        "load": status.load_w,
        "meter": status.meter_w,
        "battery": status.battery_w,
        "soc": 100.0 * status.soc,
        "target": status.target_w,
        "moved": status.moved_kwh,
        "budget": status.budget_kwh,
    }
    digits = {"moved": 3, "soc": 1}
    known = {key: round(x, digits.get(key, 1)) if math.isfinite(x) else None for key, x in numbers.items()}
    return {
        **known,
        "certificate": None if certificate_bits is None else round(certificate_bits, 1),
        "why": status.why[:255],
        "fault": status.fault or "none",
        "protection": "OFF" if status.mode == PAUSED else "ON",
        "mode": SHADOW if status.mode == PAUSED else status.mode,
    }


class Discovery:
    """Connection to Home Assistant's broker; commands are handed to `ask` as (what, value)."""

    def __init__(self, table: BrokerTable, name: str, most_kwh: float, ask: Callable[[str, str], None]) -> None:
        self._base = f"meterveil/{name}"
        self._config_topic = f"homeassistant/device/meterveil_{name}/config"
        self._message = json.dumps(discovery_message(name, most_kwh))
        self._ask, self._latest = ask, ""
        topics = (BIRTH, *(f"{self._base}/{key}/set" for key in ("protection", "mode", "budget")))
        will = (f"{self._base}/availability", "offline", True)
        self.broker = Broker(table, topics, self._hear, will, self._announce)
        self.broker.start()

    def publish(self, status: Status, certificate_bits: float | None = None) -> None:
        """Publish the present state; a lost broker is not an error, it gets the state when it is back."""
        self._latest = json.dumps(state_message(status, certificate_bits))
        self._try(f"{self._base}/state", self._latest)

    def close(self) -> None:
        """Say goodbye."""
        self._try(f"{self._base}/availability", "offline", retain=True)
        self.broker.close()

    def _announce(self) -> None:
        self._try(self._config_topic, self._message, retain=True)
        self._try(f"{self._base}/availability", "online", retain=True)
        if self._latest:
            self._try(f"{self._base}/state", self._latest)

    def _hear(self, topic: str, payload: bytes, retained: bool) -> None:
        text = payload[:100].decode("utf-8", "replace")
        if topic == BIRTH:
            if text == "online":
                self._announce()
            return
        if not retained:  # a kept command would be repeated at every reconnect
            self._ask(topic.split("/")[-2], text)

    def _try(self, topic: str, payload: str, retain: bool = False) -> None:
        try:
            self.broker.publish(topic, payload, retain)
        except PortError:
            return
