"""Fits attackers in parallel and never twice: a finished fit is kept under the hash of all that made it.

A fit is one attacker and one target (or, for those that explain the meter by all targets together, one
attacker). An interrupted run loses only the fits under way; the next one goes on from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from meterveil.attackers import store
from meterveil.attackers.protocol import Attacker, truth_w
from meterveil.attackers.registry import JOINT, attacker
from meterveil.data.cache import cache_folder
from meterveil.data.household import Household


class Job(NamedTuple):
    """One fit."""

    name: str
    targets: tuple[str, ...]
    households: tuple[Household, ...]
    seed: int

    @property
    def folder(self) -> Path:
        """Where the finished fit is kept."""
        return cache_folder() / "attackers" / f"{self.name}-{self.key()}"

    def key(self) -> str:
        """Hash of everything that can change the fit: code, attacker, targets, seed and data."""
        digest = hashlib.sha256(_code().encode())
        digest.update(json.dumps([self.name, self.targets, self.seed]).encode())
        for household in self.households:
            digest.update(household.minutes.as_unit("s").asi8.tobytes())
            digest.update(household.aggregate_w.tobytes())
            for target in self.targets:
                digest.update(truth_w(household, target).tobytes())
        return digest.hexdigest()[:24]


def fit(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    workers: int = 2,
    on_done: Callable[[Job], None] | None = None,
) -> dict[str, Attacker]:
    """Fit these attackers to these targets; finished fits come from the cache.

    Two processes of one thread each beat one of two: a network of this size cannot keep two cores busy.
    """
    plan = {name: [(job, job.folder) for job in jobs_of(name, households, targets, seed)] for name in names}
    missing = [
        (job, folder)
        for pieces in plan.values()
        for job, folder in pieces
        if not (folder / store.CARD).exists()
    ]
    for job in _run_all(missing, workers):
        if on_done:
            on_done(job)
    return {name: _gather(name, targets, [folder for _, folder in plan[name]]) for name in names}


def jobs_of(name: str, households: Sequence[Household], targets: Sequence[str], seed: int) -> list[Job]:
    """Split a fit into the pieces that can be done one by one."""
    groups = [tuple(targets)] if name in JOINT else [(target,) for target in targets]
    return [Job(name, group, tuple(households), seed) for group in groups]


def _run_all(pieces: Sequence[tuple[Job, Path]], workers: int) -> Iterator[Job]:
    if workers == 1:
        return (_run(*piece) for piece in pieces)
    parallel = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    done: Iterator[Job] = parallel(delayed(_run)(*piece) for piece in pieces)
    return done


def _run(job: Job, folder: Path) -> Job:
    _use_one_thread(job.name)
    rng = np.random.default_rng([job.seed, *hashlib.sha256(str(job.targets).encode()).digest()[:8]])
    fitted = attacker(job.name).fit(job.households, job.targets, rng)
    note: dict[str, Any] = {"seed": job.seed, "households": [home.name for home in job.households]}
    store.save(folder, job.name, job.targets, fitted, note)
    return job


def _gather(name: str, targets: Sequence[str], folders: Sequence[Path]) -> Attacker:
    arrays: dict[str, npt.NDArray[Any]] = {}
    for folder in folders:
        fitted, _ = store.load(folder)
        arrays |= fitted.arrays()
    return attacker(name).restored(targets, arrays)


def _use_one_thread(name: str) -> None:
    if name in JOINT:
        return
    import torch  # noqa: PLC0415  the classical attackers run without it

    torch.set_num_threads(1)


@cache
def _code() -> str:
    """Hash of the attackers' source: a changed line makes every fit anew."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()
