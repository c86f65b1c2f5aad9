"""What one guarded home costs the computer, and how many homes one core serves; `benchmarks/soak.py` records it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.defenders.bundle import load_bundle
from meterveil.live.controller import Controller, Home
from meterveil.live.demo_files import write_bundle
from meterveil.live.ports import Ports
from meterveil.live.simulated import ManualClock, SimulatedHouse


def homes_per_core(count: int, load_w: np.ndarray, folder: Path) -> float:
    """Return the share of a core that so many homes need at one tick a second."""
    bundle = load_bundle(write_bundle(folder / "fleet"))
    home = Home(bundle.policy, Battery(), bundle.library, PAPER_TARIFF, may_command=True)
    clock, controllers = ManualClock(), []
    for number in range(count):
        house = SimulatedHouse(np.roll(load_w, number * 977), clock)
        controllers.append(Controller(home, Ports(clock, house, house, house), np.random.default_rng(number)))
    seconds = 130
    began_s = time.process_time()
    for _ in range(seconds):
        clock.move(1.0)
        for controller in controllers:
            controller.tick()
    return (time.process_time() - began_s) / seconds


def one_home(wait_s: float = 30.0, watch_s: float = 60.0) -> tuple[float, float, float]:
    """Return memory (MB) and share of a core of the demo's guard process, and seconds until its page answers."""
    command = [sys.executable, "-m", "meterveil", "guard", "--demo", "--port", "0"]
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        page_s = time.monotonic() - began_s
        place = Path(f"/proc/{process.pid}")

        def used_s() -> float:
            return sum(map(int, (place / "stat").read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf(
                "SC_CLK_TCK"
            )

        time.sleep(wait_s)
        before_s = used_s()
        time.sleep(watch_s)
        share = (used_s() - before_s) / watch_s
        resident = next(line for line in (place / "status").read_text().splitlines() if line.startswith("VmRSS"))
        process.terminate()
    return int(resident.split()[1]) / 1024, share, page_s
