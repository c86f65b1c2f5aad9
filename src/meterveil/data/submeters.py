"""Names of sub-metered appliances, from the columns of a user's own table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from meterveil.data.household import Household, canonical, kind

UNIT_AT_END = re.compile(r"([ _]*\([kK]?(W|VA)\)|[ _][kK]?([wW]|VA|va))$")


def appliance_of(column: str) -> str:
    """Return the appliance that a column names: `Kettle (W)`, `kettle_w` and `kettle` are the same."""
    return canonical(UNIT_AT_END.sub("", column.strip()))


def name_appliances(household: Household) -> Household:
    """Name the sub-meters after their appliances; a name that is taken gets the next free number."""
    names = _unique_names(household.appliances_w)
    columns = zip(names, household.appliances_w, strict=True)
    return replace(
        household,
        appliances_w=dict(zip(names, household.appliances_w.values(), strict=True)),
        units={**household.units, **{name: household.units.get(column, "W") for name, column in columns}},
    )


def _unique_names(columns: Iterable[str]) -> list[str]:
    wanted = [appliance_of(column) for column in columns]
    names: list[str] = []
    for name in wanted:
        numbered = (f"{kind(name)}_{number}" for number in count(2))
        free = (other for other in numbered if other not in (*wanted, *names))
        names.append(name if name not in names else next(free))
    return names
