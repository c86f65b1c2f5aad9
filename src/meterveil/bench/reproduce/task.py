"""What the runner runs: small steps, each with a key, what it needs, and a way to see that it is finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from meterveil.bench.reproduce.place import Place


class Step(Protocol):
    """Do one thing, reading and writing only below the place's folders."""

    @property
    def seconds(self) -> float:
        """Roughly what it takes, to foretell the time left."""
        ...

    def is_finished(self, place: Place, key: str) -> bool:
        """Tell whether its result is there."""
        ...

    def run(self, place: Place, key: str) -> None:
        """Make the result appear whole, or go on where an earlier process was stopped."""
        ...


@dataclass(frozen=True)
class Task:
    """Hold a step under the hash of all that can change its result."""

    key: str
    title: str
    step: Step
    needs: tuple[str, ...] = ()
    """Keys of the tasks whose results it reads."""

    @property
    def kind(self) -> str:
        """Name what it does."""
        return type(self.step).__name__.lower()

    def is_finished(self, place: Place) -> bool:
        """Tell whether there is nothing left to do."""
        return self.step.is_finished(place, self.key)


def left(tasks: Mapping[str, Task], wanted: Iterable[str], place: Place) -> list[Task]:
    """List what is still to be done for the wanted tasks; what a finished one needed is not asked for."""
    found: dict[str, Task] = {}
    waiting = list(wanted)
    seen: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        if not tasks[key].is_finished(place):
            found[key] = tasks[key]
            waiting += tasks[key].needs
    return [task for key, task in tasks.items() if key in found]


def waves(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group tasks so that each needs only what earlier groups did; the long ones of a group come first."""
    depth: dict[str, int] = {}
    for task in tasks:  # a plan lists what is needed first
        depth[task.key] = 1 + max((depth[key] for key in task.needs if key in depth), default=-1)
    groups: list[list[Task]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for task in tasks:
        groups[depth[task.key]].append(task)
    return [sorted(group, key=lambda task: -task.step.seconds) for group in groups]
