"""Inverter that Home Assistant knows through MQTT discovery."""

import json
import threading

import paho.mqtt.client as paho
from counterparts import PASSWORD, USER
from paho.mqtt.enums import CallbackAPIVersion

INVERTER = {
    "dev": {"ids": ["inverter"], "name": "inverter"},
    "o": {"name": "test"},
    "stat_t": "inverter/state",
    "cmps": {
        "grid": {"p": "sensor", "name": "Grid", "dev_cla": "power", "unit_of_meas": "kW", "uniq_id": "inv_grid",
                 "val_tpl": "{{ value_json.grid }}", "frc_upd": True},
        "power": {"p": "sensor", "name": "Power", "dev_cla": "power", "unit_of_meas": "W", "uniq_id": "inv_power",
                  "val_tpl": "{{ value_json.power }}"},
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
