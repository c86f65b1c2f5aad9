"""What must be installed before a verb begins: only what it was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from meterveil.errors import InputError
from meterveil.extras import how_to_install

WITHOUT_TORCH = {"co", "fhmm", "mean", "off", "prior"}
"""Attackers of ours that are no networks; what another package's needs, that package brings."""


def check_installed(doing: str, attackers: Iterable[str] = ()) -> None:
    """Refuse to begin where these attackers could not be fitted; without names, where none could."""
    from meterveil.attackers.registry import ATTACKERS  # noqa: PLC0415  heavy imports wait for the verb

    needed = ["joblib", "safetensors"]
    if (ATTACKERS.keys() & set(attackers)) - WITHOUT_TORCH:
        needed.append("torch")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise InputError(f"{doing} needs {', '.join(missing)}; get it with {how_to_install('train')}")
