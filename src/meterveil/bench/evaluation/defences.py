"""What is put to the test: a defence by name, or trained ones, one run for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.bench.strength import Trial
from meterveil.core.battery import Battery
from meterveil.core.rollout import Policy
from meterveil.core.tariff import Tariff
from meterveil.data.household import Household
from meterveil.data.run import Setup
from meterveil.defenders import defender, known_defences, package_of
from meterveil.defenders.random_equal import RandomEqual
from meterveil.defenders.runs import RUN
from meterveil.defenders.trained import Trained, load_trained, setup_of
from meterveil.errors import InputError

EQUAL = "random_equal:"
"""Starts the name of chance at a throughput of one's own: `random_equal:7.5` moves 7.5 kWh a day (D8)."""


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
            package = package_of(self.name)
            return {"defence": self.name} | ({"package": package} if package else {})
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
    if text in known_defences():
        return Contender(text, (defender(text),))
    if text.startswith(EQUAL):
        return Contender(text, (RandomEqual(_kwh(text)),))
    folder = Path(text)
    if not folder.is_dir():
        raise InputError(
            f"there is no defence and no run folder {text!r}; known are {', '.join(known_defences())}, "
            f"{EQUAL}KWH, and what meterveil train wrote"
        )
    parts = [folder] if (folder / RUN).exists() else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    return trained(folder.resolve().name, parts or [folder])


def trained(name: str, folders: Sequence[Path]) -> Contender:
    """Put a defence to the test that was trained several times, once for each seed."""
    runs = tuple(load_trained(folder) for folder in folders)
    return Contender(name, tuple(run.policy for run in runs), runs)


def equal_kwh(moved_kwh: Sequence[float]) -> float:
    """Say what chance has to move a day to be the equal of trainings that moved this much."""
    return round(float(np.mean(moved_kwh)), 3)


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
    """Put battery, tariff and signatures together that all defences share."""
    return setup_of([run for one in found for run in one.runs], library, battery, tariff, seed)


def check_unseen(one: Contender, trial: Trial, home: Household) -> None:
    """Refuse a training that has seen a test day: it would prove nothing."""
    for run in one.runs:
        seen = set(run.document["days"]) & {str(day) for day in trial.test.days}
        if run.document["household"] == home.name and seen:
            raise InputError(f"{one.name} was trained on {min(seen)}, a test day; train it on other days")


def _kwh(text: str) -> float:
    try:
        return float(text.removeprefix(EQUAL))
    except ValueError as error:
        raise InputError(f"{text} has no number of kWh a day; write it as {EQUAL}7.5") from error
