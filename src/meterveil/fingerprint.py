"""What a result depends on: the hash of the code that made it, less what cannot change a number."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

_LEFT_OUT = {
    "meterveil",
    "meterveil.attackers.registry",
    "meterveil.bench.cards",
    "meterveil.bench.reported",
    "meterveil.cli",
    "meterveil.data.cache",
    "meterveil.data.channels",
    "meterveil.data.load",
    "meterveil.data.outputs",
    "meterveil.data.settings",
    "meterveil.data.signatures",
    "meterveil.data.synthetic",
    "meterveil.defenders.bundle",
    "meterveil.defenders.run_folder",
    "meterveil.defenders.defence",
    "meterveil.plugins",
    "meterveil.errors",
    "meterveil.fingerprint",
}
"""Modules that read, write, look up or complain: what they read is hashed itself."""


@cache
def code_hash(*modules: str) -> str:
    """Hash modules and all that they import of their own packages and of this one, and that computes.

    Another file's change changes nothing.
    """
    found = sources(*modules)
    return hashlib.sha256(b"".join(found[name].read_bytes() for name in sorted(found))).hexdigest()


def sources(*modules: str) -> dict[str, Path]:
    """Return the files that `code_hash` reads, by name of module."""
    ours = {"meterveil", *map(_root, modules)}
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in found or _is_left_out(name) else _source(name)
        if path is not None and path.suffix == ".py":  # a compiled file belongs to one machine
            found[name] = path
            waiting += (other for other in _imported(name, path) if _root(other) in ours)
    return found


def _is_left_out(module: str) -> bool:
    parents = module.split(".")
    return module in _LEFT_OUT or any(".".join(parents[:n]) in _LEFT_OUT for n in range(2, len(parents)))


def _root(module: str) -> str:
    return module.partition(".")[0]


def _source(module: str) -> Path | None:
    """Find a module's file; None for a name inside a module, which `from a import b` may be as well."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _imported(module: str, path: Path) -> Iterator[str]:
    """Name what a file imports: of `from a import b` the module `b` where it is one, else `a`."""
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                is_module = _root(origin) in ("meterveil", _root(module)) and _source(inner) is not None
                yield inner if is_module else origin
