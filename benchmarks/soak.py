"""Soak of the live controller: simulated days with every fault that a home has seen, and what one home costs.

`python benchmarks/soak.py --days 30` writes its figures to latest.json. Time is simulated; store and memory are real.
A killed process is a controller that is dropped at any instant, with its store, and rebuilt from what the disk has;
tests/live/test_guard.py and test_store.py kill real processes. Limits are checked on the simulated house itself, second
by second, not on what the controller believes.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.defenders.bundle import load_bundle
from meterveil.live import health
from meterveil.live.controller import Controller, Home
from meterveil.live.demo_files import write_bundle
from meterveil.live.drivers.broker import number_in
from meterveil.live.ports import PortError, Ports
from meterveil.live.simulated import ManualClock, Plant, SimulatedHouse
from meterveil.live.store import Store

SPRING = datetime(2024, 3, 29, tzinfo=UTC).timestamp()
AUTUMN = datetime(2024, 10, 25, tzinfo=UTC).timestamp()
"""Starts of the two halves: the clock changes two days later in each."""
MOST_TICKS_BACK = 2
BATTERY = Battery(budget_kwh=8.0)
MOST_W = 5000.0
"""Power of the simulated inverter, which is more than the battery's limit."""
STEP_BACK_S = 600
EXPORTS_W, LATE_S = 50.0, 10
"""No battery stops at once: dead time and ramp after a large appliance has switched off or control was taken over."""
LONDON = ZoneInfo("Europe/London")


@dataclass
class Fault:
    """One kind of trouble: how it begins, how long it lasts, and its name in the log."""

    begin: Callable[[Soak], None]
    seconds: int
    named: str
    end: Callable[[Soak], None] = lambda soak: soak.ports.heal()


class Wires:
    """Ports of the simulated house with faults in between."""

    def __init__(self, house: SimulatedHouse) -> None:
        self.house = house
        self.heal()
        self._before: Any = None

    def heal(self) -> None:
        """Remove every fault."""
        self.on_meter: Callable[[Any], Any] = lambda reading: reading
        self.on_battery: Callable[[Any], Any] = lambda reading: reading

    def read_meter(self) -> Any:
        return self.on_meter(self.house.read_meter())

    def read_battery(self) -> Any:
        return self.on_battery(self.house.read_battery())

    def command_battery(self, power_w: float | None) -> None:
        self.house.command_battery(power_w)


def _fails(_: Any) -> Any:
    raise PortError("lost")


def _lost(soak: Soak) -> None:
    soak.ports.on_meter = soak.ports.on_battery = _fails


def _meter(change: Callable[[Any, np.random.Generator], Any]) -> Callable[[Soak], None]:
    def begin(soak: Soak) -> None:
        soak.ports.on_meter = lambda reading: change(reading, soak.rng)

    return begin


def _jump(seconds: float) -> Callable[[Soak], None]:
    def begin(soak: Soak) -> None:
        soak.clock.utc_s += seconds

    return begin


def _drift(soc: float) -> Callable[[Soak], None]:
    def begin(soak: Soak) -> None:
        soak.house.soc = soc

    return begin


def _stuck(soak: Soak) -> None:
    """Let the inverter take commands and stand still, while the house needs the battery."""
    soak.house.most_w = 0.0
    soak.house.load_w = soak.load_w + 2500.0


def _loose(soak: Soak) -> None:
    soak.house.most_w = MOST_W
    soak.house.load_w = soak.load_w


def _second_writer(soak: Soak) -> None:
    told_w = -3333.0 if soak.controller.status.command_w >= 0.0 else 3333.0
    soak.ports.on_battery = lambda reading: reading._replace(setpoint_w=told_w)


def _full_disk(soak: Soak) -> None:
    def full() -> Any:
        raise sqlite3.OperationalError("database or disk is full")

    vars(soak.store)["_connect"] = full


def _space(soak: Soak) -> None:
    """Wait until the writer has met the full disk, which takes real time; the guard names what it says."""
    end_s = time.monotonic() + 60
    while not soak.store.failure and time.monotonic() < end_s:
        time.sleep(0.01)
    soak.note(health.STORE_FAILED if "full" in soak.store.failure else "store_ok")
    vars(soak.store).pop("_connect", None)


def _fuzzed(reading: Any, rng: np.random.Generator) -> Any:
    """Replace the power by what a hostile broker sends; a number of it may be believable, most are not."""
    payload = rng.bytes(int(rng.integers(0, 12))) if rng.random() < 0.7 else rng.choice(HOSTILE)
    return reading._replace(power_w=number_in(payload, ""))


HOSTILE = [b"nan", b"1e999", b"-1e9", b"[" * 500, b"{}", b"true", b'"x"']
FAULTS = {
    "broker restart": Fault(_lost, 30, health.METER_FAILED),
    "meter dropout": Fault(_meter(lambda reading, rng: _fails(reading)), 90, health.METER_FAILED),
    "NaN": Fault(_meter(lambda reading, rng: reading._replace(power_w=float("nan"))), 5, health.METER_ABSURD),
    "hostile numbers": Fault(
        _meter(lambda reading, rng: reading._replace(power_w=float(rng.choice([1e12, -1e300, np.inf, np.nan])))),
        20,
        health.METER_ABSURD,
    ),
    "hostile broker": Fault(_meter(_fuzzed), 20, health.METER_ABSURD),
    "grid lost": Fault(
        _meter(lambda reading, rng: reading._replace(power_w=0.0, frequency_hz=52.5)), 30, health.GRID_LOST
    ),
    "duplicates, out of order": Fault(
        _meter(lambda reading, rng: reading._replace(at_s=reading.at_s - int(rng.integers(0, 4)))),
        120,
        health.OUT_OF_ORDER,
    ),
    "clock ahead": Fault(_jump(3600.0), 1, health.CLOCK_JUMPED),
    "clock back": Fault(_jump(-3600.0), 1, health.CLOCK_JUMPED),
    "SoC below its range": Fault(_drift(0.05), 1, health.SOC_LOW),
    "SoC above its range": Fault(_drift(0.96), 1, health.SOC_HIGH),
    "device ignores commands": Fault(_stuck, 120, health.IGNORES_COMMANDS, _loose),
    "second writer": Fault(_second_writer, 60, health.SECOND_WRITER),
    "full disk": Fault(_full_disk, 240, health.STORE_FAILED, _space),
    "killed": Fault(lambda soak: soak.restart(), 1, health.NOT_HANDED_BACK),
}
STEPS_BACK = {"device ignores commands", "second writer"}


@dataclass
class Soak:
    """A home, its faults, and what went wrong."""

    folder: Path
    load_w: np.ndarray
    seed: int = 0
    broken: list[str] = field(default_factory=list)
    injected: int = 0
    unnamed: list[str] = field(default_factory=list)
    ticks_back: list[int] = field(default_factory=list)
    moved_kwh: dict[date, float] = field(default_factory=dict)
    exporting_s: int = 0
    outward_s: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.clock = ManualClock(utc_s=SPRING)
        self.house = SimulatedHouse(self.load_w, self.clock, Plant(), most_w=MOST_W)
        self.house.on_second = self._watch
        self.ports = Wires(self.house)
        bundle = load_bundle(write_bundle(self.folder / "defence"))
        settings = health.HealthSettings(step_back_s=STEP_BACK_S)
        self.home = Home(
            bundle.policy, BATTERY, bundle.library, PAPER_TARIFF, "Europe/London", may_command=True, health=settings
        )
        self.store = Store(self.folder / "home.sqlite")
        self.names: list[str] = []
        self.expected = 0
        self.last_minute = -1
        self.restart()

    def note(self, name: str) -> None:
        """Remember that something was named."""
        self.names.append(name)

    def restart(self) -> None:
        """Drop controller and store without closing them, and begin with what the disk holds.

        In simulated time the disk is late; a real minute is on it long before the next one.
        """
        self._drain()
        self.store = Store(self.store.path)
        ports = Ports(self.clock, self.ports, self.ports, self.ports)
        on_event = lambda event: self.note(event.name)  # noqa: E731
        self.controller = Controller(self.home, ports, np.random.default_rng(self.seed), self._minute, on_event)
        self.controller.restore(self.store.memory())

    def run(self, days: float, every_s: int, most_s: float = float("inf")) -> None:
        """Let days pass with a random fault about every `every_s` seconds, for `most_s` of real time at most."""
        names = list(FAULTS)
        self._pass(300)
        end_s, late_s = self.clock.monotonic_s + 86_400 * days, time.monotonic() + most_s
        turn = 0
        while self.clock.monotonic_s < end_s and time.monotonic() < late_s:
            name = names[turn % len(names)]
            turn += 1
            self._inject(name, FAULTS[name])
            self._pass(int(every_s * self.rng.uniform(0.5, 1.5)))
            if turn % 50 == 0:
                self._drain()
        self._drain()

    def _inject(self, name: str, fault: Fault) -> None:
        self.injected += 1
        before = len(self.names)
        fault.begin(self)
        self._pass(fault.seconds)
        fault.end(self)
        if fault.named not in self.names[before:]:
            self.unnamed.append(f"{name} at {self.clock.monotonic_s:.0f} s")
        if name in STEPS_BACK:
            self._pass(STEP_BACK_S)
        back = 0
        while not self.controller.status.in_control and back < 1000:
            self._pass(1)
            back += 1
        self.ticks_back.append(back)

    def _pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.move(1.0)
            self.controller.tick()

    def _drain(self) -> None:
        """Wait for the disk, which is slower than simulated time."""
        assert self.store.flush(60.0)

    def _minute(self, minute: Any) -> None:
        self.expected += minute.known_s
        self.store.put_minute(minute, self.controller.memory())

    def _watch(self, load_w: float, power_w: float) -> None:
        """Check the physical limits second by second while the battery is not in its own mode.

        In its own mode it knows none of our limits and may leave the range; we must never move it further out.
        """
        if not self.house.remote:
            self.exporting_s = self.outward_s = 0
            return
        soc = self.house.soc
        day = datetime.fromtimestamp(self.clock.utc_s, LONDON).date()
        before_kwh = self.moved_kwh.get(day, 0.0)
        self.moved_kwh[day] = before_kwh + abs(power_w) / 3.6e6
        self.exporting_s = self.exporting_s + 1 if load_w + power_w < -EXPORTS_W else 0
        too_low, too_high = soc < BATTERY.soc_min - 0.001, soc > BATTERY.soc_max + 0.001
        is_outward = (too_low and power_w < 0.0) or (too_high and power_w > 0.0)
        self.outward_s = self.outward_s + 1 if is_outward else 0
        if self.exporting_s > LATE_S:
            self.broken.append(f"export of {-load_w - power_w:.0f} W for {self.exporting_s} s")
        if self.outward_s > LATE_S:
            self.broken.append(f"SoC {soc:.4f} at {power_w:.0f} W")
        if abs(power_w) > 4000.0 + 1.0:
            self.broken.append(f"power {power_w:.0f} W")
        if before_kwh > BATTERY.budget_kwh and power_w != 0.0:
            self.broken.append(f"budget {before_kwh:.4f} kWh, {power_w:.0f} W more")

    def stored_seconds(self) -> float:
        """Return the seconds of all stored minutes, and check that the sums of days agree."""
        self._drain()
        self.store.close()
        with sqlite3.connect(self.store.path) as database:
            minutes_s, days_s = (
                database.execute(f"SELECT coalesce(sum(known_s), 0) FROM {table}").fetchone()[0]
                for table in ("minutes", "days")
            )
        assert abs(minutes_s - days_s) < 1e-3
        return float(minutes_s)


def soak(days: float, every_s: int, folder: Path, load_w: np.ndarray, most_s: float = float("inf")) -> Soak:
    """Run half of the days in spring and half in autumn, so that both clock changes are in."""
    run = Soak(folder, load_w)
    run.run(days / 2, every_s, most_s / 2)
    run.clock.utc_s = AUTUMN
    run.run(days / 2, every_s, most_s / 2)
    return run


def faults(
    asked: argparse.Namespace, folder: Path, load_w: np.ndarray
) -> tuple[Soak, list[tuple[str, float, str, str]]]:
    """Let the days pass; return what happened and its figures."""
    began_s, cpu_s = time.monotonic(), time.process_time()
    run = soak(asked.days, asked.every, folder, load_w, 60.0 * asked.minutes)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    passed_s = run.clock.monotonic_s
    return run, [
        ("days", passed_s / 86_400, "d", "30"),
        ("faults injected", run.injected, "", ""),
        ("kinds of faults", min(run.injected, len(FAULTS)), "", ""),
        ("limits exceeded", len(run.broken), "", "0"),
        ("faults without a name in the log", len(run.unnamed), "", "0"),
        ("recorded seconds lost or counted twice", run.expected - run.stored_seconds(), "s", "0"),
        ("ticks until back in control, at most", max(run.ticks_back), "", f"{MOST_TICKS_BACK}"),
        ("simulated time over wall time", passed_s / wall_s, "x", "> 1000"),
        ("simulated time over processor time", passed_s / cpu_s, "x", ""),
    ]


def main() -> None:
    from _record import record  # noqa: PLC0415  beside this file
    from home_cost import homes_per_core, one_home  # noqa: PLC0415
    from meterveil.data import synthetic  # noqa: PLC0415

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--every", type=int, default=2400, help="seconds between two faults")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="real time after which it ends early")
    parser.add_argument("--only", choices=("soak", "cost"), help="measure the faults only, or what a home costs only")
    asked = parser.parse_args()
    load_w = synthetic.load_by_second(np.random.default_rng(0), 7, timezone="UTC")
    figures: list[tuple[str, float, str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        if asked.only != "cost":
            run, figures = faults(asked, Path(name), load_w)
            for problem in [*dict.fromkeys(run.broken)][:5] + run.unnamed[:5]:
                print("problem:", problem)
        if asked.only != "soak":
            memory_mb, idle_share, page_s = one_home()
            figures += [
                ("share of a core for 200 homes", homes_per_core(200, load_w, Path(name)), "", "< 1"),
                ("memory of one home", memory_mb, "MB", "< 80"),
                ("share of a core of one home", idle_share, "", "< 0.01"),
                ("seconds until the demo's page answers", page_s, "s", "< 5"),
            ]
    for words, value, unit, target in figures:
        record(f"soak: {words}", float(value), unit, target)
        print(f"{words}: {value:g} {unit}  (target {target or '-'})")


if __name__ == "__main__":
    main()
