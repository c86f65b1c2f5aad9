"""What an attacker knows of the defence: nothing (`fixed`), or everything but its dice (`adaptive`); D11."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from meterveil.attackers.fitting import Options, fit
from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import FLOORS
from meterveil.core.rollout import Policy
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, mask

COPIES = 12
"""Masked copies of the training days that an adaptive attacker learns from, each with dice of its own."""


def masked_copies(
    policy: Policy, setup: Setup, households: Sequence[Household], copies: int, seed: int
) -> list[Household]:
    """Make what an adaptive attacker learns from: each copy of each household with dice of its own."""
    rngs = [np.random.default_rng([seed, copy, 0xADA9]) for copy in range(copies)]
    return [copy for household in households for copy in mask(policy, setup, household, rngs).households]


def fixed(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    **options: Unpack[Options],
) -> dict[str, Attacker]:
    """Fit attackers on clean data: they have never seen a defence, as in the paper."""
    return fit(names, households, targets, seed, **options)


def adaptive(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    policy: Policy,
    setup: Setup,
    copies: int = COPIES,
    **options: Unpack[Options],
) -> dict[str, Attacker]:
    """Fit attackers on what this very defence made of the training days, labelled with the truth.

    Those that never see the meter have nothing to adapt to; copies would only repeat their days.
    """
    blind = [name for name in names if name in FLOORS]
    seeing = [name for name in names if name not in FLOORS]
    copied = masked_copies(policy, setup, households, copies, seed) if seeing else []
    return fit(blind, households, targets, seed, **options) | fit(seeing, copied, targets, seed, **options)
