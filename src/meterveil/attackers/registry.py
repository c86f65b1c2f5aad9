"""Attackers by name; a module is imported only when it is needed, since most of them import torch."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import cast

from meterveil import plugins
from meterveil.attackers.protocol import Attacker
from meterveil.errors import unknown
from meterveil.plugins import ATTACKER_GROUP

ATTACKERS: dict[str, str] = {
    "co": "meterveil.attackers.co:CO",
    "fhmm": "meterveil.attackers.fhmm.attacker:FHMM",
    "dae": "meterveil.attackers.dae:dae",
    "seq2point": "meterveil.attackers.seq2point:seq2point",
    "electricity": "meterveil.attackers.electricity:electricity",
    "bert4nilm": "meterveil.attackers.bert4nilm:bert4nilm",
    "nilmformer": "meterveil.attackers.nilmformer:nilmformer",
    "informed": "meterveil.attackers.informed:Informed",
    "mean": "meterveil.attackers.baselines:Mean",
    "off": "meterveil.attackers.baselines:AlwaysOff",
    "prior": "meterveil.attackers.baselines:Prior",
}
"""Name -> module and factory; other packages add theirs by an entry point."""

PAPER_SIX = ("co", "fhmm", "dae", "seq2point", "electricity", "bert4nilm")
"""Attackers of the paper's tables, in their order."""

NETWORKS = ("dae", "seq2point", "electricity", "bert4nilm", "nilmformer", "informed")
"""Attackers that need torch; the others run with the `attack` extra alone."""

FLOORS = ("mean", "off", "prior")
"""Baselines that never see the meter."""

INFORMED = ("informed",)
"""Attackers that take the defence itself and mask their own training days (D17)."""


def needed_packages(names: Iterable[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return the packages that fitting these attackers needs, and the extra that installs them."""
    needs_torch = not set(NETWORKS).isdisjoint(names)
    packages = ("joblib", "safetensors", "scipy")
    return ((*packages, "torch"), "train") if needs_torch else (packages, "attack")


def attacker(name: str) -> Attacker:
    """Build the attacker of this name, unfitted, with its documented settings."""
    if name in ATTACKERS:
        module, factory = ATTACKERS[name].split(":")
        return cast(Attacker, getattr(import_module(module), factory)())
    if name not in known_attackers():
        raise unknown("attacker", name, known_attackers())
    return cast(Attacker, plugins.build_offered(ATTACKER_GROUP, name))


def version_of(name: str) -> int | str:
    """Return the `VERSION` of an attacker's module; a plug-in also has the version of its package."""
    if name in ATTACKERS:
        return cast(int, import_module(ATTACKERS[name].split(":")[0]).VERSION)
    check_known(name)
    version = getattr(import_module(plugins.module_offering(ATTACKER_GROUP, name)), "VERSION", 1)
    return f"{plugins.package_offering(ATTACKER_GROUP, name)}, version {version}"


def known_attackers() -> tuple[str, ...]:
    """Return the names of the built-in attackers, then of those that other packages add."""
    return (*ATTACKERS, *plugins.offered_names(ATTACKER_GROUP, ATTACKERS))


def check_known(name: str) -> None:
    """Refuse an unknown name, or a plug-in that cannot be loaded, before anything is fitted."""
    if name not in ATTACKERS:
        attacker(name)
