"""What tasks take: processor time and time on the clock, kept beside their results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.task import Task
from meterveil.data import outputs


@contextmanager
def spending(place: Place, task: Task) -> Iterator[None]:
    """Write down what a task took, once it is finished; what earlier attempts took is not in it."""
    began, cpu_began = time.perf_counter(), time.process_time()
    yield
    spent = {
        "kind": task.kind,
        "title": task.title,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(time.process_time() - cpu_began, 2),
    }
    outputs.write_text(place.spent(task.key), json.dumps(spent) + "\n")
