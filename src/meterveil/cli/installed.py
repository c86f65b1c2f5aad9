"""What must be installed before a verb begins: only what it was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from meterveil.errors import InputError
from meterveil.extras import how_to_install

WITHOUT_TORCH = {"co", "fhmm", "mean", "off", "prior"}
"""Attackers that are no networks."""


def check_installed(doing: str, attackers: Iterable[str] = ()) -> None:
    """Refuse to begin where these attackers could not be fitted; without names, where none could."""
    needed = ["joblib", "safetensors"]
    if not set(attackers) <= WITHOUT_TORCH:
        needed.append("torch")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise InputError(f"{doing} needs {', '.join(missing)}; get it with {how_to_install('train')}")
