"""Contracts: the laws that every attacker and every defence keeps, built-in or plug-in.

Another package checks its own in a test, `check_defence(Quiet)`, or by name once its entry point is
installed: `python -m meterveil.contracts quiet`.
"""

from __future__ import annotations

from collections.abc import Callable

from meterveil.attackers.protocol import Attacker
from meterveil.contracts.attackers import ATTACKER_LAWS, AttackerCase
from meterveil.contracts.defences import DEFENCE_LAWS, DefenceCase
from meterveil.contracts.law import BrokenLawError, check
from meterveil.core.rollout import Policy

__all__ = ["BrokenLawError", "check_attacker", "check_defence"]


def check_attacker(build: Callable[[], Attacker], looks: bool = True) -> None:
    """Raise `BrokenLawError` with every law that an attacker breaks.

    Most laws build and fit it again, so `build` should return one that is fitted within seconds. Give
    `looks=False` for a baseline that never sees the meter.
    """
    check(ATTACKER_LAWS, AttackerCase(build, looks=looks))


def check_defence(build: Callable[[], Policy], moves: bool = True) -> None:
    """Raise `BrokenLawError` with every law that a defence breaks; `moves=False` for one that never acts."""
    check(DEFENCE_LAWS, DefenceCase(build, moves))
