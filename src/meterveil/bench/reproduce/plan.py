"""From cells to tasks: what has to be fitted and trained before each can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from meterveil.bench.reproduce.attacking import Adapt, Attack
from meterveil.bench.reproduce.days import home_of, house_of, trial_for
from meterveil.bench.reproduce.entrant import Entrant
from meterveil.bench.reproduce.kept import check_effort
from meterveil.bench.reproduce.measuring import Excuse, Measure
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.specs import MANAGER, Cell, DaysOf, Defence, EqualTo, RationOf, Training
from meterveil.bench.reproduce.task import Step, Task
from meterveil.bench.reproduce.training import Probe, Train
from meterveil.bench.strength import Trial
from meterveil.data.load import describe
from meterveil.errors import InputError

PRIOR = "prior"
"""The attacker that never looks: the floor of every cell."""


@dataclass
class Plan:
    """Collect tasks, each once, those that are needed before those that need them."""

    place: Place
    tasks: dict[str, Task] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    """Key of the task that measures it -> cell."""
    _trials: dict[tuple[str, DaysOf], Trial] = field(default_factory=dict)
    _fits: dict[tuple[str, DaysOf, str], str] = field(default_factory=dict)

    def add(self, cell: Cell) -> None:
        """Plan a cell; one whose data are not at hand will say so."""
        try:
            trial = self._trial(cell)
        except _NotAtHandError as error:
            excuse = Excuse(cell, str(error))
            self.cells[self._task(excuse.key(), cell.title, excuse)] = cell
            return
        check_effort(self.place, cell)
        entrants = tuple(
            Entrant(label, defence, cell.row.battery, self._trainings(cell, defence))
            for label, defence in cell.row.defences
        )
        fits = tuple(self._attack(cell, trial, name) for name in dict.fromkeys((*cell.attackers, PRIOR)))
        adapted = [key for entrant in entrants for key in self._adapted(cell, trial, entrant)]
        runs = dict.fromkeys(key for entrant in entrants for key in entrant.runs)
        step = Measure(cell, trial, entrants)
        key = step.key(self.place, fits)
        self.cells[self._task(key, cell.title, step, (*runs, *fits, *adapted))] = cell

    def _trial(self, cell: Cell) -> Trial:
        house, known = house_of(cell), (cell.dataset, cell.row.days)
        if known not in self._trials:
            if not self._has_house(cell.dataset, house):
                raise _NotAtHandError(f"house {house} of {cell.dataset} is not among the data at hand")
            home = self.place.household(cell.dataset, house)
            try:
                self._trials[known] = trial_for(cell, home)
            except InputError as error:
                raise _NotAtHandError(str(error)) from error
        return replace(self._trials[known], table=cell.table)

    def _has_house(self, dataset: str, house: int) -> bool:
        data = self.place.data
        if data is None or not (data / dataset).is_dir():
            return True  # whoever reads it says what is missing
        known = describe(data / dataset).houses
        return not known or house in known

    def _trainings(self, cell: Cell, defence: Defence) -> tuple[str, ...]:
        training = defence.training if isinstance(defence, EqualTo | RationOf) else defence
        if not isinstance(training, Training):
            return ()
        return tuple(self._training(cell, training, seed) for seed in range(cell.seeds))

    def _training(self, cell: Cell, training: Training, seed: int) -> str:
        where, title = (cell.dataset, home_of(cell)), f"{training.method} on {cell.dataset}, seed {seed}"
        probe = None
        if training.method == MANAGER:
            fit = Probe(*where, training.probe, seed, training.probe_epochs)
            probe = self._task(fit.key(self.place), f"{fit.kind} probe of {cell.dataset}, seed {seed}", fit)
        step = Train(*where, training, cell.row.battery, seed, probe)
        return self._task(step.key(self.place), title, step, (probe,) if probe else ())

    def _attack(self, cell: Cell, trial: Trial, name: str) -> str:
        """Plan a fit on bare days; its key, which hashes these days, is worked out once."""
        known = (cell.dataset, cell.row.days, name)
        if known not in self._fits:
            step = Attack.of(trial, name, self.place)
            title = f"{name} on {cell.dataset} house {trial.test.house}"
            self._fits[known] = self._task(step.folder.name, title, step)
        return self._fits[known]

    def _adapted(self, cell: Cell, trial: Trial, entrant: Entrant) -> list[str]:
        if cell.threat != "adaptive":
            return []
        found = []
        for policy in range(entrant.policies):
            needs = entrant.runs[policy : policy + 1] if entrant.training else entrant.runs
            for name in cell.attackers:
                step = Adapt(trial, entrant, policy, name, cell.copies)
                title = f"{name} against {entrant.label} on {cell.dataset}"
                key = step.key(self.place, self._attack(cell, trial, name))
                found.append(self._task(key, title, step, needs))
        return found

    def _task(self, key: str, title: str, step: Step, needs: Sequence[str] = ()) -> str:
        self.tasks.setdefault(key, Task(key, title, step, tuple(needs)))
        return key


class _NotAtHandError(Exception):
    """A cell whose data are missing."""


def plan(cells: Sequence[Cell], place: Place) -> Plan:
    """Plan cells in the order in which they are given."""
    place.enter()
    found = Plan(place)
    for cell in cells:
        found.add(cell)
    return found
