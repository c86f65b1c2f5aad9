"""UK-DALE as released: five British homes, `house_N/channel_N.dat`, every six seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meterveil.data.household import Household
from meterveil.data.release import Aggregate, House, Release, find_houses, read_house

UKDALE = Release(
    title="UK-DALE",
    timezone="Europe/London",
    mains_label="aggregate",
    mains_unit="VA",
    appliance_unit="W",
)
"""The aggregate is apparent power, as its clamp measures no voltage; the plugs measure active power."""


def read_ukdale(
    folder: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: Aggregate = "mains",
) -> Household:
    """Read one house of the release folder `folder`, or the house whose folder it is.

    Channels of one house cover different minutes: the household spans those of the aggregate, and an
    appliance is unknown where it has no reading.
    """
    return read_house(UKDALE, folder, house, appliances, aggregate)


def ukdale_houses(folder: str | Path) -> dict[str, House]:
    """List houses and their channels without reading any."""
    return find_houses(UKDALE, folder)
