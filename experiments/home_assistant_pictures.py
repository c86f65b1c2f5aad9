"""Photograph the guard in a real Home Assistant: `python -m experiments.home_assistant_pictures`.

Makes docs/img/home-assistant-device.png and docs/img/guard-demo.png from the demo house. Needs Mosquitto, Chromium and
the Home Assistant that `.ci/home_assistant` installs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from meterveil.live.config import BrokerTable, DashboardTable, read_config
from meterveil.live.demo_files import write_demo
from meterveil.live.guard import Guard

TESTS = Path(__file__).parents[1] / "tests" / "live"
SETTLE_S = 90.0


def photograph(browser: Browser, core: Any, page_of_guard: str, folder: Path) -> None:
    """Save the device page of Home Assistant, and the dashboard."""
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    tokens = {
        **core.tokens,
        "hassUrl": core.base,
        "clientId": core.base + "/",
        "expires": int(time.time() * 1e3) + 10**6,
    }
    page.add_init_script(f"localStorage.setItem('hassTokens', {json.dumps(json.dumps(tokens))})")
    devices = core.devices()
    device = next(entry["id"] for entry in devices if entry["name"] == "meterveil")
    page.goto(f"{core.base}/config/devices/device/{device}")
    page.get_by_text("Protection").first.wait_for(timeout=240_000)
    page.wait_for_timeout(3_000)
    page.screenshot(path=folder / "home-assistant-device.png")
    page = browser.new_page(viewport={"width": 1100, "height": 960})
    page.goto(page_of_guard)
    page.wait_for_timeout(20_000)
    page.screenshot(path=folder / "guard-demo.png")


def main() -> None:
    """Start everything, wait until it has settled, and photograph it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    sys.path += [str(TESTS), str(TESTS / "home_assistant")]
    from counterparts import Mosquitto, until  # type: ignore[import-not-found]  # noqa: PLC0415

    from core import HomeAssistant  # type: ignore[import-not-found]  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "core").mkdir()
        broker = Mosquitto(folder)
        core = HomeAssistant(folder / "core", broker.port)
        write_demo(folder / "demo")
        changes = {"dashboard": DashboardTable(port=0), "home_assistant_discovery": BrokerTable(**broker.table)}
        guard = Guard(read_config(folder / "demo" / "guard.toml").model_copy(update=changes), live=True)
        thread = threading.Thread(target=guard.run)
        thread.start()
        try:
            until(lambda: core.state("sensor.meterveil_battery") not in {None, "unknown", "unavailable"}, 120)
            time.sleep(SETTLE_S)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                photograph(browser, core, guard.server.address() if guard.server else "", asked.pictures)
                browser.close()
        finally:
            guard.stop.set()
            thread.join(20)
            core.stop()
            broker.stop()


if __name__ == "__main__":
    main()
