"""The paper's protocols: training and test days, target appliances and on-thresholds.

Where the paper is silent or contradicts itself, D1, D2, D10, D12, D15 and D16 decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from meterveil.data.household import Aggregate, Household, kind
from meterveil.data.splits import HELD_OUT_DAYS, Days, day_range, held_out_days, only_days, training_and_validation_days
from meterveil.errors import InputError

Dataset = Literal["ukdale", "redd", "refit"]

ON_THRESHOLD_W: dict[str, float] = {
    "kettle": 1000.0,
    "microwave": 200.0,
    "toaster": 500.0,
    "fridge": 50.0,
    "dishwasher": 20.0,
    "washing_machine": 20.0,
    "washer_dryer": 20.0,
    "lighting": 50.0,
    "kitchen_outlets": 50.0,
}
"""Lowest minute mean at which an appliance is on, for truth and prediction alike (D10)."""

OTHER_ON_W = 50.0
"""The same for any other appliance: above the standby of most devices, below the power of those in use."""


@dataclass(frozen=True)
class Protocol:
    """Training and test days of a house, and the appliances that attackers predict."""

    dataset: Dataset
    house: int
    training: Days
    """Civil days (D1); the last fifth of them validates."""
    test: Days
    """The main test day first."""
    targets: tuple[str, ...]
    """Appliances of the paper's tables, by canonical name."""
    paper_names: tuple[str, ...]
    """Names of the targets in the paper's tables."""
    many_day_targets: tuple[str, ...]
    """Appliances of the tables over many days (D12, D16)."""
    aggregate: Aggregate = "mains"
    """Source of the load: by default the real mains channel, not a sum of sub-meters (D2)."""

    @property
    def summed(self) -> tuple[str, ...]:
        """Sub-meters that make up the load or a part of it; none for the mains channel."""
        return () if self.aggregate == "mains" else self.many_day_targets

    def split(self, household: Household) -> tuple[Days, Days]:
        """Split the training days into those that train and the last fifth, which validates."""
        return training_and_validation_days(only_days(household, self.training))

    def held_out(self, household: Household, min_days: int = HELD_OUT_DAYS) -> Days:
        """List the well covered days of the same house outside training and validation (D16)."""
        present = [name for name in self.many_day_targets if name in household.appliances_w]
        return held_out_days(household.select(present), self.training, min_days=min_days)

    def present_targets(self, household: Household, day: date) -> tuple[str, ...]:
        """Name the targets that were metered and on at some minute of this day (D12)."""
        known = household.day(day).appliances_w
        return tuple(
            name for name in self.targets if name in known and bool((known[name] >= on_threshold_w(name)).any())
        )


@dataclass(frozen=True)
class EvaluationDay:
    """Row of the paper's tables on other days and houses."""

    dataset: Dataset
    house: int
    day: date
    label: str
    active_appliances: int
    """Active appliances on this day, according to the paper."""


UKDALE_HOUSE1 = Protocol(
    dataset="ukdale",
    house=1,
    training=day_range(date(2013, 3, 19), date(2013, 3, 29)),
    test=(date(2013, 3, 18),),
    targets=("fridge", "kettle", "microwave", "toaster"),
    paper_names=("Fridge freezer", "Kettle", "Microwave", "Toaster"),
    many_day_targets=("fridge", "kettle", "microwave", "dishwasher"),
)

REDD_HOUSE2 = Protocol(
    dataset="redd",
    house=2,
    training=day_range(date(2011, 4, 19), date(2011, 4, 29)),
    test=(date(2011, 4, 29), date(2011, 4, 30)),
    targets=("fridge", "lighting", "microwave", "kitchen_outlets_1", "kitchen_outlets_2"),
    paper_names=("Fridge", "Light", "Microwave", "Sockets 1", "Sockets 2"),
    many_day_targets=("fridge", "lighting", "microwave", "kitchen_outlets_1", "kitchen_outlets_2"),
)

PROTOCOLS: dict[str, Protocol] = {"ukdale": UKDALE_HOUSE1, "redd": REDD_HOUSE2}


def _further(dataset: Dataset, house: int, training: Days, *targets: str) -> Protocol:
    return Protocol(dataset, house, training, (), targets, (), targets)


_UKDALE_2_DAYS = day_range(date(2013, 5, 21), date(2013, 5, 31))
_REFIT_2_DAYS = (*day_range(date(2014, 3, 2), date(2014, 3, 10)), date(2014, 3, 11), date(2014, 3, 12))

FURTHER_HOUSES: dict[tuple[str, int], Protocol] = {
    ("ukdale", 2): _further(
        "ukdale", 2, _UKDALE_2_DAYS, "fridge", "kettle", "microwave", "dishwasher", "washing_machine"
    ),
    ("refit", 2): _further("refit", 2, _REFIT_2_DAYS, "kettle", "microwave", "dishwasher", "washing_machine"),
}
"""Data set and house -> protocol beyond the paper: the first ten well-covered days in use train."""

UKDALE_EVALUATION_DAYS = (
    EvaluationDay("ukdale", 1, date(2013, 3, 18), "Spring-Monday, Main", 4),
    EvaluationDay("ukdale", 1, date(2013, 1, 18), "Winter-Friday", 4),
    EvaluationDay("ukdale", 1, date(2013, 3, 30), "Spring-Saturday", 1),
    EvaluationDay("ukdale", 4, date(2013, 3, 30), "Spring-Saturday", 2),
    EvaluationDay("ukdale", 1, date(2013, 7, 15), "Summer-Monday", 4),
    EvaluationDay("ukdale", 2, date(2013, 7, 15), "Summer-Monday", 3),
)
"""Rows of the paper's table of held-out days on UK-DALE, in its order."""

REDD_EVALUATION_DAYS = (
    EvaluationDay("redd", 2, date(2011, 4, 29), "Spring-Friday, Main", 5),
    EvaluationDay("redd", 2, date(2011, 4, 30), "Spring-Saturday", 5),
    EvaluationDay("redd", 1, date(2011, 4, 26), "Spring-Tuesday", 3),
    EvaluationDay("redd", 3, date(2011, 5, 25), "Spring-Wednesday", 3),
    EvaluationDay("redd", 4, date(2011, 5, 1), "Spring-Sunday", 1),
)
"""Rows of the paper's table of held-out days on REDD, in its order."""

LIBRARY_DAYS: dict[int, Days] = {1: UKDALE_HOUSE1.training, 2: _UKDALE_2_DAYS}
"""UK-DALE house -> days of the signature library; of house 2, its first ten whole days (D15)."""


def protocol(name: str) -> Protocol:
    """Look up a protocol by name."""
    if name not in PROTOCOLS:
        raise InputError(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def on_threshold_w(appliance: str) -> float:
    """Return the on-threshold of an appliance; `kitchen_outlets_2` counts as `kitchen_outlets`."""
    return ON_THRESHOLD_W.get(kind(appliance), OTHER_ON_W)
