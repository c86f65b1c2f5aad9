"""One contract for every driver: units, signs, commands, release, and a dead-man in the device."""

import json
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import paho.mqtt.client as paho
import pytest
import sunspec2.modbus.client as sunspec
from counterparts import HERE, PASSWORD, USER, Mosquitto, answers, free_port, until
from hypothesis import given, settings
from hypothesis import strategies as st
from inverter_of_home_assistant import Inverter
from paho.mqtt.enums import CallbackAPIVersion
from sunspec2.modbus.modbus import ModbusClientTCP

from meterveil.live.config import (
    HomeAssistantTable,
    MqttBatteryTable,
    MqttMeterTable,
    MqttSensorTable,
    P1Table,
    ShellyMeterTable,
    SunSpecTable,
    VictronModbusTable,
    VictronMqttTable,
)
from meterveil.live.drivers.broker import number_in
from meterveil.live.drivers.home_assistant import HomeAssistantDevice, reported_age_s
from meterveil.live.drivers.mqtt import MqttBattery, MqttMeter, MqttSensor
from meterveil.live.drivers.p1 import P1Meter, checksum
from meterveil.live.drivers.shelly_meter import ShellyMeter
from meterveil.live.drivers.sunspec import SunSpecDevice
from meterveil.live.drivers.victron import VictronModbus, VictronMqtt
from meterveil.live.ports import MeterReading, PortError
from meterveil.live.simulated import Plant, SimulatedHouse, SystemClock

METER_W, SOC, BATTERY_W = -350.0, 0.55, -1200.0
"""What every counterpart shows at first: 350 W are exported, the battery discharges at 1.2 kW."""


def client(mosquitto, hear, *topics):
    """Somebody else on the broker."""
    other = paho.Client(CallbackAPIVersion.VERSION2)
    other.username_pw_set(USER, PASSWORD)
    if mosquitto.ca_file:
        other.tls_set(mosquitto.ca_file)
    other.on_message = hear
    if topics:
        other.on_connect = lambda who, *_: who.subscribe([(topic, 1) for topic in topics])
    other.connect("localhost", mosquitto.port)
    other.loop_start()
    return other


class SimulatedPart:
    """The simulated house beside the driver's contract."""

    timeout_s = 1.5

    def __init__(self, own_loop=False):
        plant = Plant(dead_time_s=0, noise_w=0, timeout_s=self.timeout_s, own_loop=own_loop)
        house = SimulatedHouse(np.full(100, 850.0), SystemClock(), plant, soc=SOC)
        house.power_w = BATTERY_W
        house._newest = house._measure()
        self.meter = self.battery = house
        self.command = house.command_meter if own_loop else house.command_battery

    def told(self):
        self.meter.read_battery()
        return self.meter._wanted[1] if self.meter.remote else None


class MqttPart:
    """Battery and meter that speak MQTT with a sign and a unit of their own, and a dead-man of their own."""

    timeout_s = 1.5

    def __init__(self, mosquitto):
        self._told, self._heard_s, self._broker = None, 0.0, mosquitto
        self.device = client(mosquitto, self._hear, "inverter/set")
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
        self.command = self.battery.command_battery
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
        self.command = self.battery.command_battery
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


class VictronMqttPart:
    """GX on a broker: it publishes only while it is kept alive, and its set-point lapses."""

    timeout_s = 1.5
    portal = "c0619ab1"

    def __init__(self, mosquitto):
        self._values = {"system/0/Ac/Grid/L1/Power": -200, "system/0/Ac/Grid/L2/Power": -150.0,
                        "system/0/Ac/Grid/L3/Power": None, "system/0/Dc/Battery/Soc": 100 * SOC,
                        "system/0/Dc/Battery/Power": BATTERY_W, "hub4/0/Overrides/Setpoint": None}  # fmt: skip
        self._heard_s = self._kept_alive_s = -1e9
        self.written = set()
        self.device = client(mosquitto, self._hear, f"R/{self.portal}/#", f"W/{self.portal}/#")
        table = VictronMqttTable(driver="victron_mqtt", broker=mosquitto.table)
        self.meter = self.battery = VictronMqtt(table, SystemClock())
        self.command = self.battery.command_meter
        self._stop = threading.Event()
        threading.Thread(target=self._speak, daemon=True).start()

    def _tell(self, path):
        self.device.publish(f"N/{self.portal}/{path}", json.dumps({"value": self._values[path]}))

    def _speak(self):
        while not self._stop.wait(0.1):
            self.device.publish(f"N/{self.portal}/system/0/Serial", json.dumps({"value": self.portal}))
            if self._values["hub4/0/Overrides/Setpoint"] is not None and self.told() is None:
                self._values["hub4/0/Overrides/Setpoint"] = None
                self._tell("hub4/0/Overrides/Setpoint")

    def _hear(self, _client, _userdata, message):
        assert not message.retain
        kind, _, path = message.topic.split("/", 2)
        if path == "keepalive":
            self._kept_alive_s = time.monotonic()
            for known in self._values:
                self._tell(known)
        elif kind == "R" and time.monotonic() - self._kept_alive_s < 60:
            self._tell(path)
        elif kind == "W":
            self.written.add(path)
            self._values[path] = json.loads(message.payload)["value"]
            self._heard_s = time.monotonic()
            self._tell(path)

    def told(self):
        assert self.written <= {"hub4/0/Overrides/Setpoint"}
        is_held = time.monotonic() - self._heard_s < self.timeout_s
        return self._values["hub4/0/Overrides/Setpoint"] if is_held else None

    def close(self):
        self._stop.set()
        self.battery.close()
        self.device.disconnect()
        self.device.loop_stop()


class VictronModbusPart:
    """GX process, looked at with a Modbus client that is not ours; a release writes the stored set-point of 30 W."""

    timeout_s = 1.5

    def __init__(self):
        port = free_port()
        command = [sys.executable, HERE / "victron_server.py", str(port), str(self.timeout_s)]
        self._process = subprocess.Popen(command)
        until(lambda: answers(port), 20)
        self.meter = self.battery = VictronModbus(
            VictronModbusTable(driver="victron_modbus", host="127.0.0.1", port=port), SystemClock()
        )
        self.command = self.battery.command_meter
        self._client = ModbusClientTCP(slave_id=100, ipaddr="127.0.0.1", ipport=port, timeout=5)
        self._client.connect()

    def told(self):
        assert self._process.poll() is None
        raw = int.from_bytes(self._client.read(2716, 2), "big", signed=True)
        return None if raw in {0x7FFFFFFF, 30} else raw

    def close(self):
        self.battery.close()
        self._client.disconnect()
        self._process.terminate()
        self._process.wait(10)


class ShellyPart:
    """Plug-in battery that asks a Shelly meter over HTTP and UDP in turn, and takes its zero for the target."""

    timeout_s = 1.5

    def __init__(self, mosquitto):
        self.meter = self
        topics = {"soc": {"topic": "plug/soc", "factor": 0.01}, "power": {"topic": "plug/power"}}
        table = MqttSensorTable(driver="mqtt", broker=mosquitto.table, **topics)
        settings = ShellyMeterTable(driver="shelly_meter", sensor=table, host="127.0.0.1", port=0, udp_port=0,
                                    timeout_s=self.timeout_s)  # fmt: skip
        self.battery = ShellyMeter(settings, self, MqttSensor(table, SystemClock()), SystemClock())
        self.command = self.battery.command_meter
        self.reads = True
        self._asked = 0
        self.device = client(mosquitto, None)
        self._stop = threading.Event()
        threading.Thread(target=self._speak, daemon=True).start()

    def read_meter(self):
        return MeterReading(METER_W, time.monotonic() - (0 if self.reads else 60))

    def _speak(self):
        while not self._stop.wait(0.05):
            self.device.publish("plug/soc", str(100 * SOC))
            self.device.publish("plug/power", str(BATTERY_W))

    def shown(self):
        """Return what the battery sees as its meter, None without an answer."""
        self._asked += 1
        return self._by_http() if self._asked % 2 else self._by_udp()

    def _by_http(self):
        url = f"http://127.0.0.1:{self.battery.port}/rpc/EM.GetStatus?id=0"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return json.load(reply)["total_act_power"]
        except urllib.error.HTTPError:
            return None

    def _by_udp(self):
        call = {"id": 7, "src": "battery", "method": "EM.GetStatus", "params": {"id": 0}}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.settimeout(0.5)
            link.sendto(json.dumps(call).encode(), ("127.0.0.1", self.battery.udp_port))
            try:
                reply = json.loads(link.recv(2000))
            except TimeoutError:
                return None
        assert reply["id"] == 7
        return reply["result"]["total_act_power"]

    def told(self):
        shown = self.shown()
        return None if shown in {None, METER_W} else METER_W - shown

    def close(self):
        self._stop.set()
        self.battery.close()
        self.device.disconnect()
        self.device.loop_stop()


class HomeAssistantPart:
    """Entities of a real Home Assistant; it has no dead-man of its own, so the inverter behind it needs one."""

    timeout_s, fresh_s = None, 8

    def __init__(self, core, mosquitto, folder):
        self._inverter = Inverter(mosquitto.port)
        until(lambda: core.state("sensor.inverter_charge") == "55", 60)
        token = folder / "token"
        token.write_text(core.tokens["access_token"])
        table = HomeAssistantTable(
            driver="home_assistant", url=f"ws://127.0.0.1:{core.port}/api/websocket", token={"file": str(token)},
            power="sensor.inverter_power", power_factor=-1, soc="sensor.inverter_charge",
            command="number.inverter_setpoint", command_factor=-1, mode="select.inverter_mode", mode_remote="remote",
            mode_auto="auto",
        )  # fmt: skip
        self.battery = HomeAssistantDevice(table, SystemClock())
        meter_table = table.model_copy(update={"power": "sensor.inverter_grid", "power_factor": 1.0})
        self.meter = HomeAssistantDevice(meter_table, SystemClock())
        self.command, self.told = self.battery.command_battery, self._inverter.told

    def close(self):
        self.battery.close()
        self.meter.close()
        self._inverter.close()


class P1Part:
    """P1 port over TCP; a meter only."""

    battery = command = None
    body = b"/ISK5\\2M550T-1012\r\n\r\n1-0:1.7.0(00.150*kW)\r\n1-0:2.7.0(00.500*kW)\r\n!"

    def __init__(self):
        telegram = self.body + b"%04X\r\n" % checksum(self.body)

        class Port(socketserver.BaseRequestHandler):
            def handle(self):
                while not stop.wait(0.1):
                    self.request.sendall(telegram)

        stop = self._stop = threading.Event()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Port)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.meter = P1Meter(P1Table(driver="p1", host="127.0.0.1", port=self._server.server_address[1]), SystemClock())

    def close(self):
        self._stop.set()
        self.meter.close()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(
    params=["simulated", "simulated_own_loop", "mqtt", "mqtt_tls", "sunspec_124", "sunspec_704", "victron_mqtt",
            "victron_modbus", "shelly_meter", "p1", pytest.param("home_assistant", marks=pytest.mark.slow)]
)  # fmt: skip
def part(request, tmp_path):
    """Meter, battery, `command`, and `told`: what the device was told, None in its own mode."""
    fixture = lambda name="mosquitto": request.getfixturevalue(name)  # noqa: E731
    counterpart = {
        "simulated": SimulatedPart,
        "simulated_own_loop": lambda: SimulatedPart(own_loop=True),
        "mqtt": lambda: MqttPart(fixture()),
        "mqtt_tls": lambda: MqttPart(fixture("mosquitto_tls")),
        "sunspec_124": lambda: SunSpecPart(fixture("sunspec_server")("1,103,124,203"), 124),
        "sunspec_704": lambda: SunSpecPart(fixture("sunspec_server")("1,103,124,203,704,802"), 704),
        "victron_mqtt": lambda: VictronMqttPart(fixture()),
        "victron_modbus": VictronModbusPart,
        "shelly_meter": lambda: ShellyPart(fixture()),
        "p1": P1Part,
        "home_assistant": lambda: HomeAssistantPart(request.getfixturevalue("home_assistant"), fixture(), tmp_path),
    }[request.param]()
    reads = [counterpart.meter.read_meter, *([counterpart.battery.read_battery] if counterpart.battery else [])]
    for read in reads:
        until(lambda read=read: not isinstance(tried(read), PortError), 30)
    yield counterpart
    if hasattr(counterpart, "close"):
        counterpart.close()


def tried(call, *values):
    try:
        return call(*values)
    except PortError as error:
        return error


def test_a_driver_keeps_the_contract(part):
    meter, now_s = part.meter.read_meter(), time.monotonic()
    assert meter.power_w == pytest.approx(METER_W)
    assert abs(now_s - meter.at_s) < 3
    if part.battery is None:
        return
    fresh_s = getattr(part, "fresh_s", 3)
    battery = part.battery.read_battery()
    assert battery.soc == pytest.approx(SOC, abs=0.001)
    assert battery.power_w == pytest.approx(BATTERY_W)
    assert abs(time.monotonic() - battery.at_s) < fresh_s
    assert battery.setpoint_w is None
    until(lambda: tried(part.command, 900.0) is None)
    until(lambda: part.told() == pytest.approx(900.0))
    part.command(-1500.0)
    until(lambda: part.told() == pytest.approx(-1500.0))
    part.command(None)
    until(lambda: part.told() is None)
    part.command(300.0)
    until(lambda: part.told() == pytest.approx(300.0))
    if part.timeout_s is None:
        part.command(None)
        time.sleep(fresh_s)
        assert time.monotonic() - part.battery.read_battery().at_s < 2 * fresh_s  # an idle battery repeats one value
        return
    began_s = time.monotonic()
    until(lambda: part.told() is None, part.timeout_s + 3)
    assert time.monotonic() - began_s > part.timeout_s / 2


def test_an_emulated_meter_without_a_fresh_reading_does_not_answer(mosquitto):
    part = ShellyPart(mosquitto)
    assert part.shown() is not None
    part.reads = False
    assert part.shown() is None
    assert part.shown() is None
    until(lambda: not isinstance(tried(part.battery.read_battery), PortError))
    part.command(200.0)
    time.sleep(part.timeout_s + 0.2)
    with pytest.raises(PortError, match="no battery asks the emulated meter"):
        part.battery.read_battery()
    part.close()


def test_a_gx_without_a_portal_or_a_modbus_port_is_named(lone_broker):
    silent = VictronMqtt(VictronMqttTable(driver="victron_mqtt", broker=lone_broker.table), SystemClock())
    with pytest.raises(PortError, match="has not told its portal id"):
        silent.command_meter(100.0)
    with pytest.raises(PortError, match="tells no grid power"):
        silent.read_meter()
    silent.close()
    closed = VictronModbus(VictronModbusTable(driver="victron_modbus", host="127.0.0.1", port=9), SystemClock())
    with pytest.raises(PortError, match=r"127.0.0.1:9"):
        closed.read_meter()


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


def test_a_command_that_the_broker_did_not_get_is_never_sent_later(lone_broker):
    part = MqttPart(lone_broker)
    until(lambda: tried(part.command, 500.0) is None)
    until(lambda: part.told() == 500.0)
    lone_broker.stop()
    until(lambda: isinstance(tried(part.command, 777.0), PortError))
    lone_broker.start()
    until(part.battery._broker._client.is_connected, 15)
    time.sleep(1.0)
    assert part._told != 777.0
    part.close()


def test_a_retained_reading_is_stale_but_a_retained_charge_counts_where_the_power_is_fresh(lone_broker):
    other = client(lone_broker, None)
    until(other.is_connected)
    for topic, value in (("old/power", "100"), ("old/soc", "40")):
        other.publish(topic, value, qos=1, retain=True).wait_for_publish(10.0)
    topics = {"soc": {"topic": "old/soc", "factor": 0.01}, "power": {"topic": "old/power"}}
    sensor = MqttSensor(MqttSensorTable(driver="mqtt", broker=lone_broker.table, **topics), SystemClock())
    until(lambda: not isinstance(tried(sensor.read_battery), PortError))
    assert sensor.read_battery().at_s == -np.inf
    until(lambda: other.publish("old/power", "120") and sensor.read_battery().at_s > 0)
    assert sensor.read_battery().soc == pytest.approx(0.4)
    sensor.close()
    other.disconnect()
    other.loop_stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves the refused socket open
def test_a_broker_with_a_certificate_of_somebody_else_is_not_trusted(mosquitto_tls):
    table = mosquitto_tls.table | {"ca_file": ""}
    part = MqttMeter(MqttMeterTable(driver="mqtt", broker=table, power={"topic": "p1/import"}), SystemClock())
    time.sleep(1.5)
    assert not part._broker.is_connected
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


def test_the_age_of_a_silent_entity_is_told_by_home_assistants_own_clock():
    told = "2026-01-16T12:00:03.5+00:00", "Fri, 16 Jan 2026 12:00:10 GMT"
    assert reported_age_s(*told) == 6.5
    assert reported_age_s("2026-01-16T13:00:10.9+01:00", told[1]) == 0.0


HOSTILE = [b"", b"nan", b"NaN", b"1e999", b"true", b"[1]", b'{"a": {"b": null}}', b"\xff\xfe", b"[" * 5000, b"9" * 400]


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("path", ["", "a.b", "0.x"])
def test_a_hostile_payload_is_no_number(payload, path):
    value = number_in(payload, path)
    assert not np.isfinite(value)


@settings(max_examples=60, deadline=None)
@given(payload=st.binary(max_size=200) | st.text(max_size=100).map(str.encode), path=st.text(max_size=10))
def test_any_payload_is_a_number_or_none(payload, path):
    assert isinstance(number_in(payload, path), float)


def test_numbers_are_found_in_payloads():
    assert number_in(b" 12.5 ", "") == 12.5
    assert number_in(b'"12"', "") == 12.0
    assert number_in(b'{"a": [{"w": 3}]}', "a.0.w") == 3.0


@pytest.mark.slow
def test_an_idle_battery_that_home_assistant_is_told_once_is_not_stale(home_assistant, mosquitto, tmp_path):
    part = HomeAssistantPart(home_assistant, mosquitto, tmp_path)
    part._inverter.state["power"] = 0
    until(lambda: getattr(tried(part.battery.read_battery), "power_w", None) == 0.0)
    time.sleep(12)
    assert time.monotonic() - part.battery.read_battery().at_s < 5
    part.close()
