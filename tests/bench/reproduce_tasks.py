"""Tasks that take a moment and write a log, so that what the runner does can be counted."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from meterveil.bench.reproduce.runner import Task
from meterveil.bench.reproduce.workspace import Workspace
from meterveil.errors import InputError


@dataclass(frozen=True)
class Note:
    """Work that can wait for a file, write a large done-file, or fail; every start is logged."""

    waits_for: str = ""
    size: int = 10
    fails: str = ""

    def __call__(self, workspace, key):
        with (workspace.results / "started.log").open("a") as log:
            log.write(f"{key} {os.getpid()}\n")
        while self.waits_for and not (workspace.results / self.waits_for).exists():
            time.sleep(0.02)
        if self.fails == "input":
            raise InputError(f"{key} cannot be read; give another")
        if self.fails == "death":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails == "bug":
            raise KeyError(key)
        return {"text": "x" * self.size}


def workspace_in(folder: Path) -> Workspace:
    folder.mkdir(parents=True, exist_ok=True)
    return Workspace(folder, folder / "cache")


def tasks_of(**works):
    """Make tasks: name=work, or name=(work, needed names...)."""
    tasks = []
    for key, value in works.items():
        work, *needs = value if isinstance(value, tuple) else (value,)
        tasks.append(Task("note", key, f"task {key}", work, tuple(needs)))
    return tasks


def unfinished(folder: Path, tasks):
    return [task for task in tasks if not task.is_done(workspace_in(folder))]


def started(folder: Path) -> list[str]:
    return [line.split()[0] for line in _log(folder)]


def workers(folder: Path) -> list[int]:
    return [int(line.split()[1]) for line in _log(folder)]


def finished(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "cache/reproduce/note").glob("*.json")}


def until(is_met, seconds=60):
    end = time.monotonic() + seconds
    while not is_met():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def _log(folder: Path) -> list[str]:
    log = folder / "started.log"
    return log.read_text().splitlines() if log.exists() else []
