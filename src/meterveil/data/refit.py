"""Reader of REFIT: `CLEAN_House<N>.csv` with the whole house and nine numbered appliances in watts.

The names of the appliances are in the release's readme and in `APPLIANCES`. Versions of the readme differ in
about half of the houses: the latest counts and, where a plug was reused (house 10), its later appliance.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from meterveil.data.appliances import choose_appliances, distinct
from meterveil.data.cache import cached
from meterveil.data.delimited import column_names, read_columns, to_numbers
from meterveil.data.files import readable_file
from meterveil.data.household import Household
from meterveil.data.minutes import Series, minute_means, to_household
from meterveil.data.releases import choose_house
from meterveil.errors import InputError

FILE_NAME = re.compile(r"house_?(\d+)", re.IGNORECASE)
UNUSED = "-"

APPLIANCES: dict[int, str] = {
    1: "fridge chest_freezer upright_freezer tumble_dryer washing_machine dishwasher computer "
       "television electric_heater",
    2: "fridge_freezer washing_machine dishwasher television microwave toaster hi_fi kettle "
       "extractor_fan",
    3: "toaster fridge_freezer freezer tumble_dryer dishwasher washing_machine television "
       "microwave kettle",
    4: "fridge freezer fridge_freezer washing_machine washing_machine computer television "
       "microwave kettle",
    5: "fridge_freezer tumble_dryer washing_machine dishwasher computer television microwave "
       "kettle toaster",
    6: "freezer washing_machine dishwasher computer television microwave kettle toaster "
       "computer",
    7: "fridge freezer freezer tumble_dryer washing_machine dishwasher television toaster "
       "kettle",
    8: "fridge freezer tumble_dryer washing_machine toaster computer television microwave kettle",
    9: "fridge_freezer washer_dryer washing_machine dishwasher television microwave kettle hi_fi "
       "electric_heater",
    10: "blender toaster chest_freezer fridge_freezer washing_machine dishwasher television "
        "microwave food_mixer",
    11: "fridge fridge_freezer washing_machine dishwasher computer microwave kettle router hi_fi",
    12: "fridge_freezer television microwave kettle toaster television - - -",
    13: "television unknown washing_machine dishwasher tumble_dryer television computer "
        "microwave kettle",
    15: "fridge_freezer tumble_dryer washing_machine dishwasher computer television microwave "
        "kettle toaster",
    16: "fridge_freezer fridge_freezer electric_heater electric_heater washing_machine "
        "dishwasher computer television dehumidifier",
    17: "freezer fridge_freezer tumble_dryer washing_machine computer television microwave kettle "
        "sockets",
    18: "fridge freezer fridge_freezer washer_dryer washing_machine dishwasher computer television "
        "microwave",
    19: "fridge_freezer washing_machine television microwave kettle toaster breadmaker lighting "
        "hi_fi",
    20: "fridge freezer tumble_dryer washing_machine dishwasher computer television microwave "
        "kettle",
    21: "fridge_freezer tumble_dryer washing_machine dishwasher food_mixer television kettle "
        "vivarium pond_pump",
}  # fmt: skip
"""House -> names of Appliance1 to Appliance9; there is no house 14."""

HOUSE_NOTES: dict[int, str] = {
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
    """Read a house of the cleaned release, from its file or from the folder of all of them.

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
    notes = [HOUSE_NOTES[number]] if number in HOUSE_NOTES else []
    notes += [f"{name}: zero throughout, so unknown: dropped" for name in dropped]
    household = to_household(
        f"REFIT house_{number}", series["Aggregate"], submeters, timezone, notes=tuple(notes)
    )
    return household.metered_by_submeters() if aggregate == "submeters" else household


def appliance_columns(house: int) -> dict[str, str]:
    """Map a house's appliances, by canonical name, to their columns."""
    labels = APPLIANCES[house].split()
    used = [number for number, label in enumerate(labels, start=1) if label != UNUSED]
    names = distinct(labels[number - 1] for number in used)
    return {name: f"Appliance{number}" for name, number in zip(names, used, strict=True)}


def find_house(path: Path, house: int | None) -> tuple[Path, int]:
    """Find the file and the number of a house, each from the other where one is missing."""
    if path.is_dir():
        files = {f"house_{number}": file for number, file in refit_files(path).items()}
        if not files:
            raise InputError(f"{path} has no CLEAN_House<N>.csv; give a file or the folder of the release")
        path = files[choose_house(path, files, house)]
    named = FILE_NAME.search(path.name)
    number = int(named.group(1)) if named else house
    if number is None:
        raise InputError(f"{path} is not named CLEAN_House<N>.csv, so its house is unknown; give house=N")
    if house is not None and number != house:
        raise InputError(f"{path} is house {number}, not {house}; name the file of that house")
    if number not in APPLIANCES:
        raise InputError(f"REFIT has no house {number}; it has {', '.join(map(str, APPLIANCES))}")
    return readable_file(path), number


def refit_files(folder: Path) -> dict[int, Path]:
    """Map house numbers to the release's files in a folder."""
    found = ((FILE_NAME.search(file.name), file) for file in sorted(folder.glob("*.csv")))
    return dict(sorted((int(match.group(1)), file) for match, file in found if match))


def _read_columns(file: Path, columns: Sequence[str]) -> dict[str, Series]:
    """Read columns as minute means; parse the text at most once, and only if the cache lacks a column."""
    missing = {"Unix", "Issues", *columns} - set(column_names(file))
    if missing:
        raise InputError(
            f"{file} has no column {', '.join(sorted(missing))}; a house of the cleaned release has "
            "Time, Unix, Aggregate, Appliance1 to Appliance9 and Issues"
        )
    load = functools.cache(lambda: _parse(file, ["Unix", "Issues", *columns]))
    return {
        column: cached(file, column, functools.partial(_series, file, column, load)) for column in columns
    }


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
