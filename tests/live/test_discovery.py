"""The guard as a device of Home Assistant, over a real broker."""

import json

import paho.mqtt.client as paho
import pytest
from counterparts import PASSWORD, USER, until
from paho.mqtt.enums import CallbackAPIVersion

from meterveil.live.config import BrokerTable
from meterveil.live.discovery import Discovery, discovery_message
from meterveil.live.drivers.broker import Broker
from meterveil.live.records import Status


@pytest.fixture
def listener(mosquitto):
    """Somebody else on the broker: what it heard, newest payload by topic."""
    heard = {}
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(USER, PASSWORD)
    client.on_message = lambda _c, _u, message: heard.__setitem__(message.topic, message.payload.decode())
    client.on_connect = lambda who, *_: who.subscribe([("meterveil/#", 1), ("homeassistant/#", 1)])
    client.connect("127.0.0.1", mosquitto.port)
    client.loop_start()
    client.heard = heard
    yield client
    client.disconnect()
    client.loop_stop()


def test_the_device_appears_steers_and_comes_back_after_a_restart_of_home_assistant(mosquitto, listener):
    asked = []
    discovery = Discovery(BrokerTable(**mosquitto.table), "home", 8.0, lambda *change: asked.append(change))
    heard, topic = listener.heard, "homeassistant/device/meterveil_home/config"
    until(lambda: topic in heard)
    assert set(json.loads(heard[topic])["cmps"]) >= {"soc", "protection", "mode", "budget", "certificate"}
    until(lambda: heard.get("meterveil/home/availability") == "online")
    discovery.publish(Status(soc=0.55, meter_w=500.0, why="hold the meter at 500 W"), 12.34)
    until(lambda: "meterveil/home/state" in heard)
    state = json.loads(heard["meterveil/home/state"])
    assert (state["soc"], state["load"], state["certificate"], state["protection"]) == (55.0, None, 12.3, "ON")
    for key, value in (("protection", "OFF"), ("budget", "6.5"), ("mode", "live")):
        listener.publish(f"meterveil/home/{key}/set", value)
        until(lambda change=(key, value): change in asked)
    heard.clear()
    listener.publish("homeassistant/status", "online")
    until(lambda: topic in heard and "meterveil/home/state" in heard)
    discovery.close()
    until(lambda: heard.get("meterveil/home/availability") == "offline")


def test_a_retained_command_is_ignored(mosquitto, listener):
    listener.publish("meterveil/kept/mode/set", "live", retain=True).wait_for_publish(5)
    asked = []
    discovery = Discovery(BrokerTable(**mosquitto.table), "kept", 8.0, lambda *change: asked.append(change))
    until(lambda: listener.heard.get("meterveil/kept/availability") == "online")
    listener.publish("meterveil/kept/budget/set", "3")
    until(lambda: asked)
    assert asked == [("budget", "3")]
    discovery.close()
    listener.publish("meterveil/kept/mode/set", "", retain=True)


def test_the_last_will_marks_the_device_offline(mosquitto, listener):
    discovery = Discovery(BrokerTable(**mosquitto.table), "lost", 8.0, lambda *change: None)
    until(lambda: listener.heard.get("meterveil/lost/availability") == "online")
    discovery.broker._client.loop_stop()
    discovery.broker._client.socket().close()
    until(lambda: listener.heard.get("meterveil/lost/availability") == "offline", 20)


def test_every_entity_has_a_name_and_an_identity_of_its_own():
    entities = discovery_message("home", 8.0)["cmps"].values()
    assert len({entity["uniq_id"] for entity in entities}) == len({entity["name"] for entity in entities}) == 12


def test_a_broker_that_answers_at_once_meets_a_device_that_is_ready(monkeypatch):
    class AtOnce(Broker):
        def start(self):
            self._on_connect()
            self._on_message("homeassistant/status", b"online", False)

    monkeypatch.setattr("meterveil.live.discovery.Broker", AtOnce)
    assert not Discovery(BrokerTable(), "home", 8.0, lambda *_: None).broker.is_connected
