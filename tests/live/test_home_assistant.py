"""The guard and a real Home Assistant: it shows the demo house, steers it, and its entities can be a battery."""

import json
import sys
import threading
from pathlib import Path

import numpy as np
import paho.mqtt.client as paho
import pytest
from counterparts import PASSWORD, USER, until
from paho.mqtt.enums import CallbackAPIVersion

from meterveil.live.config import Config, HomeAssistantTable
from meterveil.live.demo_files import write_bundle
from meterveil.live.drivers.home_assistant import HomeAssistantDevice
from meterveil.live.guard import Guard
from meterveil.live.ports import PortError
from meterveil.live.simulated import SystemClock

sys.path.append(str(Path(__file__).parent / "home_assistant"))

pytestmark = pytest.mark.slow

INVERTER = {
    "dev": {"ids": ["inverter"], "name": "inverter"},
    "o": {"name": "test"},
    "stat_t": "inverter/state",
    "cmps": {
        "grid": {"p": "sensor", "name": "Grid", "dev_cla": "power", "unit_of_meas": "kW", "uniq_id": "inv_grid",
                 "val_tpl": "{{ value_json.grid }}", "frc_upd": True},
        "power": {"p": "sensor", "name": "Power", "dev_cla": "power", "unit_of_meas": "W", "uniq_id": "inv_power",
                  "val_tpl": "{{ value_json.power }}", "frc_upd": True},
        "soc": {"p": "sensor", "name": "Charge", "dev_cla": "battery", "unit_of_meas": "%", "uniq_id": "inv_soc",
                "val_tpl": "{{ value_json.soc }}"},
        "set": {"p": "number", "name": "Setpoint", "cmd_t": "inverter/power/set", "min": -5000, "max": 5000,
                "uniq_id": "inv_set", "val_tpl": "{{ value_json.set }}"},
        "mode": {"p": "select", "name": "Mode", "cmd_t": "inverter/mode/set", "ops": ["auto", "remote"],
                 "uniq_id": "inv_mode", "val_tpl": "{{ value_json.mode }}"},
    },
}  # fmt: skip


class Inverter:
    """Battery that Home Assistant knows through MQTT; discharging is positive on it."""

    def __init__(self, port):
        self.state = {"grid": -0.35, "power": 1200, "soc": 55, "set": 0, "mode": "auto"}
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.username_pw_set(USER, PASSWORD)
        self._client.on_message = self._hear
        self._client.on_connect = lambda client, *_: client.subscribe("inverter/+/set", 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._client.publish("homeassistant/device/inverter/config", json.dumps(INVERTER), retain=True)
        self._stop = threading.Event()
        threading.Thread(target=self._speak, daemon=True).start()

    def _speak(self):
        while not self._stop.wait(0.3):
            self._client.publish("inverter/state", json.dumps(self.state))

    def _hear(self, _client, _userdata, message):
        text = message.payload.decode()
        if message.topic.endswith("mode/set"):
            self.state["mode"] = text
        else:
            self.state["set"] = float(text)

    def told(self):
        return -self.state["set"] if self.state["mode"] == "remote" else None

    def close(self):
        self._stop.set()
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture(scope="module")
def home_assistant(mosquitto, tmp_path_factory):
    from core import HomeAssistant  # noqa: PLC0415  beside the list of what it needs

    core = HomeAssistant(tmp_path_factory.mktemp("home_assistant"), mosquitto.port)
    yield core
    core.stop()


def test_entities_of_home_assistant_keep_the_contract_of_a_battery(home_assistant, mosquitto, tmp_path):
    inverter = Inverter(mosquitto.port)
    until(lambda: home_assistant.state("sensor.inverter_charge") == "55", 60)
    token = tmp_path / "token"
    token.write_text(home_assistant.tokens["access_token"])
    table = HomeAssistantTable(
        driver="home_assistant", url=f"ws://127.0.0.1:{home_assistant.port}/api/websocket",
        token={"file": str(token)}, power="sensor.inverter_power", power_factor=-1, soc="sensor.inverter_charge",
        command="number.inverter_setpoint", command_factor=-1, mode="select.inverter_mode", mode_remote="remote",
        mode_auto="auto",
    )  # fmt: skip
    battery = HomeAssistantDevice(table, SystemClock())
    meter_table = table.model_copy(update={"power": "sensor.inverter_grid", "power_factor": 1.0})
    meter = HomeAssistantDevice(meter_table, SystemClock())
    reading = until(lambda: _tried(battery.read_battery), 30)
    assert (reading.soc, reading.power_w) == (pytest.approx(0.55), -1200.0)
    assert until(lambda: _tried(meter.read_meter), 30).power_w == -350.0
    battery.command_battery(900.0)
    until(lambda: inverter.told() == 900.0)
    battery.command_battery(-1500.0)
    until(lambda: inverter.told() == -1500.0)
    battery.command_battery(None)
    until(lambda: inverter.told() is None)
    assert inverter.state["set"] == 0.0
    with pytest.raises(PortError, match=r"has no entity sensor\.nothing"):
        HomeAssistantDevice._power(_with(battery, table.model_copy(update={"power": "sensor.nothing"})))
    battery.close()
    meter.close()
    inverter.close()


def _with(device, table):
    device._table = table
    return device


def _tried(read):
    try:
        return read()
    except PortError:
        return None


def test_home_assistant_shows_and_steers_the_house_and_it_comes_back_after_a_restart(
    home_assistant, mosquitto, tmp_path
):
    np.save(tmp_path / "load.npy", np.full(86_400, 400.0))
    device = {"driver": "simulated", "load": str(tmp_path / "load.npy")}
    config = Config(
        defence=str(write_bundle(tmp_path / "defence", "veil")), state=str(tmp_path / "state"), armed=True,
        meter=device, battery=device, dashboard=None, home_assistant_discovery=mosquitto.table,
    )  # fmt: skip
    guard = Guard(config, live=True)
    thread = threading.Thread(target=guard.run)
    thread.start()
    try:
        until(lambda: home_assistant.state("sensor.meterveil_battery") == "50.0", 60)
        until(lambda: home_assistant.state("switch.meterveil_protection") == "on")
        until(lambda: guard.ports.meter.remote)
        assert "meterveil" in [entry["name"] for entry in home_assistant.devices()]
        assert "hold the meter" in home_assistant.state("sensor.meterveil_last_decision")
        home_assistant.call("switch/turn_off", entity_id="switch.meterveil_protection")
        until(lambda: not guard.ports.meter.remote, 10)
        until(lambda: home_assistant.state("switch.meterveil_protection") == "off")
        home_assistant.call("number/set_value", entity_id="number.meterveil_daily_budget", value=6.5)
        until(lambda: home_assistant.state("number.meterveil_daily_budget") == "6.5")
        home_assistant.call("select/select_option", entity_id="select.meterveil_mode", option="live")
        until(lambda: guard.ports.meter.remote, 10)
        home_assistant.stop()
        home_assistant.start()
        until(lambda: home_assistant.state("number.meterveil_daily_budget") == "6.5", 60)
    finally:
        guard.stop.set()
        thread.join(15)
    until(lambda: home_assistant.state("sensor.meterveil_battery") == "unavailable", 30)
