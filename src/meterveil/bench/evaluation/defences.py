"""What is put to the test: a defence by name, or trained ones, one run for each seed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from meterveil.bench.strength import Trial
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import PAPER_TARIFF, Tariff
from meterveil.data.household import Household
from meterveil.data.run import Setup
from meterveil.data.signatures_file import library as read_library
from meterveil.defenders import DEFENDERS, defender
from meterveil.defenders.bundle import battery_from, tariff_from
from meterveil.defenders.random_equal import RandomEqual
from meterveil.errors import InputError

EQUAL = "random_equal:"
"""Starts the name of chance at a throughput of one's own: `random_equal:7.5` moves 7.5 kWh a day (D8)."""

RUN = "run.json"
MANAGER = "manager"
LOADERS: dict[str, str] = {
    "meterveil-run-1": "meterveil.defenders.manager.run:load_run",
    "meterveil-ddql-1": "meterveil.defenders.ddql.run:load_ddql",
}
"""Format of a run folder -> what reads it; to evaluate another kind of training, add a line."""


class Trained(NamedTuple):
    """A finished training."""

    policy: Policy
    library: Library | None  # the signatures that it can replay; None where it replays none
    document: dict[str, Any]  # what the run says of itself

    @property
    def method(self) -> str:
        """Name how it was trained; the paper's own is the manager."""
        return str(self.document["options"].get("method", MANAGER))


@dataclass(frozen=True)
class Contender:
    """Hold a defence under test: one policy for all seeds, or one for each."""

    name: str
    policies: tuple[Policy, ...]
    runs: tuple[Trained, ...] = field(default=(), repr=False)
    """The trainings that the policies come from; none for a defence that learns nothing."""

    @property
    def method(self) -> str:
        """Name what it is, whatever its folder is called."""
        return self.runs[0].method if self.runs else self.name

    @property
    def training_seconds(self) -> tuple[float, ...]:
        """Wall time of each training that recorded it, with that of a probe that was fitted before it."""
        known = [(run.document.get("figures", {}).get("training_seconds"), run) for run in self.runs]
        return tuple(
            float(seconds) + run.document.get("probe_seconds", 0.0)
            for seconds, run in known
            if seconds is not None
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Return what a card must say of it."""
        if not self.runs:
            return {"defence": self.name}
        first = self.runs[0].document
        stated = {name: first["options"].get(name) for name in ("probe", "weight", "choice")}
        return {
            "defence": self.name,
            "method": self.method,
            "trained_on": first["household"],
            **{name: value for name, value in stated.items() if value is not None},
            "training_seeds": [run.document["seed"] for run in self.runs],
        }

    def seeds(self, asked: int) -> int:
        """Say over how many seeds it is measured: several trainings are one seed each."""
        return len(self.policies) if len(self.policies) > 1 else asked


def contender(text: str) -> Contender:
    """Find the defence that is meant: a known name, a run folder, or a folder of run folders."""
    if text in DEFENDERS:
        return Contender(text, (defender(text),))
    if text.startswith(EQUAL):
        return Contender(text, (RandomEqual(_kwh(text)),))
    folder = Path(text)
    if not folder.is_dir():
        raise InputError(
            f"there is no defence and no run folder {text!r}; known are {', '.join(DEFENDERS)}, "
            f"{EQUAL}KWH, and what meterveil train wrote"
        )
    parts = [folder] if (folder / RUN).exists() else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    return trained(folder.resolve().name, parts or [folder])


def trained(name: str, folders: Sequence[Path]) -> Contender:
    """Put a defence to the test that was trained several times, once for each seed."""
    runs = tuple(_load(folder) for folder in folders)
    return Contender(name, tuple(run.policy for run in runs), runs)


def contenders(texts: Sequence[str]) -> list[Contender]:
    """Find several defences, each under a name of its own."""
    found = [contender(text) for text in texts]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"{twice} is named twice; give each defence once, and each run folder its own name")
    return found


def common_setup(
    found: Sequence[Contender],
    library: Path | None = None,
    battery: Battery | None = None,
    tariff: Tariff | None = None,
    seed: int = 0,
) -> Setup:
    """Put battery, tariff and signatures together that all defences share.

    What is not given is what the trainings had, or the default where nothing was trained. A policy can act
    only with the signatures that it learned; another battery or tariff is a fair question.
    """
    runs = [run for one in found for run in one.runs]
    documents = [run.document for run in runs]
    if battery is None:
        battery = battery_from(_agreed(documents, "battery")) if runs else Battery()
    if tariff is None:
        tariff = tariff_from(_agreed(documents, "tariff")) if runs else PAPER_TARIFF
    return Setup(_common_library(runs, library), battery, tariff, seed)


def check_unseen(one: Contender, trial: Trial, home: Household) -> None:
    """Refuse a training that has seen a test day: it would prove nothing."""
    for run in one.runs:
        seen = set(run.document["days"]) & {str(day) for day in trial.test.days}
        if run.document["household"] == home.name and seen:
            raise InputError(f"{one.name} was trained on {min(seen)}, a test day; train it on other days")


def _load(folder: Path) -> Trained:
    """Read a run folder of any kind."""
    try:
        kind = json.loads((folder / RUN).read_text(encoding="utf-8"))["format"]
        module, function = LOADERS[kind].split(":")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} holds no training ({RUN} of {' or '.join(LOADERS)}); write one with meterveil train"
        ) from error
    run = getattr(import_module(module), function)(folder)
    return Trained(run.policy, getattr(run, "library", None), run.document)


def _common_library(runs: Sequence[Trained], path: Path | None) -> Library:
    known = [run.library for run in runs if run.library is not None]
    chosen = known[0] if known and path is None else read_library(path)
    if any(one.digest() != chosen.digest() for one in known):
        raise InputError(
            "a run was trained with other signatures than the others, or than --library has; leave --library "
            "out, and evaluate runs with different signatures one at a time"
        )
    return chosen


def _agreed(documents: Sequence[dict[str, Any]], key: str) -> Any:
    first = documents[0][key]
    if any(document[key] != first for document in documents):
        raise InputError(
            f"the runs were trained with different settings of {key}; evaluate them one at a time"
        )
    return first


def _kwh(text: str) -> float:
    try:
        return float(text.removeprefix(EQUAL))
    except ValueError as error:
        raise InputError(f"{text} has no number of kWh a day; write it as {EQUAL}7.5") from error
