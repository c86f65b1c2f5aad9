"""Fits attackers in parallel and never twice: a finished fit is kept under the hash of all that made it.

An interrupted run loses only the fits under way; the next one goes on from there.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np
from joblib import Parallel, delayed

from meterveil.attackers import store
from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import attacker, check_known, version_of
from meterveil.data.cache import cache_folder, household_digest, key_of, library_versions
from meterveil.data.household import Household
from meterveil.errors import InputError


class Job(NamedTuple):
    """One fit: an attacker and all that it is to read."""

    name: str
    targets: tuple[str, ...]
    households: tuple[Household, ...]
    seed: int
    epochs: int | None = None
    """Train a network for so many epochs at most; None for as many as its recipe says."""

    @property
    def folder(self) -> Path:
        """Where the finished fit is kept."""
        return cache_folder() / "attackers" / f"{self.name}-{self.key()}"

    def key(self) -> str:
        """Hash what decides the fit: attacker, its version, targets, seed, data and computing libraries."""
        data = [household_digest(household, self.targets) for household in self.households]
        libraries = library_versions("numpy", "torch")
        return key_of(self.name, version_of(self.name), self.targets, self.seed, self.epochs, data, libraries)


class Options(TypedDict, total=False):
    """What a caller may add to a fit; see `fit`."""

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
) -> dict[str, Attacker]:
    """Fit these attackers to these targets; finished fits come from the cache.

    Two processes of one thread each beat one of two: a network of this size cannot keep two cores busy.
    """
    for name in names:
        check_known(name)
    jobs = [Job(name, tuple(targets), tuple(households), seed, epochs) for name in names]
    folders = {job.name: job.folder for job in jobs}
    fitted = {name: found for name, folder in folders.items() if (found := _kept(folder))}
    for job in _run_all([(job, folders[job.name]) for job in jobs if job.name not in fitted], workers):
        fitted[job.name] = store.load(folders[job.name])[0]
        if on_done:
            on_done(job)
    return {name: fitted[name] for name in folders}


def _kept(folder: Path) -> Attacker | None:
    """Load a finished fit; one that is missing or damaged is made anew."""
    try:
        return store.load(folder)[0]
    except InputError:
        return None


def _run_all(pieces: Sequence[tuple[Job, Path]], workers: int) -> Iterator[Job]:
    if workers == 1:
        return (_run(*piece) for piece in pieces)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    done: Iterator[Job] = parallel(delayed(_run)(*piece) for piece in pieces)
    return done


def _run(job: Job, folder: Path) -> Job:
    unfitted = _shortened(attacker(job.name), job)
    if "torch" in sys.modules:  # the classical attackers run without it
        sys.modules["torch"].set_num_threads(1)
    rng = np.random.default_rng([job.seed, *hashlib.sha256(str(job.targets).encode()).digest()[:8]])
    fitted = unfitted.fit(job.households, job.targets, rng)
    note: dict[str, Any] = {"seed": job.seed, "households": [home.name for home in job.households]}
    store.save(folder, job.name, job.targets, fitted, note)
    return job


def _shortened(unfitted: Attacker, job: Job) -> Attacker:
    if job.epochs is None:
        return unfitted
    recipe = getattr(unfitted, "recipe", None)
    if recipe is None:
        raise InputError(f"{job.name} is not trained in epochs; give the names of neural attackers")
    return cast(Attacker, replace(cast(Any, unfitted), recipe=replace(recipe, epochs=job.epochs)))
