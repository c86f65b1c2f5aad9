"""`meterveil guard`: run the live controller, set it up and check it."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from meterveil.cli.base import Verbs, check_installed
from meterveil.cli.tables import show_file, show_line, show_table
from meterveil.errors import InputError

NEEDED = ("paho", "pymodbus", "starlette", "uvicorn", "websockets")

Settings = Annotated[Path, typer.Option("--config", help="Settings file.")]

guard = Verbs("Run a defence live on a home battery; shadow mode unless armed.")
guard.info.no_args_is_help = False


@guard.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    config: Settings = Path("guard.toml"),
    live: Annotated[bool, typer.Option("--live", help="Command the battery; needs armed = true in the file.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Guard a simulated house; needs no settings.")] = False,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the dashboard.")] = None,
) -> None:
    """Watch the meter and decide; with --live command the battery."""
    if context.invoked_subcommand is not None:
        return
    check_installed("the guard", NEEDED, "live")
    if demo:
        with tempfile.TemporaryDirectory(prefix="meterveil-demo-") as folder:
            subprocess.run([sys.executable, "-m", "meterveil.live.demo_files", folder], check=True)  # noqa: S603
            _guard(Path(folder) / "guard.toml", live=True, port=port)
    else:
        _guard(config, live, port)


@guard.command("init")
def init(
    config: Settings = Path("guard.toml"),
    broker: Annotated[str, typer.Option(help="MQTT broker, HOST or HOST:PORT; default: look for one.")] = "",
    home_assistant: Annotated[
        str, typer.Option(help="Home Assistant, such as http://homeassistant.local:8123; default: look for one.")
    ] = "",
    token_file: Annotated[Path | None, typer.Option(help="File with a long-lived token of Home Assistant.")] = None,
) -> None:
    """Write a settings file to start from; looks for a broker and for likely entities, and connects to nothing else."""
    check_installed("the guard", NEEDED, "live")
    from meterveil.live.setup import Found, find_broker, find_entities, find_home_assistant, settings_text

    if config.exists():
        raise InputError(f"{config} exists; move it away or name another with --config")
    home_assistant = home_assistant or find_home_assistant()
    if token_file and not home_assistant:
        raise InputError("no Home Assistant answers for this token; name it with --home-assistant http://HOST:8123")
    entities = find_entities(home_assistant, token_file) if token_file else {}
    token_file = token_file.resolve() if token_file else None
    found = Found(find_broker(broker), home_assistant, token_file, entities)
    folder = config.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    bundle = str(folder / "defence")
    subprocess.run([sys.executable, "-m", "meterveil.live.demo_files", bundle, "--bundle"], check=True)  # noqa: S603
    config.touch(mode=0o600)
    config.write_text(settings_text(found), encoding="utf-8")
    for line in found.lines():
        show_line(line)
    show_file("settings", config)
    show_line("Edit meter and battery in it, then run: meterveil guard check")


@guard.command("check")
def check(
    config: Settings = Path("guard.toml"),
    step: Annotated[
        bool, typer.Option("--step", help="Also step the battery by 300 W up and down, after asking.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before the step.")] = False,
) -> None:
    """Check the settings and every connection, read-only; with --step also signs, dead time and response."""
    check_installed("the guard", NEEDED, "live")
    from meterveil.live.checkup import STEP_W, WAIT_S, look, step_battery, verdict
    from meterveil.live.config import home_of, read_config
    from meterveil.live.drivers import build_ports, close_ports
    from meterveil.live.simulated import SystemClock

    settings = read_config(config)
    home = home_of(settings, live=False)
    ports = build_ports(settings, SystemClock())
    show_line(f"Reading meter and battery, for {WAIT_S:.0f} s at most", "dim")
    try:
        found = look(ports, home)
        if step and all(part.ok for part in found):
            if not yes:
                typer.confirm(f"Step the battery by {STEP_W:.0f} W up and down for a minute?", abort=True)
            found += verdict([step_battery(ports, watts) for watts in (STEP_W, -STEP_W)])
    finally:
        close_ports(ports)
    show_table([("what", "state", "found"), *((part.what, "ok" if part.ok else "FAULT", part.text) for part in found)],
               text_columns=("state", "found"))  # fmt: skip
    if not all(part.ok for part in found):
        raise typer.Exit(1)
    show_line("Ready for shadow mode: meterveil guard" + ("" if step else "; test the signs with --step"))


@guard.command("export")
def export(
    out: Annotated[Path, typer.Option(help="Parquet file to write.")] = Path("minutes.parquet"),
    config: Settings = Path("guard.toml"),
) -> None:
    """Write all stored minutes to a Parquet file."""
    from meterveil.live.config import read_config
    from meterveil.live.guard import store_path
    from meterveil.live.store import export_parquet

    show_line(f"{export_parquet(store_path(read_config(config)), out):,} minutes")
    show_file("minutes", out)


@guard.command("snapshot")
def snapshot(
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path("snapshot.json"),
    config: Settings = Path("guard.toml"),
) -> None:
    """Write the states and events of the last two days for a bug report; it holds no secret."""
    import json

    from meterveil.live.config import read_config
    from meterveil.live.guard import store_path
    from meterveil.live.store import Store

    path = store_path(read_config(config))
    if not path.is_file():
        raise InputError(f"{path} does not exist; run meterveil guard first")
    store = Store(path)
    states: list[Any] = [{"utc_s": utc_s, **json.loads(text)} for utc_s, text in store.snapshots()]
    document = {"states": states, "events": store.events(1000)}
    store.close()
    out.write_text(json.dumps(document, indent=1), encoding="utf-8")
    show_file("snapshot", out)


def _guard(path: Path, live: bool, port: int | None) -> None:
    """Run until a signal stops it."""
    from meterveil.live.config import read_config
    from meterveil.live.guard import Guard

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = read_config(path)
    if port is not None and settings.dashboard is not None:
        page = settings.dashboard.model_copy(update={"port": port})
        settings = settings.model_copy(update={"dashboard": page})
    running = Guard(settings, live)
    running.stop_on_signals()
    mode = "live: it commands the battery" if live else "shadow mode: it commands nothing"
    address = running.server.address() if running.server else ""
    if running.server and not address:
        running.close()
        raise InputError("the dashboard's port is taken; choose another with --port, or 0 for any free one")
    typer.echo(f"guard of {settings.name}, {mode}" + (f"; dashboard: {address}" if address else ""))
    running.run()
