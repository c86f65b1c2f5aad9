"""What every kind of training asks for: days to learn from, and a trade-off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, episodes
from meterveil.errors import InputError


def training_scenario(household: Household, days: Sequence[date], setup: Setup) -> Scenario:
    """Make an episode of every day."""
    if not days:
        raise InputError(
            f"{household.name} records no civil day from midnight to midnight that could be learned from; "
            f"it holds {household.minutes[0]:%Y-%m-%d %H:%M} to {household.minutes[-1]:%Y-%m-%d %H:%M}: "
            "give a longer record"
        )
    return episodes(household, days, setup.tariff)


def check_lambda(weight: float) -> float:
    """Refuse a trade-off outside `eq:total_reward`."""
    if not 0.0 <= weight <= 1.0:
        raise InputError(f"lambda is {weight:g}; allowed is 0 (cost alone) to 1 (privacy alone)")
    return weight
