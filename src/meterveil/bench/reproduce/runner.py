"""Runs a plan: wave after wave, never what is finished, and on after whatever died.

The files are the truth: a task is done when its result lies there whole, whoever made it. So an interrupt, a
killed process, a full disk or a lost node cost what was under way, and trainings not even that.
"""

from __future__ import annotations

import errno
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from meterveil.bench.reproduce.engines import Engine, LostWorkerError
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.spending import spending
from meterveil.bench.reproduce.task import Task, left, waves
from meterveil.errors import InputError

if TYPE_CHECKING:  # a worker that begins needs no planner
    from meterveil.bench.reproduce.plan import Plan

MOST_DEATHS = 2
"""Workers that may die in a row, nothing getting finished, before tasks have to run alone."""

_FEW = 4
"""Tasks that then do."""

_SHORT = "memory may be short: try with --workers 1"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WATCH_SECONDS = 1.0


class Outcome(NamedTuple):
    """What came of a task."""

    key: str
    error: str = ""
    is_full: bool = False  # the disk, so that nothing else can be kept either


@dataclass
class Listener:
    """Tell somebody how it goes; every method may be called from another thread."""

    on_start: Callable[[Sequence[Task]], object] = lambda tasks: None
    on_done: Callable[[Task], object] = lambda task: None
    on_death: Callable[[str, int], object] = lambda reason, left: None


@dataclass
class Summary:
    """Say what was done."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Title of a task -> why it failed."""
    skipped: int = 0
    """Tasks that needed a failed one."""


def run(plan: Plan, engine: Engine, listener: Listener | None = None) -> Summary:
    """Do whatever is left of a plan."""
    listener, place = listener or Listener(), plan.place
    waiting = left(plan.tasks, plan.cells, place)
    listener.on_start(waiting)
    summary, failed = Summary(), set[str]()
    for wave in waves(waiting):
        able = [task for task in wave if not failed & set(task.needs)]
        for task in wave:
            if task not in able:
                failed.add(task.key)
                summary.skipped += 1
        for task, outcome in _run_wave(able, place, engine, listener):
            if outcome.error:
                failed.add(task.key)
                summary.failed[task.title] = outcome.error
            else:
                summary.done += 1
    return summary


def _run_wave(
    tasks: Sequence[Task], place: Place, engine: Engine, listener: Listener
) -> Iterator[tuple[Task, Outcome]]:
    """Run tasks that need nothing of each other, again where their worker died.

    Whose fault a death was nobody knows. So after some in a row a few tasks run alone: what dies then has
    failed, and the others go on.
    """
    told, deaths, alone = _Told(tasks, place, listener), 0, 0
    while told.waiting:
        before, alone = len(told.waiting), max(alone - 1, 0)
        try:
            for outcome in engine.run(told.calls(1 if alone else None), told.look):
                if outcome.is_full:
                    what = outcome.error.partition(";")[0]
                    raise InputError(f"{what}; make room, and go on with the same command")
                yield told.finish(outcome), outcome
        except LostWorkerError as error:
            yield from ((told.finish(found), found) for found in told.finished())
            if alone and len(told.waiting) == before:
                fatal = Outcome(next(iter(told.waiting)), f"its worker died, {error}; {_SHORT}")
                yield told.finish(fatal), fatal
                alone = 0
                continue
            deaths = deaths + 1 if len(told.waiting) == before else 1
            if deaths == MOST_DEATHS:
                deaths, alone = 0, _FEW + 1
            listener.on_death(str(error), len(told.waiting))


class _Told:
    """Know which tasks of a wave are still to be done, and tell of each that is, once."""

    def __init__(self, tasks: Sequence[Task], place: Place, listener: Listener) -> None:
        self.waiting = {task.key: task for task in tasks}
        self._place, self._listener = place, listener
        self._told: set[str] = set()

    def calls(self, most: int | None) -> list[Callable[[], Outcome]]:
        return [partial(do, task, self._place, os.getpid()) for task in list(self.waiting.values())[:most]]

    def look(self) -> None:
        """Tell of what lies there finished though nobody has said so yet."""
        for task in list(self.waiting.values()):
            if task.is_finished(self._place):
                self._tell(task)

    def finished(self) -> list[Outcome]:
        return [Outcome(key) for key, task in self.waiting.items() if task.is_finished(self._place)]

    def finish(self, outcome: Outcome) -> Task:
        task = self.waiting.pop(outcome.key)
        if not outcome.error:
            self._tell(task)
        return task

    def _tell(self, task: Task) -> None:
        if task.key not in self._told:
            self._told.add(task.key)
            self._listener.on_done(task)


def do(task: Task, place: Place, parent: int) -> Outcome:
    """Run one task in whatever process this is; an error of one must not cost the others."""
    place.enter()
    _end_with(parent)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    try:
        with place.alone(task.key):
            if not task.is_finished(place):  # somebody else may have been faster
                with spending(place, task):
                    task.step.run(place, task.key)
    except InputError as error:
        words = str(error).replace("with --out", "with --results or METERVEIL_CACHE")
        return Outcome(task.key, words, _is_full(error))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {error} ({last.name}, line {last.lineno})"
        return Outcome(task.key, words, _is_full(error))
    return Outcome(task.key)


def _is_full(error: BaseException | None) -> bool:
    """Tell whether a full disk lies at the root of an error; not every library says so by number."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(os.strerror(number) in str(error) for number in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


@cache
def _end_with(parent: int) -> None:
    """Let this process end when the one that started it does: nobody waits for its work any more.

    A worker of Ray is nobody's child here; Ray ends it with its driver.
    """
    if os.getppid() == parent:
        Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)
