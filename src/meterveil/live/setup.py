"""First settings of a home: find a broker and likely entities of Home Assistant, and write a file to start from."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from meterveil.errors import InputError

BROKERS = ("127.0.0.1:1883", "core-mosquitto:1883", "homeassistant.local:1883", "venus.local:1883")
"""Usual places of a broker."""
HOME_ASSISTANTS = ("http://127.0.0.1:8123", "http://homeassistant.local:8123", "http://homeassistant:8123")
"""Usual places of a Home Assistant."""
ANSWER_S = 5.0
OPTIONS = "options of the mode"
MOST_LISTED = 6


class Found(NamedTuple):
    """What was found of a home."""

    broker: str
    home_assistant: str
    token_file: Path | None
    entities: dict[str, list[str]]  # kind -> entities, likely ones first

    def lines(self) -> list[str]:
        """Say it in words."""
        said = [f"MQTT broker: {self.broker or 'none found'}"]
        said += [f"Home Assistant: {self.home_assistant or 'none found'}"]
        if self.home_assistant and self.token_file is None:
            said.append(
                f"To use its entities: make a long-lived token ({self.home_assistant}/profile/security), save it to a "
                f"file, remove the settings and run init again with --token-file FILE"
            )
        said += [f"{kind}: {', '.join(names[:MOST_LISTED]) or 'none found'}" for kind, names in self.entities.items()]
        return said


def find_broker(asked: str = "") -> str:
    """Return the first broker that answers, as HOST:PORT; "" for none. A named one has to answer."""
    for place in [asked] if asked else BROKERS:
        host, _, port = place.partition(":")
        try:
            socket.create_connection((host, int(port or 1883)), 1.0).close()
        except (OSError, ValueError) as error:
            if asked:
                raise InputError(f"no MQTT broker answers at {asked}: {error}; write HOST or HOST:PORT") from error
            continue
        return f"{host}:{port or 1883}"
    return ""


def find_home_assistant() -> str:
    """Return the address of the first Home Assistant that answers; "" for none."""
    for address in HOME_ASSISTANTS:
        try:
            with urlopen(f"{address}/manifest.json", timeout=1.0) as reply:  # noqa: S310  http only
                if json.load(reply).get("short_name") in {"Assistant", "Home Assistant"}:
                    return address
        except (OSError, ValueError, AttributeError):
            continue
    return ""


def websocket_url(home_assistant: str) -> str:
    """Return the WebSocket of a Home Assistant from the address that a browser uses."""
    parts = urlsplit(home_assistant)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InputError(f"{home_assistant!r} is no address; write it as http://homeassistant.local:8123")
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}/api/websocket"


def find_entities(home_assistant: str, token_file: Path) -> dict[str, list[str]]:
    """Ask Home Assistant for its entities and sort them by use; likely ones come first."""
    url = websocket_url(home_assistant)
    try:
        token = token_file.read_text(encoding="utf-8").strip()
        with connect(url, open_timeout=ANSWER_S, max_size=64_000_000) as link:
            link.recv(ANSWER_S)
            link.send(json.dumps({"type": "auth", "access_token": token}))
            if json.loads(link.recv(ANSWER_S)).get("type") != "auth_ok":
                raise InputError(f"Home Assistant refuses the token in {token_file}; make a new long-lived one")
            link.send(json.dumps({"id": 1, "type": "get_states"}))
            states = json.loads(link.recv(ANSWER_S))["result"]
    except (OSError, WebSocketException, KeyError, TypeError) as error:
        raise InputError(f"Home Assistant at {url} does not answer: {error}") from error
    return sort_entities(states)


def sort_entities(states: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Sort entities by what they could be for a guard."""

    def pick(words: tuple[str, ...], against: tuple[str, ...] = (), **wanted: str) -> list[str]:
        fits = [
            state["entity_id"]
            for state in states
            if state["entity_id"].startswith(wanted["domain"] + ".")
            and state.get("attributes", {}).get("device_class", "") == wanted.get("device_class", "")
        ]
        return sorted(
            fits, key=lambda name: sum(word in name for word in against) - sum(word in name for word in words)
        )

    power = {"domain": "sensor", "device_class": "power"}
    at_meter, at_battery = ("grid", "meter", "p1", "net", "import"), ("battery", "batt", "inverter")
    return {
        "meter power": pick(at_meter, at_battery, **power),
        "battery power": pick(at_battery, at_meter, **power),
        "battery charge": pick(("battery", "soc", "storage"), domain="sensor", device_class="battery"),
        "command": pick(("setpoint", "set_point", "battery", "power"), domain="number"),
        "mode": pick(("battery", "mode", "inverter", "storage"), domain="select"),
        OPTIONS: _options(states, pick(("battery", "mode", "inverter", "storage"), domain="select")),
    }


def _options(states: list[dict[str, Any]], selects: list[str]) -> list[str]:
    """Return what can be selected of the likeliest mode."""
    attributes = [state.get("attributes", {}) for state in states if state["entity_id"] in selects[:1]]
    return [str(option) for found in attributes for option in found.get("options", [])]


def local_zone(link: Path = Path("/etc/localtime")) -> str:
    """Return the computer's time zone; UTC where it does not tell."""
    _, _, name = str(link.resolve()).partition("/zoneinfo/")
    return name if name and not name.startswith("Etc/") else "UTC"


def settings_text(found: Found) -> str:
    """Write the settings file: what was found is filled in, the rest is an example to edit."""
    broker_host, _, broker_port = (found.broker or "127.0.0.1:1883").partition(":")
    head = f"""# Settings of meterveil guard. Check them with: meterveil guard check
name = "home"
timezone = "{local_zone()}"
defence = "defence"
state = "state"
# The guard commands nothing until this is true and it is started with --live.
armed = false

[limits]
# capacity_kwh = 8.0
# charge_w = 4000
# discharge_w = 4000
# budget_kwh = 8.0
# export_limit_w = 0
# most_writes = 270   # where the device stores commands in memory that wears
"""
    if found.token_file is not None:
        text = head + _entities_text(found)
    else:
        text = (
            head
            + f"""
[meter]
driver = "mqtt"
broker = {{host = "{broker_host}", port = {broker_port}}}
power = {{topic = "p1/power", factor = 1}}

[battery]
driver = "mqtt"
broker = {{host = "{broker_host}", port = {broker_port}}}
soc = {{topic = "battery/soc", factor = 0.01}}
power = {{topic = "battery/power", factor = 1}}
command_topic = "battery/set"
command_payload = "{{power}}"
release_topic = "battery/set"
release_payload = "auto"
timeout_s = 60
"""
        )
    if found.broker:
        text += f"""
# Makes the guard a device of Home Assistant.
[home_assistant_discovery]
host = "{broker_host}"
port = {broker_port}
# username = "meterveil"
# password = {{file = "mqtt-password"}}   # a file that holds nothing but the password
"""
    return text


def _entities_text(found: Found) -> str:
    def first(kind: str) -> str:
        return next(iter(found.entities.get(kind, [])), "")

    shared = f'driver = "home_assistant"\nurl = "{websocket_url(found.home_assistant)}"\n' + (
        f'token = {{file = "{found.token_file}"}}\n'
    )
    others = {kind: names[1:MOST_LISTED] for kind, names in found.entities.items() if names[1:] and kind != OPTIONS}
    also = "".join(f"# other {kind}: {', '.join(names)}\n" for kind, names in others.items())
    options = found.entities.get(OPTIONS, [])
    auto = next((option for option in options if "auto" in option.lower() or "self" in option.lower()), "")
    return f"""
{also}
[meter]
{shared}power = "{first("meter power")}"
power_factor = 1     # -1 where import is negative

[battery]
{shared}power = "{first("battery power")}"
power_factor = 1     # -1 where charging is negative
soc = "{first("battery charge")}"
command = "{first("command")}"
command_factor = 1   # -1 where charging is negative
# where the battery has a mode: its options for our commands and for its own control ({", ".join(options) or "none"})
mode = "{first("mode")}"
mode_remote = ""
mode_auto = "{auto}"
timeout_s = 60
"""
