"""What tasks take: processor time and time on the clock, kept beside their results.

The parts of a task that was stopped and begun again add up. An attempt counts as unknown from its beginning
until it ends by itself, by an error or by Ctrl-C, so that a killed one is never passed over in silence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.task import Task
from meterveil.data import outputs


@dataclass(frozen=True)
class Spent:
    """Say what the attempts at a task took together."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    attempts: int = 1
    unknown: int = 0
    """Attempts that were killed, or are still under way: what these took is not in the sums."""
    is_whole: bool = False
    """The last attempt ended by itself: another one, for another folder of results, begins from zero."""


@contextmanager
def spending(place: Place, task: Task) -> Iterator[None]:
    """Write down what this attempt at a task takes, beside what earlier ones took."""
    known = spent(place, task.key)
    earlier = Spent(attempts=0) if known is None or known.is_whole else known
    now = replace(earlier, attempts=earlier.attempts + 1)
    _write(place, task, replace(now, unknown=now.unknown + 1))
    began, cpu_began = time.perf_counter(), time.process_time()
    try:
        yield
        now = replace(now, is_whole=True)
    finally:
        seconds = round(earlier.seconds + time.perf_counter() - began, 2)
        cpu_seconds = round(earlier.cpu_seconds + time.process_time() - cpu_began, 2)
        _write(place, task, replace(now, seconds=seconds, cpu_seconds=cpu_seconds))


def spent(place: Place, key: str) -> Spent | None:
    """Read what a task took so far; None where nobody wrote it down."""
    try:
        document = json.loads(place.spent(key).read_text(encoding="utf-8"))
        return Spent(**{name: value for name, value in document.items() if name in Spent.__match_args__})
    except (OSError, ValueError, AttributeError):
        return None


def _write(place: Place, task: Task, found: Spent) -> None:
    document = {"kind": task.kind, "title": task.title, **asdict(found)}
    outputs.write_text(place.spent(task.key), json.dumps(document) + "\n")
