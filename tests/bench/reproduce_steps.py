"""Steps that take a moment and leave a file, so that what the runner does can be counted."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.task import Task
from meterveil.data import outputs
from meterveil.errors import InputError


@dataclass(frozen=True)
class Note:
    """Write a file, once another is there where that is asked; every beginning is written down beside it."""

    seconds: float = 1.0
    waits_for: str = ""
    size: int = 10
    fails: str = ""

    def is_finished(self, place, key):
        return (place.results / f"{key}.json").exists()

    def run(self, place, key):
        with (place.results / "begun.log").open("a") as log:
            log.write(f"{key} {os.getpid()}\n")
        while self.waits_for and not (place.results / self.waits_for).exists():
            time.sleep(0.02)
        if self.fails == "input":
            raise InputError(f"{key} is not to be had; give another")
        if self.fails == "death":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails == "bug":
            raise KeyError(key)
        outputs.write_text(place.results / f"{key}.json", json.dumps("x" * self.size))


def plan_of(folder: Path, **steps):
    """Make a plan: name=step, or name=(step, needed names...); all of them are wanted."""
    from meterveil.bench.reproduce.plan import Plan  # noqa: PLC0415  a worker needs none

    folder.mkdir(parents=True, exist_ok=True)
    found = Plan(Place(folder, folder / "cache"))
    for key, value in steps.items():
        step, *needs = value if isinstance(value, tuple) else (value,)
        found.tasks[key] = Task(key, f"task {key}", step, tuple(needs))
    found.cells.update(dict.fromkeys(steps))
    return found


def begun(folder: Path) -> list[str]:
    """Name every task that was begun, in order."""
    log = folder / "begun.log"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def workers(folder: Path) -> list[int]:
    """Name the processes that began a task."""
    return [int(line.split()[1]) for line in (folder / "begun.log").read_text().splitlines()]


def finished(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.json")}
