"""Runs tasks with joblib, on this machine or on a Ray cluster, and never twice.

A task is finished when its done-file exists. The parent process alone records measured cells. So an
interrupt, a killed process, a full disk or a lost node costs only unfinished tasks; the next run continues.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from threading import Thread
from typing import Any, NamedTuple, Protocol

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from meterveil.bench.reproduce.workspace import Workspace
from meterveil.data import outputs
from meterveil.errors import InputError

WORKERS = 2
MEASURE = "measure"
"""Kind of the task that measures a cell; those that it needs come before it."""
BLOCK = 12
"""Cells that are measured before anything is done for later ones."""
MOST_RESTARTS = 3
"""Times in a row that a worker may die without any task finishing."""

_CHUNK = 4
"""Tasks for each processor of a cluster between two reports: joblib's Ray backend returns all at once."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CONNECT_SECONDS, _LOSS_SECONDS, _WATCH_SECONDS = 5.0, 60.0, 1.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Task:
    """Step towards a cell, stored under the hash of everything that can change its result."""

    kind: str
    key: str
    title: str
    work: Callable[[Workspace, str], Mapping[str, Any]]
    """Takes the workspace and the key; the done-file holds what it returns."""
    needs: tuple[str, ...] = ()
    """Keys of the tasks whose results it reads."""

    def is_done(self, workspace: Workspace) -> bool:
        return workspace.done_file(self.kind, self.key).exists()


class Outcome(NamedTuple):
    """End of a task."""

    key: str
    error: str = ""
    is_disk_full: bool = False


class LostWorkerError(Exception):
    """Death of a worker or node with unfinished tasks."""


class Engine(Protocol):
    """Place where tasks run."""

    def run(self, calls: Sequence[Callable[[], Outcome]]) -> Iterator[Outcome]:
        """Yield the outcomes in any order; raise `LostWorkerError` if a worker died."""
        ...


def run(tasks: Sequence[Task], workspace: Workspace, engine: Engine) -> Iterator[tuple[Task, str]]:
    """Run tasks; yield each as it ends, with the reason where it failed.

    Needed tasks must come before those that need them. Tasks that need a failed one fail too.
    """
    failed: set[str] = set()
    for wave in (wave for block in blocks(tasks) for wave in waves(block)):
        for task in [task for task in wave if failed & set(task.needs)]:
            failed.add(task.key)
            yield task, "needs a task that failed"
        ready = {task.key: task for task in wave if task.key not in failed}
        for outcome in _outcomes(ready, workspace, engine):
            failed.update([outcome.key] if outcome.error else [])
            yield ready[outcome.key], outcome.error


def blocks(tasks: Sequence[Task], cells: int = BLOCK) -> Iterator[Sequence[Task]]:
    """Split tasks after every so many cells: the first ones do not wait for what only later ones need."""
    ends = [number + 1 for number, task in enumerate(tasks) if task.kind == MEASURE][cells - 1 :: cells]
    for begin, end in pairwise((0, *ends, len(tasks))):
        yield tasks[begin:end]


def waves(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group tasks so that each needs only earlier groups."""
    depth: dict[str, int] = {}
    groups: dict[int, list[Task]] = {}
    for task in tasks:
        depth[task.key] = 1 + max((depth[key] for key in task.needs if key in depth), default=-1)
        groups.setdefault(depth[task.key], []).append(task)
    return [groups[level] for level in sorted(groups)]


def _outcomes(tasks: Mapping[str, Task], workspace: Workspace, engine: Engine) -> Iterator[Outcome]:
    """Run independent tasks; start again what was lost with a worker, a limited number of times."""
    waiting, restarts = dict(tasks), 0
    while waiting:
        before = len(waiting)
        try:
            calls = [partial(do, task, workspace, os.getpid()) for task in waiting.values()]
            for outcome in engine.run(calls):
                if outcome.is_disk_full:
                    raise InputError(f"{outcome.error}; free some space and repeat the command to continue")
                del waiting[outcome.key]
                yield outcome
        except LostWorkerError as error:
            for task in [task for task in waiting.values() if task.is_done(workspace)]:
                del waiting[task.key]
                yield Outcome(task.key)
            restarts = 1 if len(waiting) < before else restarts + 1
            if restarts > MOST_RESTARTS:
                titles = ", ".join(task.title for task in list(waiting.values())[:WORKERS])
                raise InputError(
                    f"workers died {restarts} times in a row, at {titles}; memory may be short: use 1 worker"
                ) from error
            _LOG.warning("a worker died (%s); starting %d tasks again", error, len(waiting))


def do(task: Task, workspace: Workspace, parent: int) -> Outcome:
    """Run one task in a worker; an error of one task does not stop the others."""
    workspace.use_cache()
    _end_with(parent)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    try:
        with workspace.lock(task.key):
            if not task.is_done(workspace):  # another command may have been faster
                result = task.work(workspace, task.key)
                outputs.write_text(workspace.done_file(task.kind, task.key), json.dumps(result) + "\n")
    except Exception as error:
        return Outcome(task.key, _reason(error), _is_disk_full(error))
    return Outcome(task.key)


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error).partition("; choose another place")[0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"


def _is_disk_full(error: BaseException | None) -> bool:
    """Look for a full disk among the causes; some libraries report it in words only."""
    while error is not None:
        if getattr(error, "errno", None) in _DISK_FULL or any(os.strerror(n) in str(error) for n in _DISK_FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


@cache
def _end_with(parent: int) -> None:
    """End this worker when its parent process ends; Ray ends its own workers."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    if os.getppid() == parent:
        Thread(target=watch, daemon=True).start()


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the command, which ends its workers: each would print a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True)
class Local:
    """Processes of one thread each on this machine."""

    workers: int = WORKERS

    def run(self, calls: Sequence[Callable[[], Outcome]]) -> Iterator[Outcome]:
        """Yield each outcome as soon as it is known."""
        with parallel_config(backend="loky", inner_max_num_threads=1, initializer=_ignore_interrupts):
            parallel = Parallel(self.workers, return_as="generator_unordered", batch_size=1)
            outcomes = parallel(delayed(call)() for call in calls)
            try:
                for outcome in outcomes:  # noqa: UP028  the generator must be closed here
                    yield outcome
            except BrokenProcessPool as error:
                raise LostWorkerError(str(error).splitlines()[0]) from error
            finally:
                with warnings.catch_warnings(action="ignore"):  # unfinished work is dropped on purpose
                    outcomes.close()


@dataclass(frozen=True)
class Ray:
    """Ray cluster as a joblib backend; its nodes see the same folders under the same names."""

    address: str | None = None
    """Such as `10.0.0.1:6379` or `auto`; None starts Ray on this machine."""
    workers: int | None = None
    """None for all processors of the cluster."""

    def run(self, calls: Sequence[Callable[[], Outcome]]) -> Iterator[Outcome]:
        """Yield the outcomes in groups."""
        import ray  # noqa: PLC0415  optional
        from ray.util.joblib import register_ray  # noqa: PLC0415  optional

        self.connect()
        register_ray()  # type: ignore[no-untyped-call]
        processors = self._processors()
        for first in range(0, len(calls), _CHUNK * processors):
            chunk = calls[first : first + _CHUNK * processors]
            try:
                with parallel_config(backend="ray", ray_remote_args={"num_cpus": 1}):
                    yield from Parallel(processors, batch_size=1)(delayed(call)() for call in chunk)
            except ray.exceptions.RayError as error:
                self._wait_for_loss(processors)
                raise LostWorkerError(str(error).splitlines()[0]) from error
            except ValueError as error:
                if "Tried to start a pool with" not in str(error):  # fewer processors than a moment ago
                    raise
                raise LostWorkerError(str(error)) from error

    def connect(self) -> None:
        """Join the cluster once, or start one without usage statistics."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray  # noqa: PLC0415  optional

        if ray.is_initialized():
            return
        try:
            host, _, port = (self.address or "").rpartition(":")
            if host and port.isdigit() and "/" not in host:  # Ray itself tries for minutes
                socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            *_, reason = str(error).strip().splitlines() or [type(error).__name__]
            raise InputError(
                f"cannot connect to a Ray cluster at {self.address or 'auto'}: {reason}; "
                "start one with ray start --head"
            ) from error

    def _processors(self) -> int:
        import ray  # noqa: PLC0415  optional

        count = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        if not count:
            raise InputError(f"the Ray cluster at {self.address} has no processors; add a node that has some")
        return min(count, self.workers or count)

    def _wait_for_loss(self, processors: int) -> None:
        """Wait until Ray no longer counts a lost node, or joblib would wait for its processors forever."""
        end = time.monotonic() + _LOSS_SECONDS
        while self._processors() == processors and time.monotonic() < end:
            time.sleep(_WATCH_SECONDS)
