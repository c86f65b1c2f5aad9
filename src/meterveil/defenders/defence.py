"""The one type for a defence under test, and how it is found by a name or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import PAPER_TARIFF, Tariff
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup
from meterveil.defenders import defender, known_defences, package_of
from meterveil.defenders.bundle import MANIFEST, battery_from, load_bundle, tariff_from
from meterveil.defenders.random_equal import EQUAL, RandomEqual
from meterveil.errors import InputError, how_to_install, unknown

MANAGER = "manager"
"""Method of the paper's own defence."""

LOADERS: dict[str, str] = {
    "meterveil-run-1": "meterveil.defenders.manager.run:load_run",
    "meterveil-ddql-1": "meterveil.defenders.ddql.run:load_ddql",
}
"""Format of a run folder -> function that reads it, loaded when needed."""


class TrainedRun(NamedTuple):
    """Finished training that was read from a run folder or a bundle."""

    policy: Policy
    library: Library | None  # signatures that the policy replays; None where it replays none
    document: dict[str, Any]  # contents of `run.json`, or of the bundle's card

    @property
    def method(self) -> str:
        """Training method: `manager`, `ddql_flat` or `ddql_mi`."""
        return str(self.document["options"].get("method", MANAGER))

    @property
    def battery(self) -> Battery:
        """Battery of the training."""
        return battery_from(self.document["battery"])

    def seen(self, household: str, days: Sequence[date]) -> list[date]:
        """List the days of a household that the training used."""
        if self.document["household"] != household:
            return []
        return [day for day in days if str(day) in self.document["days"]]


@dataclass(frozen=True)
class Defence:
    """Defence under test: one policy for all seeds, or one policy per training."""

    name: str
    policies: tuple[Policy, ...]
    trainings: tuple[TrainedRun, ...] = field(default=(), repr=False)
    """Trainings that the policies come from; empty for a defence that learns nothing."""

    @property
    def method(self) -> str:
        """Training method, or the name of an untrained defence."""
        return self.trainings[0].method if self.trainings else self.name

    @property
    def training_seconds(self) -> tuple[float, ...]:
        """Wall time of each training that recorded it, including a probe that was fitted before."""
        documents = [run.document for run in self.trainings]
        seconds = [document.get("figures", {}).get("training_seconds") for document in documents]
        return tuple(
            float(known) + document.get("probe_seconds", 0.0)
            for known, document in zip(seconds, documents, strict=True)
            if known is not None
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the runs table."""
        if not self.trainings:
            package = package_of(self.name)
            return {"defence": self.name} | ({"package": package} if package else {})
        first = self.trainings[0].document
        options = {name: first["options"].get(name) for name in ("probe", "weight", "choice")}
        return {
            "defence": self.name,
            "method": self.method,
            "trained_on": first["household"],
            **{name: value for name, value in options.items() if value is not None},
            "training_seeds": [run.document["seed"] for run in self.trainings],
        }

    def seeds(self, asked: int) -> int:
        """Return the number of seeds to measure with: one per training where there are several."""
        return len(self.policies) if len(self.policies) > 1 else asked


def find_defence(text: str) -> Defence:
    """Find a defence by name, `random_equal:KWH`, run folder, folder of run folders or bundle folder."""
    if text in known_defences():
        return Defence(text, (defender(text),))
    if text.startswith(EQUAL):
        return Defence(text, (RandomEqual(_kwh(text)),))
    folder = Path(text)
    if not folder.is_dir():
        raise unknown(
            "defence and no folder",
            text,
            (*known_defences(), f"{EQUAL}KWH"),
            ", and the folders that meterveil train and meterveil export write",
        )
    name = folder.resolve().name
    if (folder / MANIFEST).exists():
        bundle = load_bundle(folder)
        run = TrainedRun(bundle.policy, bundle.library, dict(bundle.card))
        return Defence(name, (run.policy,), (run,))
    runs = [folder] if (folder / "run.json").exists() else sorted(p.parent for p in folder.glob("*/run.json"))
    return trained_defence(name, runs or [folder])


def find_defences(texts: Sequence[str]) -> list[Defence]:
    """Find several defences, each with a name of its own."""
    defences = [find_defence(text) for text in texts]
    names = [defence.name for defence in defences]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise InputError(
            f"{repeated} is named twice; give each defence once, and each run folder its own name"
        )
    return defences


def trained_defence(name: str, folders: Sequence[Path]) -> Defence:
    """Load a defence that was trained several times, once per seed."""
    trainings = tuple(map(load_trained, folders))
    return Defence(name, tuple(run.policy for run in trainings), trainings)


def load_trained(folder: Path) -> TrainedRun:
    """Read a run folder of any method, without torch."""
    try:
        runs = import_module("meterveil.defenders.runs")
    except ImportError as error:
        raise InputError(f"a run needs safetensors; get it with {how_to_install('train')}") from error
    kind = runs.format_of(folder)
    if kind not in LOADERS:
        raise InputError(
            f"{folder} holds no training ({runs.RUN} of {' or '.join(LOADERS)}); "
            "write one with meterveil train"
        )
    module, function = LOADERS[kind].split(":")
    run = getattr(import_module(module), function)(folder)
    return TrainedRun(run.policy, getattr(run, "library", None), run.document)


def common_setup(
    defences: Sequence[Defence],
    library: Path | None = None,
    battery: Battery | None = None,
    tariff: Tariff | None = None,
    seed: int = 0,
) -> Setup:
    """Return the battery, tariff and signatures that all defences share.

    Values that are not given come from the trainings, or are the defaults without any. A policy can act only
    with the signatures that it was trained with; another battery or tariff is allowed.
    """
    runs = [run for defence in defences for run in defence.trainings]
    if battery is None:
        battery = battery_from(_agreed(runs, "battery")) if runs else Battery()
    if tariff is None:
        tariff = tariff_from(_agreed(runs, "tariff")) if runs else PAPER_TARIFF
    return Setup(_common_library(runs, library), battery, tariff, seed)


def check_unseen(defence: Defence, household: str, days: Sequence[date]) -> None:
    """Refuse a defence that was trained on one of these test days."""
    for run in defence.trainings:
        seen = run.seen(household, days)
        if seen:
            raise InputError(f"{defence.name} was trained on {min(seen)}, a test day; train it on other days")


def equal_kwh(moved_kwh: Sequence[float]) -> float:
    """Return the daily throughput of a random baseline that is to match these trainings (D8)."""
    return round(float(np.mean(moved_kwh)), 3)


def _common_library(runs: Sequence[TrainedRun], path: Path | None) -> Library:
    known = [run.library for run in runs if run.library is not None]
    chosen = known[0] if known and path is None else read_library(path)
    if any(library.digest() != chosen.digest() for library in known):
        raise InputError(
            "a run was trained with signatures that differ from the others' or from --library; leave "
            "--library out, and use runs with different signatures one at a time"
        )
    return chosen


def _agreed(runs: Sequence[TrainedRun], key: str) -> Any:
    first = runs[0].document[key]
    if any(run.document[key] != first for run in runs):
        raise InputError(
            f"the runs were trained with different settings of {key}; evaluate them one at a time"
        )
    return first


def _kwh(text: str) -> float:
    try:
        return float(text.removeprefix(EQUAL))
    except ValueError as error:
        raise InputError(f"{text} has no number of kWh a day; write it as {EQUAL}7.5") from error
