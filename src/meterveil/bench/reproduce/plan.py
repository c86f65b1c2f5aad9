"""Plan of a reproduction: the tasks that cells need, and which cells are finished, outdated or missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal

import pandas as pd

from meterveil.attackers.registry import INFORMED
from meterveil.bench import results
from meterveil.bench.evaluate import PRIOR
from meterveil.bench.reproduce import steps
from meterveil.bench.reproduce.cells import Cell
from meterveil.bench.reproduce.experiments import HELD_OUT, PAPER, SYNTHETIC
from meterveil.bench.reproduce.runner import MEASURE, Engine, Task, run
from meterveil.bench.reproduce.steps import PlannedDefence, ProbeSpec, TrainingSpec
from meterveil.bench.reproduce.workspace import Workspace
from meterveil.bench.trial import Trial, evaluation_day_trial, protocol_trial, synthetic_trial
from meterveil.data import outputs
from meterveil.data.household import Aggregate
from meterveil.data.protocols import (
    FURTHER_HOUSES,
    PROTOCOLS,
    REDD_EVALUATION_DAYS,
    UKDALE_EVALUATION_DAYS,
    UKDALE_HOUSE1,
)
from meterveil.defenders.training_settings import ManagerSettings, Settings
from meterveil.errors import InputError

State = Literal["finished", "outdated", "missing"]


@dataclass
class Plan:
    """Tasks, each once and after those that it needs, and the cells that they measure."""

    workspace: Workspace
    tasks: dict[str, Task] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    """Key of the task that measures it -> cell."""
    states: dict[Cell, State] = field(default_factory=dict)

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

    def add(self, cell: Cell) -> str:
        """Add the tasks of a cell; one that the data do not include is recorded as not measured."""
        trial = trial_of(self.workspace, cell.dataset, cell.house, cell.days, cell.threat, cell.aggregate)
        if isinstance(trial, str):
            work = partial(steps.not_measured, cell=cell, reason=trial)
            return self._task(Task(MEASURE, steps.not_measured_key(cell), cell.title, work))
        labels = (cell.defence, cell.against) if cell.against else (cell.defence,)
        defences = tuple(
            PlannedDefence(label, cell.spec(label), cell.battery, self._trainings(cell, label)) for label in labels
        )
        fits = tuple(self._fit(trial, name) for name in dict.fromkeys((*cell.attackers, PRIOR)))
        trainings = dict.fromkeys(key for defence in defences for key in defence.trainings)
        key = steps.cell_key(self.workspace, cell, trial, defences, fits)
        work = partial(steps.measure, cell=cell, trial=trial, defences=defences)
        return self._task(Task(MEASURE, key, cell.title, work, (*trainings, *fits)))

    def _trainings(self, cell: Cell, defence: str) -> tuple[str, ...]:
        spec = cell.spec(defence)
        if spec.training is None:
            return ()
        return tuple(self._training(cell, spec.training, spec.signatures, seed) for seed in range(cell.seeds))

    def _training(self, cell: Cell, settings: Settings, signatures: str, seed: int) -> str:
        dataset = cell.dataset if cell.dataset in (*PROTOCOLS, SYNTHETIC) else UKDALE_HOUSE1.dataset
        home = PROTOCOLS[dataset].house if dataset in PROTOCOLS else cell.house
        probe = ""
        if isinstance(settings, ManagerSettings):
            fit = ProbeSpec(dataset, home, settings.probe, seed, settings.probe_epochs, cell.aggregate)
            title = f"{fit.kind} probe of {dataset}, seed {seed}"
            probe = self._task(Task("probe", fit.key(self.workspace), title, fit.fit))
        spec = TrainingSpec(dataset, home, settings, signatures, cell.battery, seed, probe, cell.aggregate)
        title, needs = f"{settings.method} on {dataset}, seed {seed}", (probe,) if probe else ()
        return self._task(Task("train", spec.key(self.workspace), title, spec.train, needs))

    def _fit(self, trial: Trial, name: str) -> str:
        title = f"{name} on {trial.test.dataset} {trial.test.house}"
        work = partial(steps.fit_attacker, trial=trial, name=name)
        return self._task(Task("fit", steps.fit_key(self.workspace, trial, name), title, work))

    def _task(self, task: Task) -> str:
        self.tasks.setdefault(task.key, task)
        return task.key


def plan(cells: Iterable[Cell], workspace: Workspace) -> Plan:
    """Plan cells, each once, in the order in which they are given."""
    workspace.use_cache()
    made = Plan(workspace)
    folder = workspace.results
    with outputs.locked(folder) if folder.exists() else nullcontext():  # a plan creates no folder
        runs, table = results.read_runs(folder), _recorded(folder)
    for cell in dict.fromkeys(cells):
        key = made.add(cell)
        made.cells[key] = cell
        rows = _rows_of(table, cell)
        has_values = bool(rows["value"].notna().any())
        has_data = isinstance(
            trial_of(workspace, cell.dataset, cell.house, cell.days, cell.threat, cell.aggregate), Trial
        )
        if key in runs or (has_values and not has_data):
            made.states[cell] = "finished"
        else:
            made.states[cell] = "outdated" if has_values else "missing"
            _check_effort(folder, cell, rows)
    return made


def reproduce(made: Plan, engine: Engine) -> Iterator[tuple[Task, str]]:
    """Run what is unfinished and record each measured cell; yield tasks as `runner.run` does."""
    for task, error in run(made.unfinished(), made.workspace, engine):
        if task.key in made.cells and not error:
            record(made, task)
        yield task, error


def record(made: Plan, task: Task) -> None:
    """Write the figures of a measured cell to the results, in place of earlier ones.

    Figures that need no attacker are left to the cell that has recorded them, which may have more seeds.
    """
    cell, folder = made.cells[task.key], made.workspace.results
    done = json.loads(made.workspace.done_file(task.kind, task.key).read_text(encoding="utf-8"))
    figures = [results.Figure(**figure) for figure in done["figures"]]
    with outputs.locked(folder):
        recorded = _recorded(folder)
        earlier = set(_rows_of(recorded, cell)["run"]) - {task.key}
        if cell.threat == "adaptive" and set(results.where(recorded, **cell.columns, threat="")["run"]) - earlier:
            figures = [figure for figure in figures if figure.threat]
        results.write_locked(folder, figures, [results.Run(**done["run"])], replaced=earlier)
    made.states[cell] = "finished"


@cache
def trial_of(
    workspace: Workspace, dataset: str, house: int, days: str, threat: str = "fixed", aggregate: Aggregate = "mains"
) -> Trial | str:
    """Return the days that attackers learn from and read, or why the data do not allow it.

    On the paper's day adaptive attackers also learn the appliances of the held-out days: both share a fit.
    """
    if not workspace.has_house(dataset, house):
        return f"house {house} of {dataset} is not among the data"
    household = workspace.household(dataset, house, aggregate)
    try:
        if days not in (PAPER, HELD_OUT):
            every = (*UKDALE_EVALUATION_DAYS, *REDD_EVALUATION_DAYS)
            named = {(str(row.dataset), row.house, str(row.day)): row for row in every}
            return evaluation_day_trial(named[dataset, house, days], household)
        choice: Literal["paper", "many"] = "paper" if days == PAPER else "many"
        if dataset == SYNTHETIC:
            return synthetic_trial(household, choice)
        protocol = replace(FURTHER_HOUSES.get((dataset, house)) or PROTOCOLS[dataset], aggregate=aggregate)
        trial = protocol_trial(protocol, household, choice)
        return replace(trial, also_learned=protocol.many_day_targets) if threat == "adaptive" else trial
    except InputError as error:
        return str(error)


def _recorded(folder: Path) -> pd.DataFrame:
    return results.read(folder) if results.read_runs(folder) else results.to_table([])


def _rows_of(table: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    return results.where(table, **cell.columns, threat=cell.threat)


def _check_effort(folder: Path, cell: Cell, rows: pd.DataFrame) -> None:
    """Refuse to replace the figures of a cell by ones with fewer seeds or attackers; an informed one is enough."""
    attackers = set(rows["attacker"]) - {"", "all", "strongest", "prior", "meter"}
    seeds = max(rows["seeds"], default=0)
    is_stronger = not set(INFORMED).isdisjoint(cell.attackers)
    if seeds > cell.seeds or (attackers - set(cell.attackers) and not is_stronger):
        raise InputError(
            f"{folder} has {cell.title} with {seeds} seeds and the attackers {', '.join(sorted(attackers))}; "
            f"{cell.seeds} seeds and {', '.join(cell.attackers)} would replace them; use another folder for "
            "results"
        )
