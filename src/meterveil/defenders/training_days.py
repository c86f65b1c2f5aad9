"""Days of a training, their scenario, and what a trained policy does on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Generic, TypeVar

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.rollout import Policy, rollout
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup, episodes
from meterveil.errors import InputError

LEAST_KNOWN = 0.5
"""Smallest share of known minutes of a training day; the battery rests where the load is unknown."""


AnyPolicy = TypeVar("AnyPolicy", bound=Policy)
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Trained(Generic[AnyPolicy, Entry]):
    """Trained policy and its learning curve."""

    policy: AnyPolicy
    curve: tuple[Entry, ...]
    seconds: float
    """Wall time of this process; a resumed training does not include the time before."""


def known_days(household: Household, begin: date | None = None) -> list[date]:
    """List the days from `begin` on that are known well enough to learn from."""
    days = [day for day in household.days() if begin is None or day >= begin]
    return [day for day in days if np.mean(~np.isnan(household.day(day).aggregate_w)) >= LEAST_KNOWN]


def training_scenario(household: Household, days: Sequence[date], setup: Setup) -> Scenario:
    """Make one episode of every day."""
    if not days:
        raise InputError(
            f"{household.name} has no whole civil day to learn from; it runs from "
            f"{household.minutes[0]:%Y-%m-%d %H:%M} to {household.minutes[-1]:%Y-%m-%d %H:%M}: "
            "give a longer record"
        )
    return episodes(household, days, setup.tariff)


def training_figures(policy: Policy, scenario: Scenario, setup: Setup) -> dict[str, float]:
    """Measure what a policy does on its training days."""
    rngs = [np.random.default_rng([setup.seed, row]) for row in range(scenario.batch)]
    trace = rollout(policy, setup.battery, setup.library, scenario, rngs)
    return {
        "training_days_moved_kwh": float(np.abs(trace.power_w).sum(axis=1).mean() * KWH_PER_W_MINUTE),
        "training_days_rms_w": float(np.sqrt(np.mean(trace.power_w**2))),
        "training_days_end_soc": float(trace.soc[:, -1].mean()),
        "training_days_load_std_w": float(np.nanstd(trace.load_w)),
        "training_days_meter_std_w": float(np.nanstd(trace.meter_w)),
    }
