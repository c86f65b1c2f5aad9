"""REDD as released: six American homes, `low_freq/house_N/channel_N.dat`, every three seconds or so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from meterveil.data.household import Household
from meterveil.data.release import Aggregate, House, Release, find_houses, read_house

REDD = Release(
    title="REDD",
    timezone="America/New_York",
    mains_label="mains",
    mains_unit="VA",
    appliance_unit="VA",
    subfolder="low_freq",
)
"""The release documents the low-frequency readings of mains and circuits alike as apparent power."""


def read_redd(
    folder: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: Aggregate = "mains",
) -> Household:
    """Read one house of the release (`redd` or `redd/low_freq`), or the house whose folder it is.

    An American home has two mains, which add up to the aggregate; a minute needs both. A mains that stands
    alone is the total.
    """
    return read_house(REDD, folder, house, appliances, aggregate)


def redd_houses(folder: str | Path) -> dict[str, House]:
    """List houses and their channels without reading any."""
    return find_houses(REDD, folder)
