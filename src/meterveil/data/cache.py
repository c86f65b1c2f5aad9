"""Keep minute means as Parquet, so that a large file is parsed once.

An entry is found by what identifies the file: its path, size and time of change, and the version of the
reader. The cache is a convenience: whatever is wrong with it, the file itself is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from meterveil.data.minutes import Series

READER_VERSION = 2
"""Goes up whenever a reader would give other minutes for the same file."""

ENCODING = {"minute": "DELTA_BINARY_PACKED", "watts": "PLAIN"}
"""Minutes mostly follow each other and shrink to nothing; the watts cost more time than they would save."""

SMALLEST_CACHED_BYTES = 1_000_000
"""A smaller file is parsed faster than its entry is found."""


def cached(path: Path, key: str, read: Callable[[], Series]) -> Series:
    """Return what `read` makes of the file at `path`, from the cache where it is known.

    `key` tells apart several things that are read from one file, such as its columns.
    """
    if path.stat().st_size < SMALLEST_CACHED_BYTES:
        return read()
    entry = cache_folder() / f"{_identity(path, key)}.parquet"
    known = _load(entry)
    if known is not None:
        return known
    series = read()
    with contextlib.suppress(OSError):
        _store(entry, series)
    return series


def cache_folder() -> Path:
    """Folder of the entries: `$METERVEIL_CACHE`, or the platform's place for caches."""
    if named := os.environ.get("METERVEIL_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meterveil"


def _identity(path: Path, key: str) -> str:
    status = path.stat()
    parts = [str(path.resolve()), status.st_size, status.st_mtime_ns, READER_VERSION, key]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _load(entry: Path) -> Series | None:
    try:
        table = parquet.read_table(entry)
        notes = tuple(json.loads(table.schema.metadata[b"notes"]))
        minute = table["minute"].to_numpy().astype(np.int64, copy=False)
        return Series(minute, table["watts"].to_numpy().astype(np.float64, copy=False), notes)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
        return None


def _store(entry: Path, series: Series) -> None:
    """Write beside the entry and rename, so that no reader ever meets half an entry."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"minute": series.minute, "watts": series.watts})
    table = table.replace_schema_metadata({"notes": json.dumps(series.notes)})
    descriptor, temporary = tempfile.mkstemp(dir=entry.parent, suffix=".part")
    os.close(descriptor)
    try:
        parquet.write_table(
            table,
            temporary,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            column_encoding=ENCODING,
        )
        Path(temporary).replace(entry)
    finally:
        Path(temporary).unlink(missing_ok=True)
