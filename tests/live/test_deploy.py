"""Files for deployment, as far as they can be tried without systemd, a container engine or a Supervisor."""

import json
import os
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from meterveil import __version__

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
