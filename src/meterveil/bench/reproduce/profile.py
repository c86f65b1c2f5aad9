"""Where the time of a reproduction goes: what its tasks took, and what those without a record will take.

A task belongs to the first scope that has a cell which needs it: what the paper prints, what stands beside it
under fixed attackers, and what only adaptive attackers ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from meterveil.bench.cards import Card
from meterveil.bench.evaluation.reported import claims
from meterveil.bench.reproduce.attacking import Adapt, Attack
from meterveil.bench.reproduce.measuring import Measure
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.plan import Plan
from meterveil.bench.reproduce.specs import Cell
from meterveil.bench.reproduce.spending import Spent, spent
from meterveil.bench.reproduce.task import Step, Task
from meterveil.bench.reproduce.training import Probe, Train
from meterveil.errors import InputError

TABLE = "reproduction_time"
CORES = 2
PAPER, BESIDE, ADAPTIVE = "paper", "beside", "adaptive"
SCOPES = {PAPER: "in the paper", BESIDE: "beside the paper", ADAPTIVE: "adaptive attackers"}
"""Scope -> what it is, in the order in which tasks are given to scopes."""

_DRAWN = ("lambda_sweep",)
"""Tables of which the paper has a picture and no figures."""


@dataclass(frozen=True)
class Share:
    """Hold what the tasks of one sort in one scope take; a mean is that of the sort in all scopes."""

    scope: str
    sort: str
    tasks: int
    recorded: tuple[Spent, ...]
    """Of those whose every attempt is known."""
    mean: Spent | None
    """None where not a single task of this sort has a record."""
    spread_seconds: float | None = None

    @property
    def measured_minutes(self) -> float:
        """Processor time of the tasks with a record."""
        return sum(one.cpu_seconds for one in self.recorded) / 60

    @property
    def minutes(self) -> float | None:
        """Processor time of all: what was measured, and the mean for every task without a record."""
        if self.mean is None:
            return None
        missing = self.tasks - len(self.recorded)
        return self.measured_minutes + missing * self.mean.cpu_seconds / 60


def profile(plan: Plan) -> list[Share]:
    """Sum up what the tasks of a plan take, by scope and sort."""
    records = _records(plan)
    if not any(records.values()):
        raise InputError(
            "no task of these cells has left a record of its time; run meterveil reproduce with them first"
        )
    groups: dict[tuple[str, str], list[str]] = {}
    for key, scope in _scopes(plan).items():
        groups.setdefault((scope, sort_of(plan.tasks[key].step)), []).append(key)
    return [
        _share(scope, sort, keys, records[sort])
        for (scope, sort), keys in sorted(groups.items(), key=lambda item: [*SCOPES].index(item[0][0]))
    ]


def foretell(plan: Plan) -> dict[str, float]:
    """Return seconds on the clock for every task: the mean of its sort, or what its step guesses."""
    records = _records(plan)
    means = {sort: _mean(found.values()).seconds for sort, found in records.items() if found}
    return {key: means.get(sort_of(task.step), task.step.seconds) for key, task in plan.tasks.items()}


def cards_of(shares: Sequence[Share], cells: Iterable[Cell]) -> Iterator[Card]:
    """Write the profile as cards: a row for each sort, and one for the sum of each scope."""
    asked = list(cells)
    blank = Card(
        table=TABLE,
        row="",
        column="",
        dataset="_".join(_named(cell.dataset for cell in asked)),
        measured=None,
        seeds=tuple(range(max(cell.seeds for cell in asked))),
        settings={"tables": _named(cell.table for cell in asked), "cells": len(asked), "cores": CORES},
    )
    for one in shares:
        row = replace(blank, row=f"{one.scope}, {one.sort}")
        yield from (replace(row, **columns) for columns in _columns(one))
    for scope, (minutes, missing) in totals(shares).items():
        note = f"without {', '.join(missing)}: no record" if missing else ""
        row = replace(blank, row=f"{scope}, all", note=note)
        yield replace(row, column="core_minutes", measured=minutes)
        yield replace(row, column="hours", measured=minutes / 60 / CORES)


def _columns(one: Share) -> Iterator[dict[str, Any]]:
    yield {"column": "tasks", "measured": one.tasks}
    yield {"column": "recorded", "measured": len(one.recorded)}
    if one.mean is None:
        yield {"column": "core_minutes", "note": "not measured: no task of this sort has a record"}
        return
    yield {"column": "cpu_seconds", "measured": one.mean.cpu_seconds, "spread": one.spread_seconds}
    yield {"column": "clock_seconds", "measured": one.mean.seconds}
    yield {"column": "measured_core_minutes", "measured": one.measured_minutes}
    missing = one.tasks - len(one.recorded)
    yield {"column": "core_minutes", "measured": one.minutes, "note": f"{missing} of {one.tasks} at the mean"}


def totals(shares: Sequence[Share]) -> dict[str, tuple[float, tuple[str, ...]]]:
    """Return for each scope the processor minutes, and the sorts that are not in them."""
    found = {}
    for scope in _named(one.scope for one in shares):
        own = [one for one in shares if one.scope == scope]
        missing = tuple(one.sort for one in own if one.minutes is None)
        found[scope] = (sum(one.minutes or 0.0 for one in own), missing)
    return found


def sort_of(step: Step) -> str:
    """Name what is expected to take equally long."""
    match step:
        case Probe():
            return f"probe: {step.kind}"
        case Train():
            return f"train: {step.training.method}, {step.training.preset}"
        case Attack():
            return f"attack: {step.name}"
        case Adapt():
            return f"adapt: {step.name}"
        case Measure():
            days = "many days" if len(step.trial.test.days) > 1 else "one day"
            return f"measure: {days}, {step.cell.threat}{', gap' if step.cell.row.against else ''}"
    return type(step).__name__.lower()


def scope_of(cell: Cell) -> str:
    """Tell what the paper has from what is measured beside it."""
    if cell.threat == ADAPTIVE:
        return ADAPTIVE
    is_printed = cell.table in _DRAWN or claims(cell.table, cell.dataset, cell.row.label)
    return PAPER if is_printed else BESIDE


def _scopes(plan: Plan) -> dict[str, str]:
    """Give every task to a scope, by key."""
    found: dict[str, str] = {}
    for scope in SCOPES:
        waiting = [key for key, cell in plan.cells.items() if scope_of(cell) == scope]
        while waiting:
            key = waiting.pop()
            if key not in found:
                found[key] = scope
                waiting += plan.tasks[key].needs
    return {key: found[key] for key in plan.tasks if key in found}


def _records(plan: Plan) -> dict[str, dict[str, Spent]]:
    """Read what finished tasks took, by sort and key; one with an unknown part has no record."""
    found: dict[str, dict[str, Spent]] = {}
    for key, task in plan.tasks.items():
        known = found.setdefault(sort_of(task.step), {})
        record = spent(plan.place, key)
        if record and not record.unknown and _did_it(task, plan.place):
            known[key] = record
    return found


def _did_it(task: Task, place: Place) -> bool:
    """Tell whether a task was done, and not only found done: a fit may come from another command's cache."""
    if not task.is_finished(place):
        return False
    return not isinstance(task.step, Adapt) or task.step.was_fitted(place, task.key)


def _share(scope: str, sort: str, keys: Sequence[str], records: Mapping[str, Spent]) -> Share:
    own = tuple(records[key] for key in keys if key in records)
    if not records:
        return Share(scope, sort, len(keys), own, None)
    spread = pstdev(one.cpu_seconds for one in records.values())
    return Share(scope, sort, len(keys), own, _mean(records.values()), spread)


def _mean(records: Iterable[Spent]) -> Spent:
    known = list(records)
    return Spent(fmean(one.seconds for one in known), fmean(one.cpu_seconds for one in known))


def _named(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
