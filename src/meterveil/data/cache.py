"""Cache folder, cache keys, and parsed minute means as Parquet.

A key is a hash of what decides a result: its settings, its data, the versions of the libraries that compute,
and the VERSION of the module that produces it. Source code is never hashed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from meterveil.data.household import Series
from meterveil.data.outputs import write_whole
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.data.household import Household

READER_VERSION = 2
"""Version of the file readers; raise it when a reader gives other minutes for the same file."""

ENCODING = {"minute": "DELTA_BINARY_PACKED", "watts": "PLAIN"}
"""Consecutive minutes compress well; compressing the watts costs more time than it saves."""

SMALLEST_CACHED_BYTES = 1_000_000
"""Size below which parsing a file is faster than using the cache."""


def key_of(*parts: Any) -> str:
    """Hash parts that JSON can express (numbers, text, lists, dicts); equal parts give equal keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def library_versions(*names: str) -> dict[str, str]:
    """Return the versions of these libraries; one that is not installed is left out."""
    versions = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def household_digest(household: Household, targets: Sequence[str]) -> str:
    """Hash the minutes, the meter and the target appliances of a household.

    A masked household lists its true load as an appliance; without one, the meter is the true load.
    """
    digest = hashlib.sha256(household.timezone.encode())
    digest.update(household.minutes.as_unit("s").asi8.tobytes())
    digest.update(household.aggregate_w.tobytes())
    for target in targets:
        digest.update(target.encode())
        digest.update(household.appliances_w.get(target, np.zeros(0)).tobytes())
    return digest.hexdigest()[:24]


def cached(path: Path, key: str, read: Callable[[], Series]) -> Series:
    """Return what `read` makes of the file at `path`, from the cache if it has an entry.

    `key` distinguishes several series that are read from one file, such as its columns. An entry belongs to
    the file's path, size and modification time. A damaged cache is ignored and the file is read.
    """
    status = path.stat()
    if status.st_size < SMALLEST_CACHED_BYTES:
        return read()
    identity = key_of(str(path.resolve()), status.st_size, status.st_mtime_ns, READER_VERSION, key)
    entry = cache_folder() / f"{identity}.parquet"
    known = _load(entry)
    if known is not None:
        return known
    series = read()
    with contextlib.suppress(InputError):
        _store(entry, series)
    return series


def cache_folder() -> Path:
    """Return the cache folder: `$METERVEIL_CACHE`, or the default of the platform."""
    if named := os.environ.get("METERVEIL_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meterveil"


def _load(entry: Path) -> Series | None:
    try:
        table = parquet.read_table(entry)
        notes = tuple(json.loads(table.schema.metadata[b"notes"]))
        minute = table["minute"].to_numpy().astype(np.int64, copy=False)
        return Series(minute, table["watts"].to_numpy().astype(np.float64, copy=False), notes)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def _store(entry: Path, series: Series) -> None:
    table = pa.table({"minute": series.minute, "watts": series.watts})
    table = table.replace_schema_metadata({"notes": json.dumps(series.notes)})
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    write_whole(entry, lambda half: parquet.write_table(table, half, column_encoding=ENCODING, **plain))
