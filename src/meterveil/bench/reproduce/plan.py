"""Plan of a reproduction: the tasks that cells need, and which cells are finished, outdated or missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from meterveil.bench import results
from meterveil.bench.evaluate import PRIOR
from meterveil.bench.reproduce import steps
from meterveil.bench.reproduce.experiments import HELD_OUT, PAPER, SYNTHETIC, Cell
from meterveil.bench.reproduce.runner import Engine, Task, run
from meterveil.bench.reproduce.steps import PlannedDefence, ProbeSpec, TrainingSpec
from meterveil.bench.reproduce.workspace import Workspace
from meterveil.bench.trial import Trial, evaluation_day_trial, protocol_trial, synthetic_trial
from meterveil.data.household import Household
from meterveil.data.protocols import PROTOCOLS, REDD_EVALUATION_DAYS, UKDALE_EVALUATION_DAYS
from meterveil.defenders.training_settings import ManagerSettings, Settings
from meterveil.errors import InputError

State = Literal["finished", "outdated", "missing"]

_FIT_SECONDS = {"fhmm": 40.0, "dae": 60.0, "seq2point": 90.0, "electricity": 150.0, "bert4nilm": 150.0}
"""Attacker -> rough duration of a fit; the others take a few seconds."""


@dataclass
class Plan:
    """Tasks, each once and after those that it needs, and the cells that they measure."""

    workspace: Workspace
    tasks: dict[str, Task] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    """Key of the task that measures it -> cell."""
    states: dict[Cell, State] = field(default_factory=dict)
    _trials: dict[tuple[str, int, str], Trial] = field(default_factory=dict)
    _fits: dict[tuple[str, int, str, str], str] = field(default_factory=dict)

    def unfinished(self) -> list[Task]:
        """List the tasks that are still to run; a task that only finished ones need is left out."""
        waiting = [key for key, cell in self.cells.items() if self.states[cell] != "finished"]
        open_keys: set[str] = set()
        while waiting:
            key = waiting.pop()
            if key not in open_keys:
                open_keys.add(key)
                needs = () if self.tasks[key].is_done(self.workspace) else self.tasks[key].needs
                waiting += [need for need in needs if not self.tasks[need].is_done(self.workspace)]
        return [task for key, task in self.tasks.items() if key in open_keys]

    def add(self, cell: Cell, known: Recorded) -> None:
        """Plan a cell; one that the data do not include is recorded as not measured."""
        trial = self._trial(cell)
        if isinstance(trial, str):
            work = partial(steps.not_measured, cell=cell, reason=trial)
            task = Task("measure", steps.not_measured_key(cell), cell.title, work)
            self._add_cell(cell, task, known, has_no_data=True)
            return
        labels = (cell.defence, cell.against) if cell.against else (cell.defence,)
        defences = tuple(
            PlannedDefence(label, cell.spec(label), cell.battery, self._trainings(cell, label))
            for label in labels
        )
        names = dict.fromkeys((*cell.attackers, PRIOR))
        fits = tuple(self._fit(cell, trial, name) for name in names)
        adapted = [key for defence in defences for key in self._adapted(cell, trial, defence)]
        trainings = dict.fromkeys(key for defence in defences for key in defence.trainings)
        work = partial(steps.measure, cell=cell, trial=trial, defences=defences)
        key = steps.cell_key(self.workspace, cell, trial, defences, fits)
        seconds = 10.0 + 0.5 * len(trial.test.days) * cell.seeds * len(defences)
        task = Task("measure", key, cell.title, work, (*trainings, *fits, *adapted), seconds)
        self._add_cell(cell, task, known)

    def _add_cell(self, cell: Cell, task: Task, known: Recorded, has_no_data: bool = False) -> None:
        self._task(task)
        self.cells[task.key] = cell
        rows = known.rows(cell)
        has_values = bool(rows["value"].notna().any())
        if task.key in known.runs or (has_no_data and has_values):
            self.states[cell] = "finished"
            return
        known.check_effort(cell, rows)
        self.states[cell] = "outdated" if has_values else "missing"

    def _trial(self, cell: Cell) -> Trial | str:
        """Return the trial of a cell, or why the data do not allow it."""
        place = (cell.dataset, cell.house, cell.days)
        if place not in self._trials:
            if not self.workspace.has_house(cell.dataset, cell.house):
                return f"house {cell.house} of {cell.dataset} is not among the data"
            household = self.workspace.household(cell.dataset, cell.house)
            try:
                self._trials[place] = trial_of(cell, household)
            except InputError as error:
                return str(error)
        return self._trials[place]

    def _trainings(self, cell: Cell, defence: str) -> tuple[str, ...]:
        spec = cell.spec(defence)
        if spec.training is None:
            return ()
        return tuple(self._training(cell, spec.training, spec.signatures, seed) for seed in range(cell.seeds))

    def _training(self, cell: Cell, settings: Settings, signatures: str, seed: int) -> str:
        home = PROTOCOLS[cell.dataset].house if cell.dataset in PROTOCOLS else cell.house
        probe = ""
        if isinstance(settings, ManagerSettings):
            fit = ProbeSpec(cell.dataset, home, settings.probe, seed, settings.probe_epochs)
            title = f"{fit.kind} probe of {cell.dataset}, seed {seed}"
            probe = self._task(Task("probe", fit.key(self.workspace), title, fit.fit, seconds=30.0))
        spec = TrainingSpec(cell.dataset, home, settings, signatures, cell.battery, seed, probe)
        title, seconds = f"{settings.method} on {cell.dataset}, seed {seed}", 10.0 if cell.is_short else 110.0
        needs = (probe,) if probe else ()
        return self._task(Task("train", spec.key(self.workspace), title, spec.train, needs, seconds))

    def _fit(self, cell: Cell, trial: Trial, name: str) -> str:
        place = (cell.dataset, cell.house, cell.days, name)
        if place not in self._fits:
            key, title = steps.fit_key(self.workspace, trial, name), f"{name} on {cell.dataset} {cell.house}"
            work, seconds = partial(steps.fit_attacker, trial=trial, name=name), _fit_seconds(name)
            self._fits[place] = self._task(Task("fit", key, title, work, seconds=seconds))
        return self._fits[place]

    def _adapted(self, cell: Cell, trial: Trial, defence: PlannedDefence) -> Iterable[str]:
        if cell.threat != "adaptive" or defence.spec.rule == "none":
            return
        for policy in range(len(defence.origins)):
            for name in cell.attackers:
                fit = self._fit(cell, trial, name)
                key = steps.adapt_key(self.workspace, fit, defence, policy, cell.copies)
                title, seconds = f"{name} against {defence.label} on {cell.dataset}", 3 * _fit_seconds(name)
                work = partial(
                    steps.adapt_attacker,
                    trial=trial,
                    defence=defence,
                    policy=policy,
                    name=name,
                    copies=cell.copies,
                )
                yield self._task(Task("adapt", key, title, work, defence.trainings, seconds))

    def _task(self, task: Task) -> str:
        self.tasks.setdefault(task.key, task)
        return task.key


def _fit_seconds(name: str) -> float:
    return _FIT_SECONDS.get(name, 3.0)


class Recorded:
    """Figures and runs in the results folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: Mapping[str, Any] = results.read_runs(folder)
        self.table = results.read(folder) if self.runs else pd.DataFrame(columns=list(results.COLUMNS))

    def rows(self, cell: Cell) -> pd.DataFrame:
        """Select the figures of a cell."""
        return results.where(self.table, **cell.columns, threat=cell.threat)

    def check_effort(self, cell: Cell, rows: pd.DataFrame) -> None:
        """Refuse to replace figures by ones with fewer seeds or attackers."""
        seeds = max(rows["seeds"], default=0)
        if seeds > cell.seeds:
            raise InputError(
                f"{self.folder} has {cell.title} with {seeds} seeds, and {cell.seeds} would replace them; "
                f"use another folder for results, or {seeds} seeds"
            )
        attackers = set(rows["attacker"]) - {"", "all", "strongest", "prior", "meter"}
        if attackers - set(cell.attackers):
            raise InputError(
                f"{self.folder} has {cell.title} with the attackers {', '.join(sorted(attackers))}, and "
                f"{', '.join(cell.attackers)} would replace them; use another folder for results"
            )


def plan(cells: Iterable[Cell], workspace: Workspace) -> Plan:
    """Plan cells, each once, in the order in which they are given."""
    workspace.use_cache()
    made, known = Plan(workspace), Recorded(workspace.results)
    for cell in dict.fromkeys(cells):
        made.add(cell, known)
    return made


def reproduce(made: Plan, engine: Engine) -> Iterator[tuple[Task, str]]:
    """Run what is unfinished and record each measured cell; yield tasks as `runner.run` does."""
    for task, error in run(made.unfinished(), made.workspace, engine):
        if task.key in made.cells and not error:
            record(made, task)
        yield task, error


def record(made: Plan, task: Task) -> None:
    """Write the figures of a measured cell to the results, in place of earlier ones."""
    cell, folder = made.cells[task.key], made.workspace.results
    done = json.loads(made.workspace.done_file(task.kind, task.key).read_text(encoding="utf-8"))
    earlier = set(Recorded(folder).rows(cell)["run"]) - {task.key}
    figures = [results.Figure(**figure) for figure in done["figures"]]
    results.write(folder, figures, [results.Run(**done["run"])], replaced=earlier)
    made.states[cell] = "finished"


def trial_of(cell: Cell, household: Household) -> Trial:
    """Return the days that the attackers of a cell learn from and read."""
    if cell.days not in (PAPER, HELD_OUT):
        days = (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS)
        named = {(str(day.dataset), day.house, str(day.day)): day for day in days}
        return evaluation_day_trial(named[cell.dataset, cell.house, cell.days], household)
    choice: Literal["paper", "many"] = "paper" if cell.days == PAPER else "many"
    if cell.dataset == SYNTHETIC:
        return synthetic_trial(household, choice)
    return protocol_trial(PROTOCOLS[cell.dataset], household, choice)
