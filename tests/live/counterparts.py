"""Real counterparts of the drivers: Mosquitto, a Modbus server process."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PATIENCE = float(os.environ.get("METERVEIL_PATIENCE", "1"))
"""Factor on every wait, for a computer that is busy with other things."""
USER, PASSWORD = "veil", "secret"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(holds, seconds=10.0, every=0.02):
    """Wait until something holds; return what it returned."""
    end = time.monotonic() + seconds * PATIENCE
    while not (result := holds()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(every)
    return result


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


class Mosquitto:
    """Broker process that a test may stop and start again."""

    def __init__(self, folder, tls=False):
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            pytest.skip("there is no mosquitto; install Debian's packages mosquitto and mosquitto-clients")
        self.port, self._program, self._folder = free_port(), program, folder
        passwords = folder / "passwords"
        subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, USER, PASSWORD], check=True)
        passwords.chmod(0o644)
        settings = f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\nuser root\n"
        self.ca_file = ""
        if tls:
            self.ca_file, key = str(folder / "broker.crt"), str(folder / "broker.key")
            make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
            names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", self.ca_file]
            subprocess.run([*make, *names], check=True, capture_output=True)
            settings += f"certfile {self.ca_file}\nkeyfile {key}\n"
        (folder / "mosquitto.conf").write_text(settings)
        self.start()

    def start(self):
        command = [self._program, "-c", self._folder / "mosquitto.conf"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until(lambda: answers(self.port))

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    @property
    def table(self):
        """Settings of the connection, as in guard.toml."""
        os.environ["TEST_MQTT_PASSWORD"] = PASSWORD
        tls = {"tls": True, "ca_file": self.ca_file} if self.ca_file else {}
        secret = {"env": "TEST_MQTT_PASSWORD"}
        return {"host": "localhost", "port": self.port, "username": USER, "password": secret, **tls}
