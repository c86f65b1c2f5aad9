"""Real counterparts of the drivers as fixtures."""

import subprocess
import sys

import pytest
from counterparts import HERE, Mosquitto, answers, free_port, until

sys.path.append(str(HERE / "home_assistant"))


@pytest.fixture(scope="session")
def mosquitto(tmp_path_factory):
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def mosquitto_tls(tmp_path_factory):
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto_tls"), tls=True)
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def home_assistant(mosquitto, tmp_path_factory):
    from core import HomeAssistant  # noqa: PLC0415  beside the list of what it needs

    core = HomeAssistant(tmp_path_factory.mktemp("home_assistant"), mosquitto.port)
    yield core
    core.stop()


@pytest.fixture(scope="session")
def sunspec_server():
    """Function that starts an inverter with some models and returns its port."""
    started = []

    def start(models):
        port = free_port()
        started.append(subprocess.Popen([sys.executable, HERE / "sunspec_server.py", str(port), models]))
        until(lambda: answers(port), 20)
        return port

    yield start
    for process in started:
        process.terminate()
        process.wait(10)
