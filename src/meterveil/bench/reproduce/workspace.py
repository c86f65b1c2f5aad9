"""Folders that all workers share: data, signatures, cache and results.

On a cluster all nodes must see these folders under the same names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from meterveil.bench.reproduce.experiments import SYNTHETIC
from meterveil.core.decoys import Library
from meterveil.data.cache import household_digest
from meterveil.data.files import data_folder
from meterveil.data.household import Aggregate, Household
from meterveil.data.load import houses, load, load_protocol
from meterveil.data.protocols import FURTHER_HOUSES, PROTOCOLS
from meterveil.data.signatures import build, read_houses, save, sub_library
from meterveil.data.signatures import library as read_library
from meterveil.errors import InputError

if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True)
class Workspace:
    """Folders of a reproduction."""

    results: Path
    cache: Path
    data: Path | None = None
    """Folder with `ukdale` and `redd`; the synthetic household needs none."""
    library: Path | None = None
    """File of signatures; None for the shipped ones."""

    def household(self, dataset: str, house: int, aggregate: Aggregate = "mains") -> Household:
        """Read a house with this source of its load (D2), once in each process."""
        return _household(None if self.data is None else str(self.data), dataset, house, aggregate)

    def has_house(self, dataset: str, house: int) -> bool:
        """Tell whether the data include a house; reading it reports any other problem."""
        if self.data is None or not (self.data / dataset).is_dir():
            return True
        known = houses(self.data / dataset)
        return not known or house in known

    def digest(self, dataset: str, house: int, targets: tuple[str, ...] = (), aggregate: Aggregate = "mains") -> str:
        """Hash the record of a house: its load and these appliances."""
        return _digest(self, dataset, house, targets, aggregate)

    def signatures(self, name: str = "main") -> Library:
        """Read the signatures, or a named part of them."""
        whole = _library(None if self.library is None else str(self.library))
        return whole if name == "main" else sub_library(whole, name)

    def folder(self, kind: str, key: str) -> Path:
        """Folder for what a task makes."""
        return self.cache / "reproduce" / kind / key

    def done_file(self, kind: str, key: str) -> Path:
        """File that is written when a task is finished."""
        return self.cache / "reproduce" / kind / f"{key}.json"

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Keep other processes from running the same task; a lock ends with its process."""
        path = self.cache / "reproduce" / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def use_cache(self) -> None:
        """Use this cache for everything that the process stores."""
        os.environ["METERVEIL_CACHE"] = str(self.cache)


def built_library(data: Path, cache_folder: Path) -> Path:
    """Build the signatures from UK-DALE and store them under their digest."""
    if not (data / "ukdale").exists():
        raise InputError(f"{data} has no folder ukdale to build signatures from; add it, or give a library")
    collection = build(read_houses(data))
    path = cache_folder / "signatures" / f"{collection.library().digest()[:24]}.json"
    return path if path.exists() else save(collection, path)


@cache
def _household(data: str | None, dataset: str, house: int, aggregate: Aggregate) -> Household:
    if dataset == SYNTHETIC:
        return load(SYNTHETIC).metered_by(aggregate)
    if aggregate != "mains":
        protocol = FURTHER_HOUSES.get((dataset, house)) or replace(PROTOCOLS[dataset], house=house)
        return load_protocol(data_folder(data), replace(protocol, aggregate=aggregate))
    return load(data_folder(data) / dataset, house)


@cache
def _digest(workspace: Workspace, dataset: str, house: int, targets: tuple[str, ...], aggregate: Aggregate) -> str:
    return household_digest(workspace.household(dataset, house, aggregate), targets)


@cache
def _library(path: str | None) -> Library:
    return read_library(None if path is None else Path(path))
