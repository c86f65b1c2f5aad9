"""Readers of UK-DALE and REDD: folders `house_N` with `labels.dat` and `channel_N.dat`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np

from meterveil.data.appliances import choose_appliances, distinct
from meterveil.data.channels import read_channel
from meterveil.data.files import readable_file
from meterveil.data.household import Aggregate, Household, Unit
from meterveil.data.minutes import Series, to_household
from meterveil.errors import InputError

LABEL = re.compile(r"(\d+)\s+(\S.*?)\s*")
HOUSE = re.compile(r"house_(\d+)")


@dataclass(frozen=True)
class Release:
    """Layout and units of a data set."""

    title: str
    timezone: str
    mains_label: str
    """All channels with this label add up to what the meter reads."""
    mains_unit: Unit
    appliance_unit: Unit
    subfolder: str = ""
    """Folder of the houses inside the release, if they are not at its root."""


@dataclass(frozen=True)
class House:
    """Channels of one house, not yet read."""

    folder: Path
    mains: tuple[int, ...]
    """Channel numbers that add up to what the meter reads."""
    appliances: Mapping[str, int]
    """Canonical name -> channel number, in the order of the channels."""

    def channel_path(self, channel: int) -> Path:
        """Return the file of a channel, whether it exists or not."""
        return self.folder / f"channel_{channel}.dat"


def find_houses(release: Release, folder: str | Path) -> dict[str, House]:
    """List the houses of a release folder, or the one house whose folder it is, without reading channels."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of the {release.title} release")
    if (folder / "labels.dat").exists():
        return {folder.resolve().name: _read_house(release, folder)}
    root = folder / release.subfolder if (folder / release.subfolder).is_dir() else folder
    houses = sorted(
        (path for path in root.iterdir() if path.is_dir() and HOUSE.fullmatch(path.name)),
        key=lambda path: int(path.name.removeprefix("house_")),
    )
    if not houses:
        raise InputError(
            f"{folder} has neither labels.dat nor folders such as house_1; "
            f"give the {release.title} release or one house of it"
        )
    return {path.name: _read_house(release, path) for path in houses}


def read_house(
    release: Release,
    folder: str | Path,
    house: int | None,
    appliances: Sequence[str] | None,
    aggregate: Aggregate,
) -> Household:
    """Read one house with these appliances, or with all where `appliances` is None."""
    houses = find_houses(release, folder)
    name = choose_house(folder, houses, house)
    found = houses[name]
    wanted = choose_appliances(f"{release.title} {name}", found.appliances, appliances)
    channels = {key: found.appliances[key] for key in wanted}
    if aggregate == "mains" and not found.mains:
        raise InputError(
            f"{found.folder}: no channel is labelled {release.mains_label}; use aggregate='submeters'"
        )
    mains = found.mains if aggregate == "mains" else ()
    _check_files(found, [*mains, *channels.values()])
    units: dict[str, Unit] = {"aggregate": release.mains_unit} | dict.fromkeys(
        channels, release.appliance_unit
    )
    household = to_household(
        f"{release.title} {name}",
        total([read_channel(found.channel_path(channel)) for channel in mains]) if mains else None,
        {key: read_channel(found.channel_path(channel)) for key, channel in channels.items()},
        release.timezone,
        units,
    )
    if mains:
        return household
    return replace(household, units={**household.units, "aggregate": release.appliance_unit})


def total(parts: Sequence[Series]) -> Series:
    """Add up the legs of a mains supply; a minute that one of them lacks is unknown."""
    if len(parts) == 1:
        return parts[0]
    common = reduce(lambda left, right: np.intersect1d(left, right, True), [part.minute for part in parts])
    watts = np.sum([part.watts[np.searchsorted(part.minute, common)] for part in parts], axis=0)
    notes = tuple(note for part in parts for note in part.notes)
    return Series(common, watts, (f"sum of {len(parts)} mains channels", *notes))


def _read_house(release: Release, folder: Path) -> House:
    path = folder / "labels.dat"
    if not path.exists():
        raise InputError(f"{folder} has no labels.dat; give a whole house of the {release.title} release")
    labels: dict[int, str] = {}
    for number, line in enumerate(readable_file(path).read_text(encoding="utf-8").splitlines(), start=1):
        match = LABEL.fullmatch(line.strip())
        if match:
            labels[int(match[1])] = match[2]
        elif line.strip():
            raise InputError(f"{path}, line {number}: '{line}' is not '<channel> <name>'")
    mains = tuple(channel for channel, label in sorted(labels.items()) if label == release.mains_label)
    others = [channel for channel in sorted(labels) if channel not in mains]
    return House(folder, mains, dict(zip(distinct(labels[n] for n in others), others, strict=True)))


def _check_files(house: House, channels: Sequence[int]) -> None:
    missing = [house.channel_path(n).name for n in channels if not house.channel_path(n).exists()]
    if missing:
        raise InputError(
            f"{house.folder}: labels.dat lists channels without a file: {', '.join(missing)}; "
            "add the files, or name only appliances that have one"
        )


UKDALE = Release("UK-DALE", "Europe/London", mains_label="aggregate", mains_unit="VA", appliance_unit="W")
"""Five British homes, every six seconds. The aggregate is apparent power, the plugs measure active power."""

REDD = Release(
    "REDD", "America/New_York", "mains", mains_unit="VA", appliance_unit="VA", subfolder="low_freq"
)
"""Six American homes, every three seconds or so. All low-frequency readings are apparent power."""


def read_ukdale(
    folder: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: Aggregate = "mains",
) -> Household:
    """Read one house of the release folder, or the house whose folder it is.

    Channels cover different minutes. The household spans those of the aggregate; an appliance is unknown
    where it has no reading.
    """
    return read_house(UKDALE, folder, house, appliances, aggregate)


def read_redd(
    folder: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: Aggregate = "mains",
) -> Household:
    """Read one house of the release (`redd` or `redd/low_freq`), or the house whose folder it is.

    Two mains add up to the aggregate, and a minute needs both; a single mains is the total.
    """
    return read_house(REDD, folder, house, appliances, aggregate)


def ukdale_houses(folder: str | Path) -> dict[str, House]:
    """List houses and their channels without reading them."""
    return find_houses(UKDALE, folder)


def redd_houses(folder: str | Path) -> dict[str, House]:
    """List houses and their channels without reading them."""
    return find_houses(REDD, folder)


def choose_house(where: object, houses: Collection[str], number: int | None) -> str:
    """Return the name of a house by its number, or of the only one; names are such as `house_1`."""
    if number is None and len(houses) == 1:
        return next(iter(houses))
    known = ", ".join(houses)
    if number is None:
        raise InputError(f"{where} has several houses ({known}); name one, such as house=1")
    if f"house_{number}" not in houses:
        raise InputError(f"{where} has no house_{number}; it has {known}")
    return f"house_{number}"
