"""Protocol of attackers: learn from households with known appliances, then estimate them from a meter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import AGGREGATE as AGGREGATE  # noqa: PLC0414 - imported from here too
from meterveil.data.household import Household
from meterveil.errors import InputError

Arrays = Mapping[str, npt.NDArray[Any]]
"""Everything that an attacker learned, by name."""


class Meter(NamedTuple):
    """Input of an attacker: readings and their local time, (batch, minute) each; NaN where unknown."""

    reading_w: FloatArray
    minute_of_day: IntArray
    weekday: IntArray  # Monday is 0
    after_w: FloatArray = np.empty((1, 0))
    """(batch, any) readings that follow; most attackers do not use them."""


class Prediction(NamedTuple):
    """Output of an attacker, target -> (batch, minute)."""

    watts: Mapping[str, FloatArray]
    on: Mapping[str, FloatArray]
    """On-probability of each appliance; empty if the attacker has no on/off output."""


class Attacker(Protocol):
    """Estimator of appliances that can be fitted, used and stored without code."""

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Learn the targets (appliances or `AGGREGATE`) from these households; return the fitted attacker.

        The last fifth of each household's days is used for validation only.
        """
        ...

    def predict(self, meter: Meter) -> Prediction:
        """Estimate every target from the meter."""
        ...

    def arrays(self) -> Arrays:
        """Return everything learned, as named arrays."""
        ...

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        """Return the fitted attacker that `arrays` came from."""
        ...


def below(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with a prefix, named without it."""
    return {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}


def meter_of(household: Household) -> Meter:
    """Return a household's meter as an attacker sees it, a batch of one."""
    minutes = household.minutes
    minute_of_day = np.asarray(minutes.hour * 60 + minutes.minute, dtype=np.int64)
    weekday = np.asarray(minutes.day_of_week, dtype=np.int64)
    return Meter(household.aggregate_w[None], minute_of_day[None], weekday[None])


def meters_of(days: Sequence[Household]) -> list[Meter]:
    """Return the meter of each day, followed by the next one where that is among the days."""
    meters = [meter_of(day) for day in days]
    for n, (day, after) in enumerate(pairwise(days)):
        if after.minutes[0] - day.minutes[-1] == timedelta(minutes=1):
            meters[n] = meters[n]._replace(after_w=meters[n + 1].reading_w)
    return meters


def truth_w(household: Household, target: str) -> FloatArray:
    """Return the true power of a target, (minute,); a masked household keeps its true load."""
    if target == AGGREGATE and AGGREGATE not in household.appliances_w:
        return household.aggregate_w
    return household.select([target]).appliances_w[target]


def filled(reading_w: FloatArray) -> FloatArray:
    """Repeat the last known reading in gaps, along the last axis; zero before the first one.

    Models need a number in every minute; scores leave unknown minutes out.
    """
    known = ~np.isnan(reading_w)
    last = np.maximum.accumulate(np.where(known, np.arange(reading_w.shape[-1]), 0), axis=-1)
    return np.nan_to_num(np.take_along_axis(reading_w, last, axis=-1))


def check_targets(households: Sequence[Household], targets: Sequence[str]) -> None:
    """Refuse a fit without households, targets or known minutes."""
    if not households or not targets:
        raise InputError("an attacker needs at least one household and one target to learn from")
    for household in households:
        for target in targets:
            if np.isnan(truth_w(household, target)).all():
                raise InputError(f"{household.name}: {target} has no known minute to learn from")
