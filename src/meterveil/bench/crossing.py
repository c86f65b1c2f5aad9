"""Attackers that never saw the house: learned from some houses, they read another.

Days are those on which every channel of the crossing knows at least `COMPLETE` of its minutes; a training day
of UK-DALE house 1 is one of the paper's ten, gaps or not, so that only the house differs from the strength
tables. Its crossings learn what those tables learn, scored here or not, so that their fits serve here too. No
day that the paper evaluates teaches anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from meterveil.bench.strength import HouseDays, Trial
from meterveil.data.protocols import UKDALE_HOUSE1
from meterveil.data.splits import day_range
from meterveil.errors import InputError

COMPLETE = 0.95


@dataclass(frozen=True)
class Crossing:
    """Say which houses teach and which is read."""

    name: str
    training: tuple[HouseDays, ...]
    test: HouseDays
    targets: tuple[str, ...]
    """Appliances that all of them have and the read one uses."""
    also_learned: tuple[str, ...] = ()
    """Further targets of the same fit, not scored."""

    def trial(self, seed: int = 0) -> Trial:
        """Turn it into what can be measured."""
        settings = {
            "training": [
                {"house": f"{part.dataset} {part.house}", "days": [str(day) for day in part.days]}
                for part in self.training
            ],
            "test": {
                "house": f"{self.test.dataset} {self.test.house}",
                "days": [str(day) for day in self.test.days],
            },
            "aggregate": "mains",
        }
        return Trial(
            table=f"crossing_{self.name}",
            training=self.training,
            test=self.test,
            targets=self.targets,
            settings=settings,
            also_learned=self.also_learned,
            seed=seed,
        )


_UKDALE_1 = HouseDays("ukdale", 1, UKDALE_HOUSE1.training)
_REDD_1 = HouseDays(
    "redd",
    1,
    (
        date(2011, 4, 20),
        *day_range(date(2011, 4, 22), date(2011, 4, 26)),
        date(2011, 4, 27),
        *day_range(date(2011, 4, 30), date(2011, 5, 3)),
        date(2011, 5, 23),
    ),
)
_REDD_3 = HouseDays(
    "redd",
    3,
    (
        date(2011, 4, 18),
        date(2011, 4, 20),
        *day_range(date(2011, 4, 22), date(2011, 4, 24)),
        *day_range(date(2011, 4, 26), date(2011, 4, 28)),
        date(2011, 5, 23),
        date(2011, 5, 26),
    ),
)

CROSSINGS: dict[str, tuple[Crossing, ...]] = {
    "redd": (
        Crossing(
            name="redd_1_3_to_2",
            training=(_REDD_1, _REDD_3),
            test=HouseDays("redd", 2, (date(2011, 4, 20), *day_range(date(2011, 4, 22), date(2011, 5, 1)))),
            targets=("fridge", "microwave", "dishwasher"),
        ),
    ),
    "ukdale": (
        Crossing(
            name="ukdale_1_to_2",
            training=(_UKDALE_1,),
            test=HouseDays("ukdale", 2, day_range(date(2013, 7, 8), date(2013, 7, 22))),
            targets=("fridge", "kettle", "microwave", "dishwasher"),
            also_learned=UKDALE_HOUSE1.many_day_targets,
        ),
        Crossing(
            name="ukdale_1_to_refit_2",
            training=(_UKDALE_1,),
            test=HouseDays(
                "refit",
                2,
                (
                    *day_range(date(2014, 3, 11), date(2014, 3, 21)),
                    *day_range(date(2014, 3, 22), date(2014, 3, 26)),
                ),
            ),
            targets=("kettle", "microwave", "dishwasher"),
            also_learned=UKDALE_HOUSE1.many_day_targets,
        ),
    ),
}
"""Data set that teaches -> crossings; to add one, write it here."""


def crossings(name: str) -> tuple[Crossing, ...]:
    """Look up the crossings of a data set."""
    if name not in CROSSINGS:
        raise InputError(f"there is no crossing {name!r}; there are {', '.join(CROSSINGS)}")
    return CROSSINGS[name]
