"""Time a new user's way to shadow mode in a real Home Assistant: `python -m experiments.going_live_trial`.

Does every step of docs/going-live.md in a fresh environment, as the page says it, and writes the times into the page.
The home is there before: Home Assistant on port 8123, a broker with a password on 1883, and an inverter as entities.
Needs Mosquitto and the Home Assistant that `.ci/home_assistant` installs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from experiments import study

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "live"
PAGE = Path("docs/going-live.md")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
EDITS = (
    ('"sensor.inverter_power"\npower_factor = 1 ', '"sensor.inverter_power"\npower_factor = -1 '),
    ("command_factor = 1 ", "command_factor = -1 "),
    ('mode_remote = ""', 'mode_remote = "remote"'),
    ('# username = "meterveil"', 'username = "veil"'),
    ("# password = {file", "password = {file"),
)
"""What has to be edited for this inverter and this broker: signs, names of its modes, user and password."""


def long_lived_token(core: Any) -> str:
    """Make a token as the profile page of Home Assistant does."""
    with connect(f"ws://127.0.0.1:{core.port}/api/websocket") as link:
        link.recv()
        link.send(json.dumps({"type": "auth", "access_token": core.tokens["access_token"]}))
        link.recv()
        ask = {"id": 1, "type": "auth/long_lived_access_token", "client_name": "meterveil", "lifespan": 365}
        link.send(json.dumps(ask))
        return str(json.loads(link.recv())["result"])


class Trial:
    """Steps with their times."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[list[str]] = []
        self.total_s = 0.0

    def step(self, words: str, do: Callable[[], Any]) -> None:
        """Do a step and note how long it took."""
        began_s = time.monotonic()
        do()
        passed_s = time.monotonic() - began_s
        self.total_s += passed_s
        self.rows.append([words, f"{passed_s:.0f} s"])
        print(f"{words}: {passed_s:.0f} s", flush=True)

    def run(self, *command: str) -> None:
        """Run a command of the page in the user's folder, with the programs of the new environment first."""
        path = f"{self.folder / 'env' / 'bin'}:{os.environ['PATH']}"
        subprocess.run(command, cwd=self.folder, env={**CLEAN, "PATH": path}, check=True)  # noqa: S603

    def secret(self, name: str, text: str) -> None:
        """Save a secret as `umask 077; cat > name` does."""
        (self.folder / name).touch(mode=0o600)
        (self.folder / name).write_text(text + "\n", encoding="utf-8")

    def edit(self) -> None:
        """Edit the settings."""
        place = self.folder / "guard.toml"
        text = place.read_text(encoding="utf-8")
        for old, new in EDITS:
            if text.count(old) != 1:
                raise RuntimeError(f"{old!r} is not in the settings once:\n{text}")
            text = text.replace(old, new)
        place.write_text(text, encoding="utf-8")

    def shadow(self, core: Any, until: Callable[..., Any]) -> None:
        """Start shadow mode and wait for the device in Home Assistant."""
        command = [str(self.folder / "env" / "bin" / "meterveil"), "guard"]
        with (self.folder / "out.log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=CLEAN)  # noqa: S603
        try:
            until(lambda: core.state("sensor.meterveil_battery") not in {None, "unknown", "unavailable"}, 120)
            until(lambda: core.state("select.meterveil_mode") == "shadow", 10)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            print((self.folder / "out.log").read_text(), flush=True)


def main() -> None:
    """Prepare the home, walk through the page, write the times."""
    sys.path += [str(TESTS), str(TESTS / "home_assistant")]
    import counterparts  # type: ignore[import-not-found]  # noqa: PLC0415
    from inverter_of_home_assistant import Inverter  # type: ignore[import-not-found]  # noqa: PLC0415

    import core as home_assistant  # type: ignore[import-not-found]  # noqa: PLC0415

    counterparts.free_port, home_assistant.free_port = lambda: 1883, lambda: 8123
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("broker", "core", "user"):
            (folder / part).mkdir()
        broker = counterparts.Mosquitto(folder / "broker")
        core = home_assistant.HomeAssistant(folder / "core", broker.port)
        inverter = Inverter(broker.port)
        inverter.state["power"] = 0  # idle, which Home Assistant is told once
        trial = Trial(folder / "user")
        try:
            counterparts.until(lambda: core.state("sensor.inverter_charge") == "55", 60)
            trial.step("`python -m venv env`", lambda: trial.run(sys.executable, "-m", "venv", "env"))
            trial.step("`pip install 'meterveil[live]'`", lambda: trial.run("pip", "install", f"{ROOT}[live]"))
            trial.step("token and password saved", lambda: trial.secret("token", long_lived_token(core)))
            trial.secret("mqtt-password", counterparts.PASSWORD)
            init = ("meterveil", "guard", "init", "--token-file", "token")
            trial.step("`meterveil guard init --token-file token`", lambda: trial.run(*init))
            trial.step(f"`guard.toml` edited, {len(EDITS)} lines", trial.edit)
            trial.step("`meterveil guard check`", lambda: trial.run("meterveil", "guard", "check"))
            shown = "`meterveil guard`, until Home Assistant shows the device in shadow mode"
            trial.step(shown, lambda: trial.shadow(core, counterparts.until))
        finally:
            inverter.close()
            core.stop()
            broker.stop()
    rows = [*trial.rows, ["together", f"{trial.total_s / 60:.1f} min"]]
    PAGE.write_text(study.put(PAGE.read_text("utf-8"), "trial", study.table(["step", "time"], rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
