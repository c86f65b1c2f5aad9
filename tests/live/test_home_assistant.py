"""The guard and a real Home Assistant: it shows the demo house, steers it, and its entities can be a battery."""

import threading

import numpy as np
import pytest
from counterparts import until

from meterveil.live.config import Config
from meterveil.live.demo_files import write_bundle
from meterveil.live.guard import Guard

pytestmark = pytest.mark.slow


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
