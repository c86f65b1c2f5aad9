"""The guard as a process: real registers, signals, a killed process, the command line."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
import sunspec2.modbus.client as sunspec
from counterparts import free_port, until
from hypothesis import strategies as st

from meterveil.core.certificate import Rules
from meterveil.data import synthetic
from meterveil.live.config import Config
from meterveil.live.demo_files import SETTINGS, write_bundle, write_demo
from meterveil.live.guard import Guard
from meterveil.live.records import MinuteRecord
from meterveil.live.store import Store


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundle") / "defence", "flat")


@pytest.fixture
def settings(tmp_path, bundle):
    """Folder with the settings of a simulated house."""
    (tmp_path / "guard.toml").write_text(SETTINGS.replace('"defence"', f'"{bundle}"'))
    np.save(tmp_path / "load.npy", np.full(86_400, 400.0))
    return tmp_path / "guard.toml"


def run(*words, **options):
    command = [sys.executable, "-m", "meterveil", "guard", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def inverter(sunspec_server, tmp_path, bundle):
    """Inverter process, its independent client and a guard's settings for it."""
    port = sunspec_server("1,103,124,203,704,802")
    device = f'driver = "sunspec"\nhost = "127.0.0.1"\nport = {port}\ntimeout_s = 3\n'
    text = f'defence = "{bundle}"\narmed = true\n[meter]\n{device}[battery]\n{device}[dashboard]\nport = 0\n'
    (tmp_path / "guard.toml").write_text(text)
    client = sunspec.SunSpecModbusClientDeviceTCP(slave_id=1, ipaddr="127.0.0.1", ipport=port)
    client.scan()
    yield client.models[704][0], tmp_path / "guard.toml"
    client.close()


def is_remote(model):
    model.read()
    return model.WSetEna.value == 1


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_or_killed_guard_leaves_the_inverter_in_its_own_mode(inverter, end):
    model, config = inverter
    command = [sys.executable, "-m", "meterveil", "guard", "--config", config, "--live"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: is_remote(model), 30)
    assert model.WSetRvrtTms.value == 3
    os.kill(process.pid, end)
    process.wait(15)
    stopped_s = time.monotonic()
    until(lambda: not is_remote(model), 6)
    assert end == signal.SIGKILL or time.monotonic() - stopped_s < 1.0


@pytest.mark.slow
def test_without_live_or_without_armed_nothing_is_commanded(inverter):
    model, config = inverter
    command = [sys.executable, "-m", "meterveil", "guard", "--config", config]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "shadow mode" in process.stdout.readline()
    time.sleep(3)
    assert not is_remote(model)
    process.terminate()
    process.communicate(timeout=15)
    config.write_text(config.read_text().replace("armed = true", "armed = false"))
    refused = run("--config", config, "--live")
    assert (refused.returncode, "needs armed = true" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_check_reads_every_connection_and_names_what_fails(inverter):
    _, config = inverter
    found = run("check", "--config", config)
    assert found.returncode == 0, found.stderr
    assert " 350 W exported" in found.stdout
    assert "55 % charged, discharging at 1200 W" in found.stdout
    config.write_text(config.read_text().replace('host = "127.0.0.1"', 'host = "127.0.0.2"'))
    failed = run("check", "--config", config)
    assert (failed.returncode, "does not answer" in " ".join(failed.stdout.split())) == (1, True)


def test_meter_and_battery_share_the_seconds_of_a_check(settings, monkeypatch):
    from meterveil.live import checkup  # noqa: PLC0415
    from meterveil.live.config import home_of, read_config  # noqa: PLC0415
    from meterveil.live.ports import PortError, Ports  # noqa: PLC0415
    from meterveil.live.simulated import ManualClock, SimulatedHouse  # noqa: PLC0415

    class Silent(SimulatedHouse):
        def read_meter(self):
            raise PortError("no meter")

        def read_battery(self):
            raise PortError("no battery")

    waited_s = []
    monkeypatch.setattr(checkup, "time", SimpleNamespace(monotonic=lambda: sum(waited_s), sleep=waited_s.append))
    clock, home = ManualClock(), home_of(read_config(settings), live=False)
    house = Silent(np.full(600, 400.0), clock)
    found = checkup.look(Ports(clock, house, house, house), home, wait_s=5.0)
    assert [(part.ok, part.text) for part in found] == [(False, "no meter"), (False, "no battery")]
    assert sum(waited_s) < 6.0


def test_a_test_step_proves_signs_and_says_from_whom_it_hides(settings):
    from meterveil.live import checkup  # noqa: PLC0415
    from meterveil.live.ports import Ports  # noqa: PLC0415
    from meterveil.live.simulated import ManualClock, SimulatedHouse  # noqa: PLC0415

    clock = ManualClock()
    house = SimulatedHouse(np.full(600, 400.0), clock)
    ports = Ports(clock, house, house, house)
    steps = [checkup.step_battery(ports, watts, clock.move) for watts in (300.0, -300.0)]
    found = checkup.verdict(steps)
    assert [part.ok for part in found] == [True, True, True]
    assert found[-1].text.startswith("hidden from readers slower than")
    assert 15 < checkup.hidden_from_s(steps) < 60
    assert not house.remote
    wrong = steps[0]._replace(moved_w=-300.0)
    assert "see sign and factor" in checkup.verdict([wrong])[0].text
    backwards = steps[0]._replace(meter_moved_w=-300.0)
    assert "its sign is wrong" in checkup.verdict([backwards])[0].text


@pytest.mark.slow
def test_init_finds_a_broker_and_writes_a_file_that_only_the_owner_reads(mosquitto, tmp_path):
    config = tmp_path / "home" / "guard.toml"
    done = run("init", "--config", config, "--broker", f"127.0.0.1:{mosquitto.port}")
    assert done.returncode == 0, done.stderr
    assert f"MQTT broker: 127.0.0.1:{mosquitto.port}" in done.stdout
    assert config.stat().st_mode & 0o077 == 0
    assert f"port = {mosquitto.port}" in config.read_text()
    assert (tmp_path / "home" / "defence" / "bundle.json").exists()
    from meterveil.live.config import home_of, read_config  # noqa: PLC0415

    assert not home_of(read_config(config), live=False).may_command
    again = run("init", "--config", config)
    assert (again.returncode, "exists" in again.stderr) == (2, True)


def test_likely_entities_come_first():
    from meterveil.live.setup import sort_entities  # noqa: PLC0415

    power = {"device_class": "power"}
    states = [
        {"entity_id": "sensor.oven_power", "attributes": power},
        {"entity_id": "sensor.grid_power", "attributes": power},
        {"entity_id": "sensor.battery_power", "attributes": power},
        {"entity_id": "sensor.battery_soc", "attributes": {"device_class": "battery"}},
        {"entity_id": "number.battery_setpoint", "attributes": {}},
        {"entity_id": "sensor.inverter_grid", "attributes": power},
        {"entity_id": "sensor.inverter_power", "attributes": power},
        {"entity_id": "select.inverter_mode", "attributes": {"options": ["auto", "remote"]}},
    ]
    found = sort_entities(states)
    assert found["meter power"][0] == "sensor.grid_power"
    assert found["battery power"][:2] == ["sensor.battery_power", "sensor.inverter_power"]
    assert found["options of the mode"] == ["auto", "remote"]
    assert (found["battery charge"], found["command"]) == (["sensor.battery_soc"], ["number.battery_setpoint"])


def test_the_time_zone_is_the_computers(tmp_path):
    from meterveil.live.setup import local_zone  # noqa: PLC0415

    place = tmp_path / "zoneinfo" / "Europe" / "Amsterdam"
    place.parent.mkdir(parents=True)
    place.touch()
    (tmp_path / "localtime").symlink_to(place)
    assert local_zone(tmp_path / "localtime") == "Europe/Amsterdam"
    assert local_zone(tmp_path / "nothing") == "UTC"


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(settings):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = run("--config", settings, "--port", taken.getsockname()[1])
    assert (refused.returncode, "port is taken" in refused.stderr) == (2, True)


def test_a_restarted_guard_continues_and_snapshots_hold_no_secret(settings, monkeypatch):
    from meterveil.live.config import read_config  # noqa: PLC0415

    monkeypatch.setenv("PAGE", "hunter2")
    page = {"host": "127.0.0.1", "port": 0, "password": {"env": "PAGE"}}
    config = Config.model_validate(read_config(settings).model_dump() | {"dashboard": page})
    first = Guard(config, live=True)
    first.tick()
    first.ask("budget", "2.5")
    first.ask("budget", "lots")
    first.ask("protection", "maybe")
    first.tick()
    assert first.status.budget_kwh == 2.5
    first._keep_snapshot(1.0)
    first.store.put_minute(_minute(), first.controller.memory())
    first.close()
    kept = first.store.snapshots()
    assert "hunter2" not in json.dumps(kept)
    assert "PAGE" in json.dumps(kept)
    second = Guard(config, live=True)
    assert second.controller.status.budget_kwh == 2.5
    second.close()


def _minute():
    from meterveil.live.records import MinuteRecord  # noqa: PLC0415

    return MinuteRecord(1, "1970-01-01", 1.0, 1.0, 0.0, 1.0, 1.0, 0.5, 60.0, 0.0, 0.0, "", 0.0)


def test_a_tick_that_fails_is_named_and_does_not_end_the_guard(settings, monkeypatch):
    from meterveil.live.config import read_config  # noqa: PLC0415

    guard = Guard(read_config(settings).model_copy(update={"dashboard": None}), live=True)
    monkeypatch.setattr(guard.controller, "tick", lambda: 1 / 0)
    guard.tick()
    guard.close()
    assert [row[1] for row in guard.store.events()] == ["tick_failed"]


def test_nothing_that_a_broker_sends_crashes_the_tick_or_goes_live(settings):
    from meterveil.live.config import read_config  # noqa: PLC0415

    guard = Guard(read_config(settings).model_copy(update={"dashboard": None}), live=False)

    @hypothesis.settings(max_examples=50, deadline=None)
    @hypothesis.given(what=st.sampled_from(["mode", "budget", "protection", "x"]), value=st.text(max_size=20))
    def fuzz(what, value):
        guard.ask(what, value)
        guard.tick()
        assert not guard.ports.meter.remote

    fuzz()
    guard.ask("mode", "live")
    guard.tick()
    assert (guard.status.mode, guard.ports.meter.remote) == ("shadow", False)
    guard.close()
    assert "tick_failed" not in [row[1] for row in guard.store.events(500)]


@pytest.mark.slow
def test_the_shipped_reader_compares_the_last_day_in_a_process_of_its_own():
    from meterveil.live.stranger import Stranger  # noqa: PLC0415

    load_w = synthetic.load_by_second(np.random.default_rng(0), 1, timezone="UTC").reshape(-1, 60).mean(axis=1)
    stranger = Stranger()
    stranger.read(load_w.tolist(), [400.0] * 1440)
    until(lambda: not stranger._thread.is_alive(), 60)
    before, _, still = np.array([uses for _, *uses in stranger.found]).sum(axis=0)
    assert before >= 3
    assert still == 0


@pytest.mark.slow
def test_the_demo_shows_a_page_and_loads_nothing_heavy():
    port = free_port()
    command = [sys.executable, "-m", "meterveil", "guard", "--demo", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert f"http://127.0.0.1:{port}" in process.stdout.readline()
            mapped = Path(f"/proc/{process.pid}/maps").read_text()
            assert not [name for name in ("torch", "pandas", "pyarrow", "plotly") if f"/{name}/" in mapped]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_full_disk_and_its_end_are_events(settings):
    from meterveil.live.config import read_config  # noqa: PLC0415

    guard = Guard(read_config(settings).model_copy(update={"dashboard": None}))
    try:
        guard.store.failure = "home.sqlite: database or disk is full"
        guard.tick()
        guard.store.failure = ""
        guard.tick()
        names = [event[1] for event in guard.state()["events"]]
        assert names[:2] == ["store_written", "store_failed"]
    finally:
        guard.close()


def test_the_demo_begins_with_the_energy_that_its_past_moved_today(tmp_path):
    write_demo(tmp_path)
    store = Store(tmp_path / "state" / "demo.sqlite")
    (today,) = store.days()[-1:]
    store.close()
    assert store.memory()["ledger"]["moved_kwh"][today[0]] == pytest.approx(today[3])


def test_the_past_of_the_demo_is_stored_with_the_levels_that_its_meter_showed(tmp_path):
    write_demo(tmp_path)
    store = Store(tmp_path / "state" / "demo.sqlite")
    minutes = [MinuteRecord(*row) for row in store.minutes(0, 2**40)]
    store.close()
    assert {minute.level_w for minute in minutes if minute.level_w is not None} <= set(Rules().menu_w)
    assert sum(round(minute.meter_w) == minute.level_w for minute in minutes) > 0.9 * len(minutes)
