"""What a result depends on: the hash of the code that made it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path


@cache
def code_hash(module: str) -> str:
    """Hash a module and all that it imports of its own package and of this one.

    Another file's change changes nothing.
    """
    digest = hashlib.sha256()
    for path in sorted(_sources(module)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(module: str) -> set[Path]:
    ours = {"meterveil", _root(module)}
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _source(name)
        if path is not None:
            found[name] = path
            waiting += (other for other in _imported(name, path) if _root(other) in ours)
    return set(found.values())


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
    """Name what a file imports; a compiled one does not tell."""
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes() if path.suffix == ".py" else b"")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
