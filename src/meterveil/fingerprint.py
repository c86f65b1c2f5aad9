"""What a result depends on: the hash of the code that made it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def code_hash(module: str) -> str:
    """Hash a module of this package and all that it imports of it: another file's change changes nothing."""
    digest = hashlib.sha256()
    for path in sorted(_sources(module)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(module: str) -> set[Path]:
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in found else _source(name)
        if path is not None:
            found[name] = path
            waiting += _imported(path)
    return set(found.values())


def _source(module: str) -> Path | None:
    """Find a module's file; None for a name inside a module, which `from a import b` may be as well."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("meterveil"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
