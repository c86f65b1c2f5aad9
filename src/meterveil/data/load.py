"""One function that reads any source; the content of the path decides how."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np

from meterveil.data.files import readable_file
from meterveil.data.household import Household
from meterveil.data.nilmtk import nilmtk_houses, read_nilmtk
from meterveil.data.refit import APPLIANCES, UNUSED, read_refit, refit_files
from meterveil.data.releases import read_redd, read_ukdale, redd_houses, ukdale_houses
from meterveil.data.table import read_table
from meterveil.errors import InputError

Kind = Literal["ukdale", "redd", "refit", "nilmtk", "table", "synthetic"]

SYNTHETIC = "synthetic"
UNDERSTOOD = (
    "a UK-DALE or REDD folder (house_<N>/labels.dat), CLEAN_House<N>.csv of REFIT or their folder, "
    "a NILMTK file (.h5, .hdf5), a table of your own (.csv, .tsv, .txt, .parquet) or the word synthetic"
)
KIND_BY_SUFFIX: dict[str, Kind] = {
    ".h5": "nilmtk",
    ".hdf5": "nilmtk",
    ".csv": "table",
    ".tsv": "table",
    ".txt": "table",
    ".parquet": "table",
    ".pq": "table",
}
REFIT_FILE = re.compile(r"clean_?house_?\d+\.csv", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """Say what lies at a path."""

    kind: Kind
    houses: tuple[int, ...]
    """Numbers of its houses; none where a source is one household without a number."""


def load(path: str | Path, house: int | None = None, **options: Any) -> Household:
    """Read a household from wherever it is kept.

    `options` are those of the reader: `appliances` and `aggregate` for the data sets; columns, unit and time
    zone for a table of one's own (`read_table`); `seed`, `days` and `start` for the synthetic household.
    """
    kind = find_kind(path)
    reader = READERS[kind]
    known = list(inspect.signature(reader).parameters)[1:]
    given = options if house is None else {"house": house, **options}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(
            f"{path} is read as {kind}, which has no option {unknown[0]}; it has {', '.join(known)}"
        )
    return reader(path, **given)


def describe(path: str | Path) -> Source:
    """Say what lies at a path and which houses it has, without reading any of them."""
    kind = find_kind(path)
    return Source(kind, tuple(HOUSES[kind](Path(path))))


def find_kind(path: str | Path) -> Kind:
    """Tell what lies at a path."""
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
    """Tell UK-DALE from REDD by what their labels call the whole house."""
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


def _numbers(names: Iterable[str]) -> list[int]:
    """Take the numbers from names of houses; a house folder under another name has none."""
    return [int(match.group(1)) for name in names if (match := re.fullmatch(r"house_(\d+)", name))]


def _refit_houses(path: Path) -> list[int]:
    files = refit_files(path if path.is_dir() else path.parent)
    return [number for number, file in files.items() if path.is_dir() or file == path]


READERS: dict[Kind, Callable[..., Household]] = {
    "ukdale": read_ukdale,
    "redd": read_redd,
    "refit": read_refit,
    "nilmtk": read_nilmtk,
    "table": read_table,
    "synthetic": _read_synthetic,
}

HOUSES: dict[Kind, Callable[[Path], Iterable[int]]] = {
    "ukdale": lambda path: _numbers(ukdale_houses(path)),
    "redd": lambda path: _numbers(redd_houses(path)),
    "refit": _refit_houses,
    "nilmtk": nilmtk_houses,
    "table": lambda path: (),
    "synthetic": lambda path: (),
}


def houses(path: str | Path) -> dict[int, tuple[str, ...]]:
    """List the houses of a data set and the sub-meters of each, as far as they are known unread.

    A source that is one household has none.
    """
    source = describe(path)
    if source.kind in ("ukdale", "redd"):
        found = ukdale_houses(path) if source.kind == "ukdale" else redd_houses(path)
        channels = {name: tuple(house.appliances) for name, house in found.items()}
        return {number: channels.get(f"house_{number}", ()) for number in source.houses}
    if source.kind == "refit":
        listed = {number: APPLIANCES.get(number, "").split() for number in source.houses}
        return {number: tuple(name for name in names if name != UNUSED) for number, names in listed.items()}
    return dict.fromkeys(source.houses, ())
