"""Settings are checked before anything is connected; live needs two keys; secrets stay where they are."""

import os

import pytest

from meterveil.errors import InputError
from meterveil.live.config import Config, home_of, parse_config, read_config
from meterveil.live.demo_files import SETTINGS, write_bundle

SIMULATED = {"driver": "simulated", "load": "load.npy"}
BASE = {"meter": SIMULATED, "battery": SIMULATED}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundle") / "defence", "flat")


WRONG = {
    "timezone": ({"timezone": "Mars/North"}, "write a time zone such as Europe/London"),
    "unknown key": ({"colour": "red"}, "colour is 'red': Extra inputs are not permitted"),
    "driver": (
        {"meter": {"driver": "telepathy"}},
        "'simulated', 'mqtt', 'sunspec', 'p1', 'home_assistant', 'victron_mqtt'",
    ),
    "open page": ({"dashboard": {"host": "0.0.0.0"}}, "needs a password"),
    "two secrets": ({"dashboard": {"password": {"env": "A", "file": "b"}}}, "give one place"),
    "dead man": ({"battery": {"driver": "sunspec", "host": "x", "timeout_s": 0}}, "greater than or equal to 2"),
    "wildcard": ({"meter": {"driver": "mqtt", "power": {"topic": "a/#"}}}, "without"),
}


@pytest.mark.parametrize(("changes", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_named_with_what_is_allowed(changes, words):
    with pytest.raises(InputError, match=words):
        parse_config(BASE | changes, "guard.toml")


def test_live_needs_the_armed_flag_as_well(bundle):
    config = Config(**BASE, defence=str(bundle))
    assert not home_of(config, live=False).may_command
    with pytest.raises(InputError, match="--live needs armed = true"):
        home_of(config, live=True)
    assert home_of(config.model_copy(update={"armed": True}), live=True).may_command


def test_limits_of_the_settings_replace_those_of_the_bundle(bundle):
    config = parse_config(BASE | {"defence": str(bundle), "limits": {"charge_w": 900, "most_writes": 270}}, "x")
    home = home_of(config, live=False)
    assert (home.battery.charge_w, home.battery.capacity_kwh, home.most_writes) == (900, 8.0, 270)


def test_folders_are_relative_to_the_file(tmp_path):
    (tmp_path / "guard.toml").write_text(SETTINGS)
    config = read_config(tmp_path / "guard.toml")
    assert config.defence == str(tmp_path / "defence")
    assert config.meter.load == config.battery.load == str(tmp_path / "load.npy")


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(InputError, match="guard init"):
        read_config(tmp_path / "guard.toml")
    (tmp_path / "guard.toml").write_text("a = [")
    with pytest.raises(InputError, match="is not TOML"):
        read_config(tmp_path / "guard.toml")


def test_secrets_are_read_from_their_place_and_never_shown(tmp_path, monkeypatch):
    place = tmp_path / "password"
    place.write_text("hunter2\n")
    table = {"host": "127.0.0.1", "password": {"file": str(place)}}
    config = parse_config(BASE | {"dashboard": table}, "guard.toml")
    assert config.dashboard.password.read() == "hunter2"
    assert "hunter2" not in repr(config) + config.model_dump_json()
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(InputError, match="NOWHERE is empty"):
        parse_config(BASE | {"dashboard": {"password": {"env": "NOWHERE"}}}, "x").dashboard.password.read()
    os.environ.pop("NOWHERE", None)


def test_files_of_secrets_are_relative_to_the_settings(tmp_path):
    (tmp_path / "guard.toml").write_text(SETTINGS + '[dashboard]\npassword = {file = "page-password"}\n')
    (tmp_path / "page-password").write_text("hunter2")
    assert read_config(tmp_path / "guard.toml").dashboard.password.read() == "hunter2"


def test_a_reader_that_nobody_knows_is_named():
    with pytest.raises(InputError, match="half hours in 10 Wh; half hours in 1 Wh"):
        parse_config(BASE | {"reader": "seconds"}, "guard.toml")
