"""A real Home Assistant Core, headless, on loopback, with its MQTT integration set up."""

import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from counterparts import PASSWORD, USER, free_port, until
from websockets.sync.client import connect

ROOT = Path(__file__).parents[3]
CONFIGURATION = """
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
websocket_api:
config:
onboarding:
auth:
frontend:
"""


def program():
    """Return the hass program; `.ci/home_assistant` installs it."""
    folder = Path(os.environ.get("METERVEIL_HOME_ASSISTANT", ROOT / "build" / "home-assistant"))
    found = folder / "bin" / "hass"
    if not found.exists():
        pytest.skip(f"there is no Home Assistant in {folder}; install it with .ci/home_assistant")
    return found


class HomeAssistant:
    """Process of a Home Assistant and a client of its REST interface."""

    def __init__(self, folder, broker_port):
        self._program, self._folder, self.port = program(), folder, free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        (folder / "configuration.yaml").write_text(CONFIGURATION.format(port=self.port))
        self._headers = {}
        self.start()
        self._onboard()
        self._add_broker(broker_port)

    def start(self):
        command = [self._program, "-c", self._folder, "--skip-pip", "--log-no-color"]
        with (self._folder / "out.log").open("a") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            until(lambda: self._answers("/api/onboarding"), 400, 0.5)
        except AssertionError:
            self.stop()
            raise

    def stop(self):
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def get(self, path):
        return self._ask(path)

    def post(self, path, document):
        return self._ask(path, json.dumps(document).encode(), {"Content-Type": "application/json"})

    def state(self, entity):
        """Return the state of an entity, None where it does not exist."""
        try:
            return self.get(f"/api/states/{entity}")["state"]
        except urllib.error.HTTPError:
            return None

    def call(self, service, **data):
        return self.post(f"/api/services/{service}", data)

    def devices(self):
        """Return the device registry, over the WebSocket."""
        with connect(f"ws://127.0.0.1:{self.port}/api/websocket") as link:
            link.recv()
            link.send(json.dumps({"type": "auth", "access_token": self.tokens["access_token"]}))
            link.recv()
            link.send(json.dumps({"id": 1, "type": "config/device_registry/list"}))
            return json.loads(link.recv())["result"]

    def _ask(self, path, body=None, headers=None):
        request = urllib.request.Request(self.base + path, body, {**self._headers, **(headers or {})})
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read() or "null")

    def _answers(self, path):
        try:
            self._ask(path)
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def _onboard(self):
        client = self.base + "/"
        person = {"name": "t", "username": "t", "password": "t", "language": "en"}
        code = self.post("/api/onboarding/users", {"client_id": client, **person})["auth_code"]
        form = urllib.parse.urlencode({"grant_type": "authorization_code", "code": code, "client_id": client})
        self.tokens = self._ask("/auth/token", form.encode())
        self._headers = {"Authorization": f"Bearer {self.tokens['access_token']}"}
        self.post("/api/onboarding/core_config", {})
        self.post("/api/onboarding/analytics", {})
        self.post("/api/onboarding/integration", {"client_id": client, "redirect_uri": client})

    def _add_broker(self, port):
        flow = self.post("/api/config/config_entries/flow", {"handler": "mqtt", "show_advanced_options": False})
        answer = {"broker": "127.0.0.1", "port": port, "username": USER, "password": PASSWORD}
        done = self.post(f"/api/config/config_entries/flow/{flow['flow_id']}", answer)
        assert done["type"] == "create_entry", done
