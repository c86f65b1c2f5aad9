"""Files for deployment, as far as they can be tried without systemd, a container engine or a Supervisor."""

import json
import os
import shutil
import socket
import subprocess
import threading
from configparser import ConfigParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from meterveil import __version__
from meterveil.live.config import read_config
from meterveil.live.demo_files import SETTINGS, write_bundle
from meterveil.live.guard import Guard

DEPLOY = Path(__file__).parents[2] / "deploy"
ADD_ON = DEPLOY / "home-assistant-add-on"


def test_the_unit_has_a_watchdog_and_leaves_time_for_the_release():
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "guard.service")
    service = unit["Service"]
    assert (service["Type"], service["WatchdogSec"], service["KillSignal"]) == ("notify", "60", "SIGTERM")
    assert int(service["TimeoutStopSec"]) >= 20
    assert "--live" not in service["ExecStart"]


def test_the_add_on_is_complete_and_starts_in_shadow_mode():
    settings = yaml.safe_load((ADD_ON / "config.yaml").read_text())
    assert settings["services"] == ["mqtt:want"]
    assert settings["options"] == {"live": False}
    assert settings["version"] == __version__
    assert set(settings) >= {"name", "slug", "description", "arch"}


@pytest.mark.parametrize("live", [False, True])
def test_the_add_on_passes_live_only_where_it_is_switched_on(tmp_path, live):
    fake = tmp_path / "meterveil"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    (tmp_path / "guard.toml").write_text("")
    (tmp_path / "options.json").write_text(json.dumps({"live": live}))
    places = {"GUARD_CONFIG": str(tmp_path / "guard.toml"), "GUARD_OPTIONS": str(tmp_path / "options.json")}
    environment = {**os.environ, **places, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run([ADD_ON / "run.sh"], env=environment, capture_output=True, text=True, check=True).stdout
    assert ("--live" in said) == live


def test_the_container_runs_without_root():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    assert "USER guard" in lines
    assert "STOPSIGNAL SIGTERM" in lines


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze; install Debian's package systemd")
    text = (DEPLOY / "guard.service").read_text()
    unit = tmp_path / "meterveil-guard.service"
    text = text.replace("/opt/meterveil/bin/meterveil", shutil.which("true")).replace("User=meterveil", "User=root")
    unit.write_text(text)
    said = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert (said.returncode, [line for line in said.stderr.splitlines() if "meterveil" in line]) == (0, [])


def test_systemd_hears_of_the_start_of_every_tick_and_of_the_stop(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        np.save(tmp_path / "load.npy", np.full(60, 400.0))
        write_bundle(tmp_path / "defence", "flat")
        (tmp_path / "guard.toml").write_text(SETTINGS)
        guard = Guard(read_config(tmp_path / "guard.toml").model_copy(update={"dashboard": None}))
        thread = threading.Thread(target=guard.run, args=(0.05,))
        thread.start()
        heard = [systemd.recv(100) for _ in range(3)]
        guard.stop.set()
        thread.join(20)
        assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
        while (message := systemd.recv(100)) == b"WATCHDOG=1":
            pass
        assert message == b"STOPPING=1"
