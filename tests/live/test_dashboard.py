"""The dashboard in a real browser, and its defence against strangers."""

import json
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from counterparts import Mosquitto, until
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import sync_playwright

from meterveil.live.config import Config
from meterveil.live.dashboard.app import LOGINS, Server
from meterveil.live.demo_files import write_bundle
from meterveil.live.guard import Guard

NOTHING = "\N{EN DASH}"
SIMULATED = {"driver": "simulated", "dead_time_s": 0}


class Running:
    """Guard of a simulated house in a thread, ticking fast."""

    def __init__(self, folder, broker):
        load_w = np.where(np.arange(86_400) % 40 < 20, 300.0, 900.0)
        np.save(folder / "load.npy", load_w)
        device = {**SIMULATED, "load": str(folder / "load.npy")}
        config = Config(
            defence=str(write_bundle(folder / "defence", "flat")),
            state=str(folder / "state"),
            armed=True,
            meter=device,
            battery=device,
            dashboard={"port": 0},
            home_assistant_discovery=broker.table,
        )
        self.guard = Guard(config, live=True)
        self.house = self.guard.ports.meter
        self.address = self.guard.server.address()
        self._thread = threading.Thread(target=self.guard.run, args=(0.2,))
        self._thread.start()

    def close(self):
        self.guard.stop.set()
        self._thread.join(15)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    broker = Mosquitto(tmp_path_factory.mktemp("own_mosquitto"))
    started = Running(tmp_path_factory.mktemp("home"), broker)
    started.broker = broker
    yield started
    started.close()
    if broker.process.poll() is None:
        broker.stop()


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, running):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    complaints, loaded = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: loaded.append(sent.url))
    page.goto(running.address)
    page.locator("#mode", has_text="live").wait_for()
    yield page
    page.close()
    assert complaints == []
    assert all(url.startswith(running.address) for url in loaded)


@pytest.mark.slow
def test_values_change_live_and_nothing_scrolls_sideways(opened):
    load = opened.locator("#load")
    first = load.inner_text()
    until(lambda: load.inner_text() not in {first, NOTHING}, 60)
    assert opened.locator(".chart canvas").count() == 2
    assert opened.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    opened.locator("#control", has_text="in control").wait_for()
    spans_s = opened.evaluate("[seconds, minutes].map((plot) => plot.scales.x.max - plot.scales.x.min)")
    assert spans_s == [600, 86_400]
    opened.reload()
    until(lambda: opened.evaluate("recent[0].length") > 3, 60)
    assert opened.evaluate("recent[0].every((at, n) => n === 0 || at > recent[0][n - 1])")


@pytest.mark.slow
def test_pause_really_idles_the_battery_and_live_needs_a_second_confirmation(opened, running):
    until(lambda: running.house.remote)
    opened.locator("#pause").click()
    until(lambda: not running.house.remote)
    opened.locator("#mode", has_text="paused").wait_for()
    opened.locator("#arm").click()
    opened.locator("#confirm").wait_for()
    time.sleep(0.5)
    assert not running.house.remote
    opened.locator("#confirm").click()
    until(lambda: running.house.remote)


@pytest.mark.slow
def test_a_lost_broker_shows_within_ten_seconds(opened, running):
    line = opened.locator("#connections li", has_text="Home Assistant's broker")
    until(lambda: "no connection" not in line.inner_text())
    running.broker.stop()
    began_s = time.monotonic()
    until(lambda: "no connection" in line.inner_text(), 10)
    assert time.monotonic() - began_s < 10
    running.broker.start()


class Asked:
    """Guard that only notes what it is asked."""

    def __init__(self):
        self.asked = []

    def state(self):
        return {"soc": float("nan")}

    def history(self):
        return {"time": []}

    def ask(self, what, value):
        self.asked.append((what, value))


@pytest.fixture
def source():
    return Asked()


@pytest.fixture
def guarded(source):
    server = Server(source, "127.0.0.1", 0, "hunter2")
    yield server.address()
    server.close()


def call(url, body=None, **headers):
    """Return status, cookie and text of a request."""
    request = urllib.request.Request(url, body, headers)
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=5) as reply:
            return reply.status, reply.headers.get("set-cookie", ""), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", error.read().decode()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def log_in(address):
    status, cookie, _ = call(f"{address}/login", json.dumps({"password": "hunter2"}).encode())
    assert status == 200
    assert "HttpOnly" in cookie
    return cookie.partition(";")[0]


def test_a_server_that_closes_ends_open_streams_without_an_error(source, capfd):
    server = Server(source, "127.0.0.1", 0, "hunter2")
    address = server.address()
    request = urllib.request.Request(f"{address}/events", headers={"cookie": log_in(address)})
    with urllib.request.urlopen(request, timeout=10) as stream:
        assert stream.readline().startswith(b"data: ")
        server.close()
        stream.read()
    assert capfd.readouterr().err == ""


def test_a_password_guards_every_address(guarded, source):
    assert call(guarded)[0] == 303
    for path in ("/events", "/history"):
        assert call(guarded + path)[0] == 403
    assert call(f"{guarded}/do", b'{"what": "protection", "value": "OFF"}')[0] == 403
    cookie = log_in(guarded)
    token = json.loads(call(f"{guarded}/history", cookie=cookie)[2])["token"]
    body = b'{"what": "protection", "value": "OFF"}'
    assert call(f"{guarded}/do", body, cookie=cookie)[0] == 403
    assert source.asked == []
    assert call(f"{guarded}/do", body, **{"cookie": cookie, "x-token": token})[0] == 200
    assert source.asked == [("protection", "OFF")]


def test_logins_are_rate_limited(guarded):
    tries = [call(f"{guarded}/login", b'{"password": "guess"}')[0] for _ in range(LOGINS + 2)]
    assert tries == [403] * LOGINS + [429] * 2


HOSTILE = [b"", b"{", b"[]", b"null", b"[" * 3000, b"x" * 10_000, b'{"what": "mode", "value": "root"}',
           b'{"what": "budget", "value": "1e999"}', b'{"what": "budget", "value": "nan"}', b"\xff\xfe\x00"]  # fmt: skip


def test_hostile_requests_never_reach_the_guard(guarded, source):
    cookie = log_in(guarded)
    token = json.loads(call(f"{guarded}/history", cookie=cookie)[2])["token"]
    for body in HOSTILE:
        assert call(f"{guarded}/do", body, **{"cookie": cookie, "x-token": token})[0] == 400
        assert call(f"{guarded}/login", body)[0] in {403, 429}
    assert call(f"{guarded}/static/../app.py")[0] == 404
    assert source.asked == []


def test_any_request_is_answered_without_an_error_and_never_reaches_the_guard(guarded, source):
    cookie = log_in(guarded)

    @settings(max_examples=40, deadline=None)
    @given(
        body=st.binary(max_size=300) | st.dictionaries(st.text(max_size=8), st.text(max_size=8)).map(_json),
        path=st.sampled_from(["/do", "/login", "/history", "/events/x", "/static/%2e%2e/app.py", "/"]),
        token=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=20),
    )
    def fuzz(body, path, token):
        assert call(guarded + path, body, **{"cookie": cookie, "x-token": token})[0] < 500

    fuzz()
    assert source.asked == []


def _json(value):
    return json.dumps(value).encode()


def test_a_page_without_a_password_answers_only_to_names_of_this_computer(running):
    assert call(running.address)[0] == 200
    assert call(running.address, host="evil.example")[0] == 400
