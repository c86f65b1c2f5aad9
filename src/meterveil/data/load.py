"""One function that reads any source; the content of the path decides how."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np

from meterveil.data.files import readable_file
from meterveil.data.household import Household
from meterveil.data.nilmtk import nilmtk_houses, read_nilmtk
from meterveil.data.protocols import Protocol
from meterveil.data.releases import (
    REDD,
    REFIT_APPLIANCES,
    UKDALE,
    find_houses,
    read_redd,
    read_refit,
    read_ukdale,
    refit_files,
)
from meterveil.data.table import read_table
from meterveil.errors import InputError

Kind = Literal["ukdale", "redd", "refit", "nilmtk", "table", "synthetic"]

SYNTHETIC = "synthetic"
UNDERSTOOD = (
    "a UK-DALE or REDD folder (house_<N>/labels.dat), CLEAN_House<N>.csv of REFIT or their folder, "
    "a NILMTK file (.h5, .hdf5), a table of your own (.csv, .tsv, .txt, .parquet) or the word synthetic"
)
KIND_BY_SUFFIX: dict[str, Kind] = {
    **dict.fromkeys((".h5", ".hdf5"), "nilmtk"),
    **dict.fromkeys((".csv", ".tsv", ".txt", ".parquet", ".pq"), "table"),
}
REFIT_FILE = re.compile(r"clean_?house_?\d+\.csv", re.IGNORECASE)


def load(path: str | Path, house: int | None = None, **options: Any) -> Household:
    """Read a household from any source.

    `options` are those of the reader: `appliances` and `aggregate` for the data sets; columns, unit and time
    zone for a table of one's own (`read_table`); `seed`, `days` and `start` for the synthetic household.
    """
    kind = find_kind(path)
    reader = READERS[kind]
    known = list(inspect.signature(reader).parameters)[1:]
    given = options if house is None else {"house": house, **options}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(f"{path} is read as {kind}, which has no option {unknown[0]}; it has {', '.join(known)}")
    return reader(path, **given)


def load_protocol(folder: Path, protocol: Protocol) -> Household:
    """Read the house of a protocol with its source of the load (D2); the folder holds one folder per data set."""
    path, summed = folder / protocol.dataset, protocol.summed
    if protocol.aggregate == "submeters":
        return load(path, protocol.house, appliances=summed, aggregate="submeters")
    household = load(path, protocol.house)
    return household.select(summed).metered_actively() if protocol.aggregate == "active" else household


def houses(path: str | Path) -> dict[int, tuple[str, ...]]:
    """List the houses of a data set and their sub-meters, as far as they are known without reading.

    A source that is one household has none.
    """
    kind = find_kind(path)
    if kind in ("ukdale", "redd"):
        listed = find_houses(UKDALE if kind == "ukdale" else REDD, path)
        numbers = {name: re.fullmatch(r"house_(\d+)", name) for name in listed}
        return {int(match[1]): tuple(listed[name].appliances) for name, match in numbers.items() if match}
    if kind == "refit":
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        files = {n: file for n, file in refit_files(folder).items() if Path(path) in (folder, file)}
        return {number: tuple(REFIT_APPLIANCES.get(number, "").split()) for number in files}
    return dict.fromkeys(nilmtk_houses(path), ()) if kind == "nilmtk" else {}


def find_kind(path: str | Path) -> Kind:
    """Tell how a path is read."""
    if str(path) == SYNTHETIC:
        return "synthetic"
    try:
        if Path(path).is_dir():
            return _folder_kind(Path(path))
    except PermissionError:
        raise InputError(f"{path} may not be read; give yourself permission (chmod u+rx)") from None
    file = readable_file(path)
    if REFIT_FILE.fullmatch(file.name):
        return "refit"
    if file.suffix.lower() not in KIND_BY_SUFFIX:
        raise InputError(f"{path} is of no known kind; give {UNDERSTOOD}")
    return KIND_BY_SUFFIX[file.suffix.lower()]


def _folder_kind(folder: Path) -> Kind:
    """Tell UK-DALE from REDD by the label of the whole house."""
    for labels in (folder / "labels.dat", *sorted(folder.glob("house_*/labels.dat"))):
        if labels.is_file():
            words = readable_file(labels).read_text(encoding="utf-8", errors="replace").split()
            return "redd" if "mains" in words else "ukdale"
    if (folder / "low_freq").is_dir():
        return "redd"
    if any(REFIT_FILE.fullmatch(file.name) for file in folder.glob("*.csv")):
        return "refit"
    raise InputError(f"{folder} is a folder without data of a known kind; give {UNDERSTOOD}")


def _read_synthetic(path: str | Path, seed: int = 0, days: int = 14, start: date | None = None) -> Household:
    from meterveil.data.synthetic import household  # noqa: PLC0415  large, and needed for this kind alone

    rng = np.random.default_rng(seed)
    return household(rng, days) if start is None else household(rng, days, start)


READERS: dict[Kind, Callable[..., Household]] = {
    "ukdale": read_ukdale,
    "redd": read_redd,
    "refit": read_refit,
    "nilmtk": read_nilmtk,
    "table": read_table,
    "synthetic": _read_synthetic,
}
