"""Threat models (D11): fixed attackers never saw the defence, adaptive ones know all but its random draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from meterveil.attackers.fitting import Known, Options, fit
from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import FLOORS, INFORMED
from meterveil.core.rollout import Policy
from meterveil.data.cache import household_digest
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, mask

COPIES = 12
"""Masked copies of the training days that an adaptive attacker learns from."""


def masked_copies(
    policy: Policy, setup: Setup, households: Sequence[Household], copies: int, seed: int
) -> list[Household]:
    """Mask the training days of each household, each copy with random draws of its own."""
    rngs = [np.random.default_rng([seed, copy, 0xADA9]) for copy in range(copies)]
    return [copy for household in households for copy in mask(policy, setup, household, rngs).households]


def fixed(
    names: Sequence[str],
    households: Sequence[Household],
    targets: Sequence[str],
    seed: int,
    **options: Unpack[Options],
) -> dict[str, Attacker]:
    """Fit attackers to clean data, without a defence, as the paper does."""
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
    """Fit attackers to training days that this defence masked, labelled with the truth.

    An informed attacker gets the clean days and the defence. Baselines that never see the meter are fitted to
    the clean days: copies would only repeat them.
    """
    blind = [name for name in names if name in FLOORS]
    informed = [name for name in names if name in INFORMED]
    seeing = [name for name in names if name not in (*FLOORS, *INFORMED)]
    fitted = fit(blind, households, targets, seed, **options)
    if seeing:
        copied = masked_copies(policy, setup, households, copies, seed)
        fitted |= fit(seeing, copied, targets, seed, **options)
    if informed:
        shown = masked_copies(policy, setup, households, 1, seed)
        known = Known(policy, setup, tuple(household_digest(home, ()) for home in shown))
        fitted |= fit(informed, households, targets, seed, known=known, **options)
    return fitted
