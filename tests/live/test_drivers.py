"""One contract for every driver: units, signs, commands, release, and a dead-man in the device."""

import json
import threading
import time

import numpy as np
import paho.mqtt.client as paho
import pytest
import sunspec2.modbus.client as sunspec
from counterparts import PASSWORD, USER, Mosquitto, until
from paho.mqtt.enums import CallbackAPIVersion

from meterveil.live.config import MqttBatteryTable, MqttMeterTable, SunSpecTable
from meterveil.live.drivers.broker import number_in
from meterveil.live.drivers.mqtt import MqttBattery, MqttMeter
from meterveil.live.drivers.sunspec import SunSpecDevice
from meterveil.live.ports import PortError
from meterveil.live.simulated import Plant, SimulatedHouse, SystemClock

METER_W, SOC, BATTERY_W = -350.0, 0.55, -1200.0
"""What every counterpart shows at first: 350 W are exported, the battery discharges at 1.2 kW."""


class SimulatedPart:
    """The simulated house beside the driver's contract."""

    timeout_s = 1.5

    def __init__(self):
        plant = Plant(dead_time_s=0, noise_w=0, timeout_s=self.timeout_s)
        house = SimulatedHouse(np.full(100, 850.0), SystemClock(), plant, soc=SOC)
        house.power_w = BATTERY_W
        house._newest = house._measure()
        self.meter = self.battery = house

    def told(self):
        reading = self.meter.read_battery()
        return reading.setpoint_w if self.meter.remote else None


class MqttPart:
    """Battery and meter that speak MQTT with a sign and a unit of their own, and a dead-man of their own."""

    timeout_s = 1.5

    def __init__(self, mosquitto):
        self._told, self._heard_s, self._broker = None, 0.0, mosquitto
        device = paho.Client(CallbackAPIVersion.VERSION2)
        device.username_pw_set(USER, PASSWORD)
        device.on_message = self._hear
        device.on_connect = lambda client, *_: client.subscribe("inverter/set", 1)
        device.connect("127.0.0.1", mosquitto.port)
        device.loop_start()
        self.device = device
        shared = {"driver": "mqtt", "broker": mosquitto.table}
        self.meter = MqttMeter(
            MqttMeterTable(
                **shared, power={"topic": "p1/import", "factor": 1000}, export={"topic": "p1/export", "factor": 1000}
            ),
            SystemClock(),
        )
        self.battery = MqttBattery(
            MqttBatteryTable(
                **shared,
                soc={"topic": "inverter/state", "path": "battery.soc", "factor": 0.01},
                power={"topic": "inverter/state", "path": "battery.w", "factor": -1},
                command_topic="inverter/set",
                command_payload='{"mode": "remote", "discharge": {power}}',
                command_factor=-1,
                release_topic="inverter/set",
                release_payload='{"mode": "auto"}',
                timeout_s=self.timeout_s,
            ),
            SystemClock(),
        )
        self._stop = threading.Event()
        threading.Thread(target=self._speak, daemon=True).start()

    def _speak(self):
        while not self._stop.wait(0.05):
            self.device.publish("p1/import", "0.000")
            self.device.publish("p1/export", str(-METER_W / 1000))
            self.device.publish("inverter/state", json.dumps({"battery": {"soc": 100 * SOC, "w": -BATTERY_W}}))

    def _hear(self, _client, _userdata, message):
        assert not message.retain
        document = json.loads(message.payload)
        self._told = -document["discharge"] if document["mode"] == "remote" else None
        self._heard_s = time.monotonic()

    def told(self):
        return self._told if time.monotonic() - self._heard_s < self.timeout_s else None

    def close(self):
        self._stop.set()
        self.meter.close()
        self.battery.close()
        self.device.disconnect()
        self.device.loop_stop()


class SunSpecPart:
    """Inverter process, looked at with the independent client pysunspec2."""

    timeout_s = 2.0

    def __init__(self, port, model):
        self._model = model
        table = SunSpecTable(driver="sunspec", host="127.0.0.1", port=port, timeout_s=self.timeout_s)
        self.meter = self.battery = SunSpecDevice(table, SystemClock())
        self._client = sunspec.SunSpecModbusClientDeviceTCP(slave_id=1, ipaddr="127.0.0.1", ipport=port)
        self._client.scan()

    def told(self):
        model = self._client.models[self._model][0]
        model.read()
        if self._model == 704:
            assert not model.WSetEna.value or model.WSetRvrtTms.value == self.timeout_s
            return -model.WSet.cvalue if model.WSetEna.value else None
        assert not model.StorCtl_Mod.value or model.InOutWRte_RvrtTms.value == self.timeout_s
        return -model.OutWRte.cvalue / 100 * model.WChaMax.cvalue if model.StorCtl_Mod.value else None

    def close(self):
        self.battery.close()
        self._client.close()


@pytest.fixture(params=["simulated", "mqtt", "sunspec_124", "sunspec_704"])
def part(request, mosquitto, sunspec_server):
    if request.param == "simulated":
        counterpart = SimulatedPart()
    elif request.param == "mqtt":
        counterpart = MqttPart(mosquitto)
    elif request.param == "sunspec_124":
        counterpart = SunSpecPart(sunspec_server("1,103,124,203"), 124)
    else:
        counterpart = SunSpecPart(sunspec_server("1,103,124,203,704,802"), 704)
    until(lambda: not isinstance(tried(counterpart.battery.read_battery), PortError))
    until(lambda: not isinstance(tried(counterpart.meter.read_meter), PortError))
    yield counterpart
    if hasattr(counterpart, "close"):
        counterpart.close()


def tried(call, *values):
    try:
        return call(*values)
    except PortError as error:
        return error


def test_a_driver_keeps_the_contract(part):
    meter, battery, now_s = part.meter.read_meter(), part.battery.read_battery(), time.monotonic()
    assert meter.power_w == pytest.approx(METER_W)
    assert battery.soc == pytest.approx(SOC, abs=0.001)
    assert battery.power_w == pytest.approx(BATTERY_W)
    assert abs(now_s - meter.at_s) < 2
    assert abs(now_s - battery.at_s) < 2
    assert battery.setpoint_w is None
    until(lambda: tried(part.battery.command_battery, 900.0) is None)
    until(lambda: part.told() == pytest.approx(900.0))
    part.battery.command_battery(-1500.0)
    until(lambda: part.told() == pytest.approx(-1500.0))
    part.battery.command_battery(None)
    until(lambda: part.told() is None)
    part.battery.command_battery(300.0)
    until(lambda: part.told() == pytest.approx(300.0))
    began_s = time.monotonic()
    until(lambda: part.told() is None, part.timeout_s + 3)
    assert time.monotonic() - began_s > part.timeout_s / 2


@pytest.fixture
def lone_broker(tmp_path):
    broker = Mosquitto(tmp_path)
    yield broker
    broker.stop()


def test_a_lost_broker_refuses_commands_and_comes_back_by_itself(lone_broker):
    part = MqttPart(lone_broker)
    until(lambda: tried(part.battery.command_battery, 500.0) is None)
    lone_broker.stop()
    error = until(lambda: tried(part.battery.command_battery, 500.0))
    assert "is not connected" in str(error)
    lone_broker.start()
    until(lambda: tried(part.battery.command_battery, 700.0) is None, 15)
    part.close()


def test_the_last_will_of_the_connection_releases_the_battery(mosquitto):
    part = MqttPart(mosquitto)
    part.timeout_s = 60.0
    until(lambda: tried(part.battery.command_battery, 500.0) is None)
    until(lambda: part.told() == 500.0)
    part.battery._broker._client.socket().close()  # as a killed process does
    until(lambda: part.told() is None, 20)
    part.close()


def test_an_inverter_that_does_not_answer_is_named():
    device = SunSpecDevice(SunSpecTable(driver="sunspec", host="127.0.0.1", port=9), SystemClock())
    with pytest.raises(PortError, match=r"127.0.0.1:9"):
        device.read_battery()


def test_a_model_that_the_inverter_lacks_is_named(sunspec_server):
    port = sunspec_server("1,103")
    device = SunSpecDevice(SunSpecTable(driver="sunspec", host="127.0.0.1", port=port), SystemClock())
    with pytest.raises(PortError, match="has no SunSpec model 201 or 202"):
        device.read_meter()
    device.close()


HOSTILE = [b"", b"nan", b"NaN", b"1e999", b"true", b"[1]", b'{"a": {"b": null}}', b"\xff\xfe", b"[" * 5000, b"9" * 400]


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("path", ["", "a.b", "0.x"])
def test_a_hostile_payload_is_no_number(payload, path):
    value = number_in(payload, path)
    assert not np.isfinite(value)


def test_numbers_are_found_in_payloads():
    assert number_in(b" 12.5 ", "") == 12.5
    assert number_in(b'"12"', "") == 12.0
    assert number_in(b'{"a": [{"w": 3}]}', "a.0.w") == 3.0
