"""Where the runner reads and writes, the same for every worker: data, signatures, cache and results.

On a cluster all nodes see these folders under the same names.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from meterveil.bench.reproduce.specs import SYNTHETIC
from meterveil.core.decoys import Library
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.signatures import build, read_houses, save, sub_library
from meterveil.data.signatures import library as read_library
from meterveil.errors import InputError

if sys.platform != "win32":
    import fcntl

_PACKAGES = ("numpy", "torch", "stable_baselines3")


@dataclass(frozen=True)
class Place:
    """Name the folders and files that all workers share."""

    results: Path
    cache: Path
    data: Path | None = None
    """Holds `ukdale` and `redd`; the synthetic household needs none."""
    library: Path | None = None
    """File of signatures; the synthetic household may do without."""

    def household(self, dataset: str, house: int) -> Household:
        """Read a house, once in each process."""
        return _household(None if self.data is None else str(self.data), dataset, house)

    def signatures(self, name: str = "main") -> Library:
        """Read the signatures, or the named part of them."""
        whole = _library(None if self.library is None else str(self.library))
        return whole if name == "main" else sub_library(whole, name)

    def run(self, key: str) -> Path:
        """Folder of a training."""
        return self.cache / "runs" / key

    def probe(self, key: str) -> Path:
        """Folder of a probe."""
        return self.cache / "probes" / key

    def fit(self, key: str) -> Path:
        """File that says which fit of the attackers' cache an adaptive attacker is."""
        return self.cache / "adapted" / f"{key}.json"

    def spent(self, key: str) -> Path:
        """File that says what a task took."""
        return self.cache / "spent" / f"{key}.json"

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Wait until nobody else is at this task: two processes must not write into one training.

        The system lets go of the lock with the process that held it, however that ended.
        """
        path = self.cache / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def enter(self) -> None:
        """Let everything that this process keeps go to the shared cache."""
        os.environ["METERVEIL_CACHE"] = str(self.cache)


def digest(*parts: Any) -> str:
    """Hash what can be written down; equal parts give equal keys on every machine."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def versions(*further: str) -> dict[str, str]:
    """Name the libraries whose version can change a number, these among them."""
    return {name: version(name) for name in (*_PACKAGES, *further) if find_spec(name)}


@cache
def fingerprint(place: Place, dataset: str, house: int, targets: tuple[str, ...] = ()) -> str:
    """Hash the record of a household: its load and these appliances."""
    household = place.household(dataset, house)
    content = hashlib.sha256(str(household.timezone).encode())
    content.update(household.minutes.as_unit("s").asi8.tobytes())
    content.update(household.aggregate_w.tobytes())
    for name in sorted(targets):
        content.update(household.appliances_w[name].tobytes())
    return content.hexdigest()[:24]


@cache
def _household(data: str | None, dataset: str, house: int) -> Household:
    if dataset == SYNTHETIC:
        return load(SYNTHETIC)
    return load(data_folder(data) / dataset, house)


@cache
def _library(path: str | None) -> Library:
    return read_library(None if path is None else Path(path))


def built_library(data: Path, cache_folder: Path) -> Path:
    """Build the signatures from UK-DALE and keep them under the hash of their watts."""
    if not (data / "ukdale").exists():
        raise InputError(
            f"{data} has no folder ukdale, from which signatures are built; add it, or give --library"
        )
    collection = build(read_houses(data))
    path = cache_folder / "signatures" / f"{collection.library().digest()[:24]}.json"
    return path if path.exists() else save(collection, path)
