"""The one type for a defence under test, and how it is found by a name or a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.certificate import DAY_MINUTES, hours_of
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import PAPER_TARIFF, Tariff, usual_price
from meterveil.data.household import Household
from meterveil.data.settings import battery_values
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup
from meterveil.defenders import defender, known_defences, package_of
from meterveil.defenders.bundle import MANIFEST, Bundle, load_bundle, tariff_document
from meterveil.defenders.random import EQUAL, RandomEqual
from meterveil.defenders.run_folder import RUN, TrainedRun, load_trained
from meterveil.defenders.trained_policies import ManagerPolicy
from meterveil.defenders.training_settings import CHOICES
from meterveil.defenders.veil.dice import Dice
from meterveil.defenders.veil.policy import Veil
from meterveil.errors import InputError, unknown

VEIL = "veil:"
"""Beginning of the name of a veil with decoys."""


@dataclass(frozen=True)
class Defence:
    """Defence under test: one policy for all seeds, or one policy per training."""

    name: str
    policies: tuple[Policy, ...]
    trainings: tuple[TrainedRun, ...] = field(default=(), repr=False)
    """Trainings that the policies come from; empty for an untrained defence."""
    bundle: Bundle | None = field(default=None, repr=False)
    """Bundle that the policy comes from, if any."""

    @property
    def method(self) -> str:
        """Training method, or the name of an untrained defence."""
        if self.trainings:
            return self.trainings[0].method
        return str(self.bundle.card["defence"]) if self.bundle else self.name

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
            method = {"method": self.method} if self.bundle else {}
            return {"defence": self.name, **method} | ({"package": package} if package else {})
        first = self.trainings[0].document
        options = {name: first["options"].get(name) for name in ("probe", "weight", "choice")}
        return {
            "defence": self.name,
            "method": self.method,
            "trained_on": first["household"],
            **{name: value for name, value in options.items() if value is not None},
            "training_seeds": [run.document["seed"] for run in self.trainings],
        }

    def knowing(self, history: Sequence[Household], setup: Setup) -> Defence:
        """Return the defence with a record of the household's earlier days, where it uses one."""
        return replace(self, policies=tuple(knowing(policy, history, setup) for policy in self.policies))

    @property
    def has_choice(self) -> bool:
        """Tell whether all its policies are trained managers, which alone act sampled or greedy."""
        return bool(self.trainings) and all(isinstance(policy, ManagerPolicy) for policy in self.policies)

    def choosing(self, choice: str) -> Defence:
        """Return the defence with managers that act so: `sampled` or `greedy`."""
        if choice not in CHOICES:
            raise unknown("choice", choice, CHOICES)
        if not self.has_choice:
            raise InputError(f"{self.name} is no trained manager, which alone has a choice; leave --choice out")
        policies = tuple(replace(cast(ManagerPolicy, policy), choice=choice) for policy in self.policies)
        options = [{**run.document["options"], "choice": choice} for run in self.trainings]
        trainings = tuple(
            run._replace(policy=policy, document={**run.document, "options": chosen})
            for run, policy, chosen in zip(self.trainings, policies, options, strict=True)
        )
        return replace(self, policies=policies, trainings=trainings)

    def masked(self) -> Defence:
        """Return the defence with managers that choose only among idling and actions that move energy."""
        return replace(self, policies=tuple(replace(cast(ManagerPolicy, p), masked=True) for p in self.policies))

    def seeds(self, asked: int) -> int:
        """Return the number of seeds to measure with: one per training where there are several."""
        return len(self.policies) if len(self.policies) > 1 else asked


def knowing(policy: Policy, history: Sequence[Household], setup: Setup) -> Policy:
    """Fit a veil without a record of its own to a household's earlier days; leave other policies as they are."""
    if not isinstance(policy, Veil) or policy.record is not None:
        return policy
    days = [home.day(day) for home in history for day in home.days()]
    days_w = [day.aggregate_w for day in days if len(day.minutes) == DAY_MINUTES]
    return policy.fitted(days_w, usual_price(setup.tariff), setup.battery)


def protecting(defence: Defence, hours: str) -> Defence:
    """Let a veil save its budget for the hours that matter most, such as "evenings" or "17:00-23:00"."""
    veils = [policy for policy in defence.policies if isinstance(policy, Veil)]
    if len(veils) < len(defence.policies):
        raise InputError(f"{defence.name} has no hours to protect; use the defence veil, or leave the hours out")
    protect = hours_of(hours)
    policies = tuple(replace(veil, rules=replace(veil.rules, protect=protect)) for veil in veils)
    return replace(defence, policies=policies)


def find_defence(text: str) -> Defence:
    """Find a defence by name, run folder, folder of run folders or bundle folder.

    `random_equal:KWH` moves so much a day, `veil:DECOYS` adds so many decoys a day.
    """
    if text in known_defences():
        return Defence(text, (defender(text),))
    if text.startswith(EQUAL):
        return Defence(text, (RandomEqual(_number(text, EQUAL, "kWh a day")),))
    if text.startswith(VEIL):
        return Defence(text, (Veil(dice=Dice(_number(text, VEIL, "decoys a day") / DAY_MINUTES)),))
    folder = Path(text)
    if not folder.is_dir():
        raise unknown(
            "defence and no folder",
            text,
            (*known_defences(), f"{EQUAL}KWH", f"{VEIL}DECOYS"),
            ", and the folders that meterveil train and meterveil export write",
        )
    name = folder.resolve().name
    if (folder / MANIFEST).exists():
        bundle = load_bundle(folder)
        library = bundle.library if "library" in bundle.card else None
        trained = bool(bundle.card.get("days"))
        runs = (TrainedRun(bundle.policy, library, dict(bundle.card)),) if trained else ()
        return Defence(name, (bundle.policy,), runs, bundle)
    folders = [folder] if (folder / RUN).exists() else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
    return trained_defence(name, folders or [folder])


def find_defences(texts: Sequence[str]) -> list[Defence]:
    """Find several defences, each with a name of its own."""
    defences = [find_defence(text) for text in texts]
    names = [defence.name for defence in defences]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise InputError(f"{repeated} is named twice; give each defence once, and each run folder its own name")
    return defences


def trained_defence(name: str, folders: Sequence[Path]) -> Defence:
    """Load a defence that was trained several times, once per seed."""
    trainings = tuple(map(load_trained, folders))
    return Defence(name, tuple(run.policy for run in trainings), trainings)


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
    sources: list[TrainedRun | Bundle] = []
    for defence in defences:
        sources += defence.trainings
        if defence.bundle and not defence.trainings:
            sources.append(defence.bundle)
    if battery is None:
        _check_agree("battery", [battery_values(source.battery) for source in sources])
        battery = sources[0].battery if sources else Battery()
    if tariff is None:
        _check_agree("tariff", [tariff_document(source.tariff) for source in sources])
        tariff = sources[0].tariff if sources else PAPER_TARIFF
    return Setup(_common_library(sources, library), battery, tariff, seed)


def check_unseen(defence: Defence, household: str, days: Sequence[date]) -> None:
    """Refuse a defence that was trained on one of these test days."""
    for run in defence.trainings:
        seen = run.seen(household, days)
        if seen:
            raise InputError(f"{defence.name} was trained on {min(seen)}, a test day; train it on other days")


def equal_kwh(moved_kwh: Sequence[float]) -> float:
    """Return the daily throughput of a random baseline that is to match these trainings (D8)."""
    return round(float(np.mean(moved_kwh)), 3)


def _common_library(sources: Sequence[TrainedRun | Bundle], path: Path | None) -> Library:
    known = [source.library for source in sources if source.library is not None]
    chosen = known[0] if known and path is None else read_library(path)
    if any(library.digest() != chosen.digest() for library in known):
        raise InputError(
            "a run was trained with signatures that differ from the others' or from `library`; leave "
            "`library` out, and use runs with different signatures one at a time"
        )
    return chosen


def _check_agree(what: str, values: Sequence[object]) -> None:
    if any(value != values[0] for value in values):
        raise InputError(f"the runs were trained with different settings of {what}; evaluate them one at a time")


def _number(text: str, prefix: str, what: str) -> float:
    try:
        return float(text.removeprefix(prefix))
    except ValueError as error:
        raise InputError(f"{text} has no number of {what}; write it as {prefix}7.5") from error
