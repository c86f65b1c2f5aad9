"""The hash of the code that makes a result, without the files that cannot change a number."""

from __future__ import annotations

import hashlib
from functools import cache

from meterveil.fingerprint import _imported, _root, _source

_LEFT_OUT = (
    "meterveil.bench.cards",
    "meterveil.bench.reported",
    "meterveil.cli",
    "meterveil.data.cache",
    "meterveil.data.channels",
    "meterveil.data.listing",
    "meterveil.data.load",
    "meterveil.data.outputs",
    "meterveil.data.settings",
    "meterveil.data.signatures",
    "meterveil.data.synthetic",
    "meterveil.defenders.bundle",
    "meterveil.defenders.checkpoints",
    "meterveil.defenders.runs",
    "meterveil.defenders.trained",
    "meterveil.entry_points",
    "meterveil.errors",
    "meterveil.extras",
)
"""Beginnings of the names of modules that read and write files: what they read is hashed itself."""


@cache
def code_hash(*modules: str) -> str:
    """Hash modules of this package and all that they import of it and that computes."""
    found: dict[str, bytes] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        computes = name != "meterveil" and not name.startswith(_LEFT_OUT)
        path = _source(name) if computes and name not in found else None
        if path is not None and path.suffix == ".py":
            found[name] = path.read_bytes()
            waiting += (other for other in _imported(name, path) if _root(other) == "meterveil")
    return hashlib.sha256(b"".join(found[name] for name in sorted(found))).hexdigest()
