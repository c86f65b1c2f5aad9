"""Fits attackers in parallel, fixed or adaptive (D11), and stores each fit, so that none is made twice.

Fixed attackers never saw the defence, adaptive ones know all but its random draws. A stored fit is a folder
with its weights as safetensors and everything else as JSON; loading it executes no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack, cast

import numpy as np
from joblib import Parallel, delayed
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import FLOORS, INFORMED, attacker, check_known, version_of
from meterveil.core.rollout import Policy
from meterveil.data.cache import cache_folder, household_digest, key_of, library_versions
from meterveil.data.files import read_card
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, mask
from meterveil.errors import InputError

CARD, WEIGHTS = "attacker.json", "weights.safetensors"
FORMAT = "meterveil-attacker-1"

COPIES = 12
"""Masked copies of the training days that an adaptive attacker learns from."""


class Known(NamedTuple):
    """Defence that an informed attacker knows."""

    policy: Policy
    setup: Setup
    digests: tuple[str, ...]
    """Digests of what it makes of the training days, in place of the policy itself in a key."""


class Job(NamedTuple):
    """One fit: an attacker, its targets and the households that it learns from."""

    name: str
    targets: tuple[str, ...]
    households: tuple[Household, ...]
    seed: int
    epochs: int | None = None
    """Most epochs that a network is trained for; None for those of its recipe."""
    known: Known | None = None
    """Defence that the attacker is told."""

    @property
    def folder(self) -> Path:
        return cache_folder() / "attackers" / f"{self.name}-{self.key()}"

    def key(self) -> str:
        """Hash what decides the fit: attacker, its version, targets, seed, data and computing libraries."""
        data = [household_digest(household, self.targets) for household in self.households]
        libraries = library_versions("numpy", "torch")
        told = [self.known.digests] if self.known else []
        asked = [self.name, version_of(self.name), self.targets, self.seed, self.epochs]
        return key_of(*asked, data, libraries, *told)


class Options(TypedDict, total=False):
    """Optional arguments of `fit`."""

    workers: int
    on_done: Callable[[Job], None] | None
    epochs: int | None


def fit(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    workers: int = 2,
    on_done: Callable[[Job], None] | None = None,
    epochs: int | None = None,
    known: Known | None = None,
) -> dict[str, Attacker]:
    """Fit these attackers to these targets; stored fits are loaded.

    On clean days they are fixed attackers, as in the paper. Two processes with one thread each are faster
    than one with two: these networks are too small for two cores.
    """
    for name in names:
        check_known(name)
    jobs = [Job(name, tuple(targets), tuple(households), seed, epochs, known) for name in names]
    folders = {job.name: job.folder for job in jobs}
    fitted = {name: stored for name, folder in folders.items() if (stored := _stored(folder))}
    for job in _run_all([(job, folders[job.name]) for job in jobs if job.name not in fitted], workers):
        fitted[job.name] = load(folders[job.name])[0]
        if on_done:
            on_done(job)
    return {job.name: _told(fitted[job.name], job) for job in jobs}


def masked_copies(
    policy: Policy, setup: Setup, households: Sequence[Household], copies: int, seed: int
) -> list[Household]:
    """Mask the training days of each household, each copy with random draws of its own."""
    rngs = [np.random.default_rng([seed, copy, 0xADA9]) for copy in range(copies)]
    return [copy for household in households for copy in mask(policy, setup, household, rngs).households]


def adaptive(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    policy: Policy,
    setup: Setup,
    copies: int = COPIES,
    **options: Unpack[Options],
) -> dict[str, Attacker]:
    """Fit attackers to training days that this defence masked, labelled with the truth.

    An informed attacker gets the clean days and the defence. Baselines that never see the meter are fitted to
    the clean days: copies would only repeat them.
    """
    informed = [name for name in names if name in INFORMED]
    seeing = [name for name in names if name not in (*FLOORS, *INFORMED)]
    fitted = fit([name for name in names if name in FLOORS], households, targets, seed, **options)
    if seeing:
        copied = masked_copies(policy, setup, households, copies, seed)
        fitted |= fit(seeing, copied, targets, seed, **options)
    if informed:
        shown = masked_copies(policy, setup, households, 1, seed)
        known = Known(policy, setup, tuple(household_digest(home, ()) for home in shown))
        fitted |= fit(informed, households, targets, seed, known=known, **options)
    return fitted


def save(folder: Path, name: str, targets: Sequence[str], fitted: Attacker, note: dict[str, Any]) -> None:
    """Write a fitted attacker to a folder, all at once, in place of an older one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        save_file({key: np.asarray(part, order="C") for key, part in fitted.arrays().items()}, half / WEIGHTS)
        digest = hashlib.sha256((half / WEIGHTS).read_bytes()).hexdigest()
        card = {"format": FORMAT, "attacker": name, "targets": list(targets), "weights": digest, **note}
        (half / CARD).write_text(json.dumps(card, indent=1, default=str) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(half, folder)  # noqa: PTH105  Path.replace cannot be relied on for folders
    finally:
        shutil.rmtree(half, ignore_errors=True)


def load(folder: Path) -> tuple[Attacker, dict[str, Any]]:
    """Read an attacker and its card; refuse a missing, foreign or altered file."""
    again = "fit the attacker again"
    card, _ = read_card(folder, (CARD, WEIGHTS), FORMAT, "fitted attacker", again)
    try:
        return attacker(card["attacker"]).restored(card["targets"], load_file(folder / WEIGHTS)), card
    except SafetensorError as error:
        raise InputError(f"{folder / WEIGHTS} is damaged: {error}; {again}") from error
    except (KeyError, RuntimeError, TypeError) as error:
        raise InputError(f"{folder} was saved by another version: {error}; {again}") from error


def _stored(folder: Path) -> Attacker | None:
    """Load a stored fit; None if it is missing or damaged."""
    try:
        return load(folder)[0]
    except InputError:
        return None


def _run_all(pieces: Sequence[tuple[Job, Path]], workers: int) -> Iterator[Job]:
    if workers == 1:
        return (_run(*piece) for piece in pieces)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    done: Iterator[Job] = parallel(delayed(_run)(*piece) for piece in pieces)
    return done


def _run(job: Job, folder: Path) -> Job:
    unfitted = _told(_shortened(attacker(job.name), job), job)
    if torch := sys.modules.get("torch"):  # the classical attackers run without it
        torch.set_num_threads(1)
    rng = np.random.default_rng([job.seed, *hashlib.sha256(str(job.targets).encode()).digest()[:8]])
    fitted = unfitted.fit(job.households, job.targets, rng)
    note: dict[str, Any] = {"seed": job.seed, "households": [home.name for home in job.households]}
    save(folder, job.name, job.targets, fitted, note)
    return job


def _told(either: Attacker, job: Job) -> Attacker:
    """Give an attacker, fitted or not, the defence that it knows; a stored fit does not hold it."""
    if job.known is None:
        return either
    return cast(Attacker, cast(Any, either).knowing(job.known.policy, job.known.setup))


def _shortened(unfitted: Attacker, job: Job) -> Attacker:
    if job.epochs is None:
        return unfitted
    recipe = getattr(unfitted, "recipe", None)
    if recipe is None:
        raise InputError(f"{job.name} is not trained in epochs; use epochs with neural attackers only")
    return cast(Attacker, replace(cast(Any, unfitted), recipe=replace(recipe, epochs=job.epochs)))
