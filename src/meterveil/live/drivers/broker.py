"""Connection to an MQTT broker: reconnects by itself, keeps the newest payload of each topic.

Everything is sent with QoS 0, at once or never: a client repeats unanswered messages of QoS 1 after a reconnect, and
a command that arrives minutes late is dangerous. Commands are repeated anyway, and the device is read back.
"""

from __future__ import annotations

import json
import math
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

from meterveil.live.config import BrokerTable, Topic
from meterveil.live.ports import Clock, PortError

MOST_BYTES = 100_000
"""Longer payloads are dropped unread."""


class Broker:
    """One connection; `on_message(topic, payload, retained)` is called in its thread.

    A retained message is of unknown age: the broker stored it before this connection.
    """

    def __init__(
        self,
        table: BrokerTable,
        topics: tuple[str, ...],
        on_message: Callable[[str, bytes, bool], None],
        will: tuple[str, str, bool] | None = None,
        on_connect: Callable[[], None] = lambda: None,
    ) -> None:
        self.where = f"{table.host}:{table.port}"
        self._topics, self._on_message, self._on_connect = topics, on_message, on_connect
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        if table.username:
            self._client.username_pw_set(table.username, table.password.read() if table.password else None)
        if table.tls:
            self._client.tls_set_context(ssl.create_default_context(cafile=table.ca_file or None))
        if will is not None:
            topic, payload, retain = will
            self._client.will_set(topic, payload, qos=1, retain=retain)
        self._client.on_connect = self._connected
        self._client.on_message = self._heard
        self._client.reconnect_delay_set(1, 5)
        self._client.connect_async(table.host, table.port, keepalive=10)

    def start(self) -> None:
        """Connect, now and after every loss; the callbacks may come at once."""
        self._client.loop_start()

    @property
    def is_connected(self) -> bool:
        """Whether the broker answers."""
        return self._client.is_connected()

    def publish(self, topic: str, payload: str, retain: bool = False) -> None:
        """Send now or fail: nothing is kept for a later connection."""
        sent = self._client.publish(topic, payload, qos=0, retain=retain) if self.is_connected else None
        if sent is None or sent.rc == paho.MQTT_ERR_NO_CONN:
            raise PortError(f"the MQTT broker {self.where} is not connected")
        if sent.rc != paho.MQTT_ERR_SUCCESS:
            raise PortError(f"the MQTT broker {self.where} refused {topic}: {paho.error_string(sent.rc)}")

    def close(self) -> None:
        """Leave; the last will is not sent."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connected(self, client: paho.Client, _userdata: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if code.is_failure:
            return
        if self._topics:
            client.subscribe([(topic, 1) for topic in self._topics])
        self._on_connect()

    def _heard(self, _client: Any, _userdata: Any, message: paho.MQTTMessage) -> None:
        if len(message.payload) <= MOST_BYTES:
            self._on_message(message.topic, bytes(message.payload), bool(message.retain))


class Newest:
    """Newest number of each topic and when it came; anything that is no number is kept as NaN.

    A retained number is of unknown age: its time is minus infinity, which every reader calls stale.
    """

    def __init__(self, topics: Mapping[str, Topic], clock: Clock) -> None:
        self._topics, self._clock = topics, clock
        self._values: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """Topics to subscribe to."""
        return tuple({topic.topic for topic in self._topics.values()})

    def hear(self, name: str, payload: bytes, retained: bool = False) -> None:
        """Take a message."""
        at_s = -math.inf if retained else self._clock.now().monotonic_s
        with self._lock:
            for key, topic in self._topics.items():
                if topic.topic == name:
                    self._values[key] = (number_in(payload, topic.path) * topic.factor, at_s)

    def read(self, key: str) -> tuple[float, float]:
        """Return value and time; raise `PortError` before the first message."""
        with self._lock:
            if key not in self._values:
                raise PortError(f"nothing came on {self._topics[key].topic} yet; see topic and broker")
            return self._values[key]


def number_in(payload: bytes, path: str) -> float:
    """Return the number of a payload, NaN where there is none."""
    try:
        value = json.loads(payload)
        for part in path.split(".") if path else ():
            value = value[int(part)] if isinstance(value, list) else value[part]
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return float(value)
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return math.nan
    return math.nan
