"""Signatures on disk: the data that they are built from, and the one JSON file that freezes them.

The file is a signature library as `docs/formats.md` describes it, and says of each signature where and when
it was recorded. Its SHA-256 is checked on reading: results that name a library must mean the same watts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from meterveil.core.decoys import Library
from meterveil.data import outputs
from meterveil.data.household import Household
from meterveil.data.listing import houses
from meterveil.data.load import describe, load
from meterveil.data.names import kind
from meterveil.data.protocols import LIBRARY_DAYS
from meterveil.data.signatures import APPLIANCES, Collection, Signature
from meterveil.data.synthetic import decoy_library
from meterveil.errors import InputError

_ORIGIN = ("house", "day", "start")
_HASH = "sha256"


def read_houses(data: Path) -> dict[int, Household]:
    """Read the houses that signatures come from; `data` holds a folder `ukdale`, or is the release itself."""
    source = data / "ukdale" if (data / "ukdale").is_dir() else data
    found = describe(source)
    if found.kind not in ("ukdale", "nilmtk"):
        raise InputError(
            f"{source} is read as {found.kind}; signatures are built from UK-DALE, give its folder"
        )
    missing = [str(house) for house in LIBRARY_DAYS if house not in found.houses]
    if missing:
        raise InputError(
            f"{source} has no house {' or '.join(missing)}; "
            f"signatures are built from houses {' and '.join(map(str, LIBRARY_DAYS))} of UK-DALE, give both"
        )
    known = houses(source)
    return {house: _read_house(source, house, known[house]) for house in LIBRARY_DAYS}


def _read_house(source: Path, house: int, known: tuple[str, ...]) -> Household:
    """Read only the channels that can hold a signature, where the source tells its channels beforehand."""
    wanted = [name for name in known if kind(name) in APPLIANCES]
    if known and not wanted:
        raise InputError(
            f"{source}, house {house} meters {', '.join(known)}; none of them is {', '.join(APPLIANCES)}"
        )
    return load(source, house, appliances=wanted or None)


def save(collection: Collection, path: Path) -> Path:
    """Write the file, whole or not at all."""
    document = json.loads(collection.library().to_json())
    for row, one in zip(document["signatures"], collection.signatures, strict=True):
        row.update(_origin(one))
    frozen = {**document, _HASH: _hash_of(document)}
    return outputs.write_text(path, json.dumps(frozen, indent=1) + "\n")


def read(path: Path | None = None) -> Collection:
    """Read a library with what it says of its origin, or build the synthetic one that ships."""
    if path is None:
        return Collection.of_library(decoy_library())
    text = _read_text(path)
    try:
        library = Library.from_json(text)
        document = json.loads(text)
        rows = document["signatures"]
        _check_unaltered(document)
        pairs = zip(Collection.of_library(library).signatures, rows, strict=True)
        return Collection(library.source, tuple(_with_origin(one, row) for one, row in pairs))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def library(path: Path | None = None) -> Library:
    """Read what the battery replays, or build the synthetic library that ships."""
    return read(path).library()


def _origin(one: Signature) -> dict[str, Any]:
    day = one.day.isoformat() if one.day else None
    stated = zip(_ORIGIN, (one.house, day, one.start or None), strict=True)
    return {key: value for key, value in stated if value is not None}


def _with_origin(one: Signature, row: Mapping[str, Any]) -> Signature:
    house, day, start = (row.get(key) for key in _ORIGIN)
    try:
        recorded = date.fromisoformat(day) if day is not None else None
        number = int(house) if house is not None else None
        return Signature(one.name, one.watts, number, recorded, str(start or ""))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{one.name} comes from house {house!r}, day {day!r}; write them as 1 and 2013-03-19"
        ) from error


def _check_unaltered(document: Mapping[str, Any]) -> None:
    """Compare the content with its hash; a library written by hand states neither hash nor origin."""
    states_origin = any(key in row for row in document["signatures"] for key in _ORIGIN)
    if _HASH not in document and not states_origin:
        return
    content = {key: value for key, value in document.items() if key != _HASH}
    if document.get(_HASH) != _hash_of(content):
        raise InputError(
            f"its content does not match its {_HASH}, so it was altered after it was built; build it again "
            f"with meterveil signatures build, or remove {_HASH}, {', '.join(_ORIGIN)} to make it your own"
        )


def _hash_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {path}: {reason}; give a JSON file of signatures") from error
