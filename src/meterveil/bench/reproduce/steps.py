"""Steps of a reproduction: fit a probe, train a defence, fit attackers, measure a cell.

Each step is a function that takes the workspace and its own key first and returns what its done-file holds.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache, partial
from typing import Any

import numpy as np

from meterveil.attackers.fitting import Job, fit
from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench.cases import PAPER_METRICS
from meterveil.bench.evaluate import VERSION, Result, Spec, Undefended, evaluate, measure_undefended
from meterveil.bench.figures import HEADLINES, figures_of, gap_figures, run_of
from meterveil.bench.reproduce.cells import Cell
from meterveil.bench.reproduce.experiments import PAPER, RANDOM_EQUAL, RATIONED, SYNTHETIC, Changes, DefenceSpec
from meterveil.bench.reproduce.workspace import Workspace
from meterveil.bench.results import Figure, Run, current_commit
from meterveil.bench.trial import Trial, synthetic_trial
from meterveil.core.battery import Battery
from meterveil.data import outputs
from meterveil.data.cache import key_of, library_versions
from meterveil.data.household import Aggregate, Household
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.simulation import Setup
from meterveil.defenders import version_of
from meterveil.defenders.defence import Defence, equal_kwh, find_defence, trained_defence
from meterveil.defenders.random import RandomEqual
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.run_folder import FINISHED, format_of, own_randomness, read_document
from meterveil.defenders.training_settings import MANAGER, ManagerSettings, Settings, VeilSettings, deciding

_LIBRARIES = ("numpy", "torch", "stable_baselines3", "scipy")
_PROBE_FILES = ("probe.safetensors", "probe.json")


@dataclass(frozen=True)
class ProbeSpec:
    """Probe of a household; all trainings with this kind and seed share it."""

    dataset: str
    house: int
    kind: str
    seed: int
    epochs: int
    aggregate: Aggregate = "mains"

    def key(self, workspace: Workspace) -> str:
        """Hash everything that can change the probe."""
        days = training_days(workspace, self.dataset, self.house)
        data = workspace.digest(self.dataset, self.house, (), self.aggregate)
        libraries = library_versions(*_LIBRARIES[:2])
        asked = {name: value for name, value in asdict(self).items() if name != "aggregate"}  # the data hold it
        return key_of("probe", asked, list(map(str, days)), data, version_of(MANAGER), libraries)

    def fit(self, workspace: Workspace, key: str) -> dict[str, Any]:
        """Fit it as a training would that has no fitted probe."""
        from meterveil.defenders.manager import probes  # noqa: PLC0415  torch

        began, home = time.perf_counter(), workspace.household(self.dataset, self.house, self.aggregate)
        days = training_days(workspace, self.dataset, self.house)
        with own_randomness():
            recipe = probes.Recipe(epochs=self.epochs)
            fitted = probes.train_probe(self.kind, home, days, self.seed, recipe)
        probes.save(fitted, workspace.folder("probe", key))
        return {"seconds": time.perf_counter() - began}


@dataclass(frozen=True)
class TrainingSpec:
    """Training of a defence with one seed."""

    dataset: str
    house: int
    settings: Settings
    signatures: str
    battery: Changes
    seed: int
    probe: str = ""
    """Key of the probe; empty for a method that has none."""
    aggregate: Aggregate = "mains"

    def key(self, workspace: Workspace) -> str:
        """Hash everything that can change what is learned."""
        days = training_days(workspace, self.dataset, self.house)
        return key_of(
            "train",
            [self.settings.method, version_of(self.settings.method), deciding(self.settings)],
            [self.battery, self.seed, self.probe, list(map(str, days))],
            workspace.digest(self.dataset, self.house, (), self.aggregate),
            workspace.signatures(self.signatures).digest(),
            library_versions(*_LIBRARIES[:3]),
        )

    def train(self, workspace: Workspace, key: str) -> dict[str, Any]:
        """Train, or continue an interrupted training."""
        from meterveil.defenders.ddql import ddql_training  # noqa: PLC0415  torch
        from meterveil.defenders.manager import manager_training  # noqa: PLC0415  torch
        from meterveil.defenders.veil import manager_learning  # noqa: PLC0415  torch

        folder = workspace.folder("train", key)
        if format_of(folder) and read_document(folder)["status"] == FINISHED:
            return {}
        home = workspace.household(self.dataset, self.house, self.aggregate)
        days = training_days(workspace, self.dataset, self.house)
        setup = Setup(workspace.signatures(self.signatures), Battery(**dict(self.battery)), seed=self.seed)
        notes: dict[str, Any] = {"commit": current_commit()}
        if isinstance(self.settings, ManagerSettings):
            source = workspace.folder("probe", self.probe)
            files = {folder / name: partial(shutil.copyfile, source / name) for name in _PROBE_FILES}
            outputs.write_all(files)
            fitted = json.loads(workspace.done_file("probe", self.probe).read_text(encoding="utf-8"))
            notes["probe_seconds"] = fitted["seconds"]
            manager_training.learn(home, days, setup, self.settings, folder, notes)
        elif isinstance(self.settings, VeilSettings):
            manager_learning.learn(home, days, setup, self.settings, folder, notes)
        else:
            ddql_training.learn(home, days, setup, self.settings, folder, notes)
        return {}


@dataclass(frozen=True)
class PlannedDefence:
    """Defence of a cell, with the keys of its trainings, one for each seed."""

    label: str
    spec: DefenceSpec
    battery: Changes = ()
    trainings: tuple[str, ...] = ()

    @property
    def origins(self) -> list[Any]:
        """Describe each policy by everything that can change it."""
        rule = [self.spec.rule, version_of(self.spec.rule)] if self.spec.rule else ["masked"] * self.spec.acts_masked
        if self.spec.training and self.spec.rule != RANDOM_EQUAL:
            return [[*rule, training] for training in self.trainings]
        return [[*rule, *self.trainings]]

    def load(self, workspace: Workspace) -> Defence:
        """Load the defence once its trainings are finished."""
        if self.spec.training is None:
            return replace(find_defence(self.spec.rule), name=self.label)
        if self.spec.rule == RANDOM_EQUAL:
            return Defence(self.label, (RandomEqual(self.equal_kwh(workspace)),))
        defence = trained_defence(self.label, [workspace.folder("train", key) for key in self.trainings])
        if self.spec.rule == RATIONED:
            return replace(defence, policies=tuple(map(Rationed, defence.policies)))
        return defence.masked() if self.spec.acts_masked else defence

    def equal_kwh(self, workspace: Workspace) -> float:
        """Average the throughput of the trainings on their own days; test days must not decide it."""
        documents = (read_document(workspace.folder("train", key)) for key in self.trainings)
        return equal_kwh([document["figures"]["training_days_moved_kwh"] for document in documents])

    def setup(self, workspace: Workspace) -> Setup:
        return Setup(workspace.signatures(self.spec.signatures), Battery(**dict(self.battery)))

    def settings(self, workspace: Workspace) -> dict[str, Any]:
        """Return settings for the runs table: of a training, those that differ from the defaults."""
        training = self.spec.training
        if self.spec.rule == RANDOM_EQUAL:
            return {"equal_to_kwh": self.equal_kwh(workspace)}
        if training is None:
            return {}
        defaults = asdict(type(training)())
        changed = {name: value for name, value in asdict(training).items() if value != defaults[name]}
        masked = {"acts_masked": True} if self.spec.acts_masked else {}
        return {"signatures": self.spec.signatures, "training_settings": changed, **masked}


def fit_attacker(workspace: Workspace, key: str, trial: Trial, name: str) -> dict[str, Any]:
    """Fit an attacker to clean days; the fit is stored where `meterveil attack` looks for it too."""
    fit([name], training_households(workspace, trial), trial.fitted, trial.seed, workers=1)
    return {"attacker": name}


@cache
def fit_key(workspace: Workspace, trial: Trial, name: str) -> str:
    """Return the key of an attacker's fit to clean days."""
    return Job(name, trial.fitted, training_households(workspace, trial), trial.seed).key()


def training_households(workspace: Workspace, trial: Trial) -> tuple[Household, ...]:
    """Return what the attackers of a trial learn from."""
    houses = {part.key: workspace.household(*part.key, trial.aggregate) for part in trial.training}
    return trial.training_households(houses)


def training_days(workspace: Workspace, dataset: str, house: int) -> tuple[date, ...]:
    """Return the days that a defence learns from."""
    if dataset == SYNTHETIC:
        return synthetic_trial(workspace.household(dataset, house), "paper").training[0].days
    return PROTOCOLS[dataset].training


def measure(
    workspace: Workspace, key: str, cell: Cell, trial: Trial, defences: tuple[PlannedDefence, ...]
) -> dict[str, Any]:
    """Measure a cell; trainings and fits come from the cache. Two defences give their difference."""
    attackers = {cell.threat: cell.attackers}
    spec = Spec(trial, defences[0].setup(workspace), attackers, cell.seeds, cell.copies)
    parts = (*trial.training, trial.test)
    houses = {part.key: workspace.household(*part.key, trial.aggregate) for part in parts}
    undefended = measure_undefended(spec, houses, workers=1)
    result, *others = (_evaluated(workspace, cell, undefended, defence) for defence in defences)
    settings = {name: value for defence in defences for name, value in defence.settings(workspace).items()}
    if others:
        run = run_of(result, key, against=cell.against, **settings)
        return done_cell(gap_figures(result, others[0], key), run)
    figures = figures_of(result, key)
    figures += absent_figures(cell, trial, houses[trial.test.key], key)
    return done_cell(figures, run_of(result, key, **settings))


def _evaluated(workspace: Workspace, cell: Cell, undefended: Undefended, defence: PlannedDefence) -> Result:
    """Evaluate a defence; cells that need the same adaptive fits wait for each other: none is made twice."""
    setup = defence.setup(workspace)
    known = replace(undefended, spec=replace(undefended.spec, setup=setup))
    fits = [fit_key(workspace, undefended.spec.trial, name) for name in cell.attackers]
    shared = key_of(cell.threat, fits, defence.origins, defence.battery, setup.library.digest(), cell.copies)
    with workspace.lock(shared) if cell.threat == "adaptive" else nullcontext():
        return evaluate(known, defence.load(workspace), workers=1)


def cell_key(
    workspace: Workspace, cell: Cell, trial: Trial, defences: tuple[PlannedDefence, ...], fits: tuple[str, ...]
) -> str:
    """Hash everything that can change the figures of a cell; labels cannot."""
    played = [[d.origins, d.setup(workspace).library.digest(), d.battery] for d in defences]
    effort = [cell.threat, cell.seeds, cell.copies if cell.threat == "adaptive" else 0]
    data = workspace.digest(*trial.test.key, trial.targets, trial.aggregate)
    libraries = library_versions(*_LIBRARIES)
    return key_of("cell", VERSION, trial.identity, played, effort, list(fits), data, libraries)


def not_measured(workspace: Workspace, key: str, cell: Cell, reason: str) -> dict[str, Any]:
    """Return figures without a value that say why a cell cannot be measured."""
    training = "10 days" if cell.threat == "fixed" else f"10 days x {cell.copies} copies"
    blank = replace(_blank(cell, key, training, reason), attacker="all", appliance="all")
    figures = [replace(blank, metric=HEADLINES[metric]) for metric in ("rmse", "f1")]
    return done_cell(figures, Run(key, {"house": cell.house}, commit=current_commit()))


def not_measured_key(cell: Cell) -> str:
    """Hash which cell cannot be measured, whatever the reason."""
    return key_of("not measured", VERSION, cell.columns, cell.threat, cell.seeds, cell.attackers)


def absent_figures(cell: Cell, trial: Trial, home: Household, key: str) -> Iterator[Figure]:
    """Return figures without a value for the paper's appliances that were not in use (D12)."""
    is_main = (cell.label, cell.days, cell.threat, cell.battery) == ("ours", PAPER, "fixed", ())
    papers = PROTOCOLS[cell.dataset].targets if is_main and cell.dataset in PROTOCOLS else ()
    day = trial.test.days[0]
    known_w = home.day(day).appliances_w
    for target in (target for target in papers if target not in trial.targets):
        metered = target in known_w and not np.isnan(known_w[target]).all()
        reason = f"the {target.replace('_', ' ')} {'was not used' if metered else 'is not metered'} on {day}"
        blank = replace(_blank(cell, key, trial.training_label, reason), appliance=target)
        for attacker in PAPER_SIX:
            yield from (replace(blank, attacker=attacker, metric=metric) for metric in PAPER_METRICS)


def _blank(cell: Cell, key: str, training: str, reason: str) -> Figure:
    labels = replace(Figure(**cell.columns), threat=cell.threat, training=training, run=key)
    return replace(labels, seeds=0, n_days=0, note=f"not measured: {reason}")


def done_cell(figures: Sequence[Figure], run: Run) -> dict[str, Any]:
    """Return the done-file of a cell: its figures and their run."""
    return {"figures": [asdict(figure) for figure in figures], "run": asdict(run)}
