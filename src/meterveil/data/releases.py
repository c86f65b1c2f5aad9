"""Readers of the published data sets UK-DALE, REDD and REFIT."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meterveil.data.cache import cached
from meterveil.data.channels import read_channel
from meterveil.data.delimited import column_names, read_columns, to_numbers
from meterveil.data.files import readable_file
from meterveil.data.household import (
    Aggregate,
    Household,
    Series,
    Unit,
    choose_appliances,
    distinct,
    minute_means,
    to_household,
)
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
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: Aggregate = "mains",
) -> Household:
    """Read one house of the release folder, or the house whose folder it is.

    Channels cover different minutes. The household spans those of the aggregate; an appliance is unknown
    where it has no reading. `appliances` is all of them by default.
    """
    houses = find_houses(release, folder)
    name = choose_house(folder, houses, house)
    channels = houses[name]
    wanted = choose_appliances(f"{release.title} {name}", channels.appliances, appliances)
    mains = channels.mains if aggregate == "mains" else ()
    if aggregate == "mains" and not mains:
        raise InputError(f"{channels.folder}: no channel is labelled {release.mains_label}; use aggregate='submeters'")
    numbers = [*mains, *(channels.appliances[key] for key in wanted)]
    files = {number: channels.folder / f"channel_{number}.dat" for number in numbers}
    missing = [file.name for file in files.values() if not file.exists()]
    if missing:
        raise InputError(
            f"{channels.folder}: labels.dat lists channels without a file: {', '.join(missing)}; "
            "add the files, or name only appliances that have one"
        )
    household = to_household(
        f"{release.title} {name}",
        total([read_channel(files[number]) for number in mains]) if mains else None,
        {key: read_channel(files[channels.appliances[key]]) for key in wanted},
        release.timezone,
    )
    mains_unit = release.mains_unit if mains else release.appliance_unit
    units = {"aggregate": mains_unit} | dict.fromkeys(wanted, release.appliance_unit)
    return replace(household, units=units)


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


UKDALE = Release("UK-DALE", "Europe/London", mains_label="aggregate", mains_unit="VA", appliance_unit="W")
"""Five British homes, every six seconds. The aggregate is apparent power, the plugs measure active power."""

REDD = Release("REDD", "America/New_York", "mains", mains_unit="VA", appliance_unit="VA", subfolder="low_freq")
"""Six American homes, every three seconds or so. All low-frequency readings are apparent power."""


read_ukdale = partial(read_house, UKDALE)
"""Read a house of UK-DALE."""

read_redd = partial(read_house, REDD)
"""Read a house of REDD: two mains add up to the aggregate, and a minute needs both."""


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


REFIT_HOUSE = re.compile(r"house_?(\d+)", re.IGNORECASE)

REFIT_APPLIANCES: dict[int, str] = {
    1: "fridge chest_freezer upright_freezer tumble_dryer washing_machine dishwasher computer tv "
    "electric_heater",
    2: "fridge_freezer washing_machine dishwasher tv microwave toaster hi_fi kettle extractor_fan",
    3: "toaster fridge_freezer freezer tumble_dryer dishwasher washing_machine tv microwave kettle",
    4: "fridge freezer fridge_freezer washing_machine washing_machine computer tv microwave kettle",
    5: "fridge_freezer tumble_dryer washing_machine dishwasher computer tv microwave kettle toaster",
    6: "freezer washing_machine dishwasher computer tv microwave kettle toaster computer",
    7: "fridge freezer freezer tumble_dryer washing_machine dishwasher tv toaster kettle",
    8: "fridge freezer tumble_dryer washing_machine toaster computer tv microwave kettle",
    9: "fridge_freezer washer_dryer washing_machine dishwasher tv microwave kettle hi_fi electric_heater",
    10: "blender toaster chest_freezer fridge_freezer washing_machine dishwasher tv microwave food_mixer",
    11: "fridge fridge_freezer washing_machine dishwasher computer microwave kettle router hi_fi",
    12: "fridge_freezer tv microwave kettle toaster tv",
    13: "tv unknown washing_machine dishwasher tumble_dryer tv computer microwave kettle",
    15: "fridge_freezer tumble_dryer washing_machine dishwasher computer tv microwave kettle toaster",
    16: "fridge_freezer fridge_freezer electric_heater electric_heater washing_machine dishwasher computer "
    "tv dehumidifier",
    17: "freezer fridge_freezer tumble_dryer washing_machine computer tv microwave kettle sockets",
    18: "fridge freezer fridge_freezer washer_dryer washing_machine dishwasher computer tv microwave",
    19: "fridge_freezer washing_machine tv microwave kettle toaster breadmaker lighting hi_fi",
    20: "fridge freezer tumble_dryer washing_machine dishwasher computer tv microwave kettle",
    21: "fridge_freezer tumble_dryer washing_machine dishwasher food_mixer tv kettle vivarium pond_pump",
}  # fmt: skip
"""House -> names of Appliance1 to Appliance9; there is no house 14.

Versions of the readme differ in about half of the houses: the latest counts and, where a plug was reused
(house 10), its later appliance.
"""

REFIT_NOTES: dict[int, str] = {
    10: "appliance 1 was a fridge until 2014-06-17, appliance 2 a freezer until 2014-06-25",
    11: "aggregate is affected by solar panels",
    19: "fridge: a fridge and a freezer on one plug",
    21: "aggregate is affected by solar panels; kettle shares its plug with a toaster",
}


def read_refit(
    path: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: str = "mains",
    timezone: str = "Europe/London",
) -> Household:
    """Read a house of the cleaned release (`CLEAN_House<N>.csv`), from its file or folder.

    Stamps come from `Unix`; `Time` is the same instant as UTC text. A column of zeros is an unknown sensor
    and is dropped. Rows flagged in `Issues` (the appliances exceed the aggregate, mostly because the meters
    are not synchronised) are kept and counted.
    """
    file, number = find_house(Path(path), house)
    columns = appliance_columns(number)
    wanted = choose_appliances(f"REFIT house_{number}", columns, appliances)
    series = _read_columns(file, ["Aggregate", *(columns[name] for name in wanted)])
    dropped = [name for name in wanted if not series[columns[name]].watts.any()]
    if dropped and appliances is not None:
        raise InputError(f"{file}: {dropped[0]} is zero throughout, so it is unknown; leave it out")
    submeters = {name: series[columns[name]] for name in wanted if name not in dropped}
    notes = [REFIT_NOTES[number]] if number in REFIT_NOTES else []
    notes += [f"{name}: zero throughout, so unknown: dropped" for name in dropped]
    household = to_household(f"REFIT house_{number}", series["Aggregate"], submeters, timezone, notes=tuple(notes))
    return household.metered_by_submeters() if aggregate == "submeters" else household


def appliance_columns(house: int) -> dict[str, str]:
    """Map a house's appliances, by canonical name, to their columns."""
    names = distinct(REFIT_APPLIANCES[house].split())
    return {name: f"Appliance{number}" for number, name in enumerate(names, start=1)}


def find_house(path: Path, house: int | None) -> tuple[Path, int]:
    """Find the file and the number of a house, each from the other where one is missing."""
    if path.is_dir():
        files = {f"house_{number}": file for number, file in refit_files(path).items()}
        if not files:
            raise InputError(f"{path} has no CLEAN_House<N>.csv; give a file or the folder of the release")
        path = files[choose_house(path, files, house)]
    named = REFIT_HOUSE.search(path.name)
    number = int(named.group(1)) if named else house
    if number is None:
        raise InputError(f"{path} is not named CLEAN_House<N>.csv, so its house is unknown; give house=N")
    if house is not None and number != house:
        raise InputError(f"{path} is house {number}, not {house}; name the file of that house")
    if number not in REFIT_APPLIANCES:
        raise InputError(f"REFIT has no house {number}; it has {', '.join(map(str, REFIT_APPLIANCES))}")
    return readable_file(path), number


def refit_files(folder: Path) -> dict[int, Path]:
    """Map house numbers to the release's files in a folder."""
    found = ((REFIT_HOUSE.search(file.name), file) for file in sorted(folder.glob("*.csv")))
    return dict(sorted((int(match.group(1)), file) for match, file in found if match))


def _read_columns(file: Path, columns: Sequence[str]) -> dict[str, Series]:
    """Read columns as minute means; parse the text at most once, and only if the cache lacks a column."""
    missing = {"Unix", "Issues", *columns} - set(column_names(file))
    if missing:
        raise InputError(
            f"{file} has no column {', '.join(sorted(missing))}; a house of the cleaned release has "
            "Time, Unix, Aggregate, Appliance1 to Appliance9 and Issues"
        )
    load = cache(lambda: _parse(file, ["Unix", "Issues", *columns]))
    return {column: cached(file, column, partial(_series, file, column, load)) for column in columns}


def _parse(file: Path, columns: Sequence[str]) -> pa.Table:
    types = {column: pa.int64() if column == "Unix" else pa.float32() for column in columns}
    try:
        table = read_columns(file, columns, types)
    except InputError:
        untyped = read_columns(file, columns, {})
        for column in columns:
            to_numbers(f"{file}: {column}", untyped[column])
        raise
    if table.num_rows == 0:
        raise InputError(f"{file} has a header but no rows; give the file of a house with readings")
    if table["Unix"].null_count:
        row = pc.index(pc.is_null(table["Unix"]), True).as_py() + 1
        raise InputError(f"{file}: Unix, row {row:,} has no stamp; correct or remove the row")
    return table


def _series(file: Path, column: str, load: Callable[[], pa.Table]) -> Series:
    table = load()
    seconds = np.asarray(table["Unix"].to_numpy(), dtype=np.int64)
    series = minute_means(seconds, to_numbers(f"{file}: {column}", table[column]), f"{file}: {column}")
    flagged = pc.sum(pc.equal(table["Issues"], 1)).as_py() if column == "Aggregate" else 0
    if not flagged:
        return series
    note = f"{flagged:,} of {len(seconds):,} rows are flagged (appliances exceed the aggregate): kept"
    return replace(series, notes=(*series.notes, note))
