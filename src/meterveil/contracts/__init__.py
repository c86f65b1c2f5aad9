"""What every attacker and every defence keeps, whoever wrote it.

Another package checks its own in one line of a test, `check_defence(Quiet)`, or by name, once its entry point
is installed: `python -m meterveil.contracts quiet`.
"""

from __future__ import annotations

from collections.abc import Callable

from meterveil.attackers.protocol import Attacker
from meterveil.contracts.attackers import ATTACKER_LAWS, AttackerCase
from meterveil.contracts.defences import DEFENCE_LAWS, DefenceCase
from meterveil.contracts.law import BrokenLawError, Law, check, title, verdicts
from meterveil.core.rollout import Policy

__all__ = [
    "ATTACKER_LAWS",
    "DEFENCE_LAWS",
    "AttackerCase",
    "BrokenLawError",
    "DefenceCase",
    "Law",
    "check_attacker",
    "check_defence",
    "title",
    "verdicts",
]


def check_attacker(build: Callable[[], Attacker], looks: bool = True) -> None:
    """Raise `BrokenLawError` with all that an attacker does not keep.

    It is built and fitted anew for most laws, so `build` should return one that learns within seconds. Not
    one that never `looks` at the meter is expected to read it.
    """
    check(ATTACKER_LAWS, AttackerCase(build, looks=looks))


def check_defence(build: Callable[[], Policy], moves: bool = True) -> None:
    """Raise `BrokenLawError` with all that a defence does not keep; `moves` unless it is meant to rest."""
    check(DEFENCE_LAWS, DefenceCase(build, moves))
