"""Options that several verbs share, each written once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from meterveil.errors import InputError

SYNTHETIC = "synthetic"

_READING = ("house", "timestamp", "power", "unit", "timezone", "appliances")
_ARGUMENT = re.compile(rf'(?<![\w/-])({"|".join(_READING)})="?([\w.]+)"?(?!/)')

Source = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="Folder or file of a data set, your own CSV or Parquet, or 'synthetic'."
    ),
]
House = Annotated[int | None, typer.Option(help="Number of the house, where the data set has several.")]
Timestamp = Annotated[str | None, typer.Option(help="Own table: column of the time stamps.")]
Power = Annotated[str | None, typer.Option(help="Own table: column of the whole house's power.")]
Unit = Annotated[str | None, typer.Option(help="Own table: W, kW, VA, kVA, Wh or kWh.")]
Timezone = Annotated[str | None, typer.Option(help="Own table: time zone, such as Europe/London.")]
Appliances = Annotated[
    str | None, typer.Option(help="Sub-meters to read, separated by commas; own table: columns, or 'all'.")
]
Aggregate = Annotated[
    str, typer.Option(help="mains, or submeters for the sum of those named by --appliances.")
]


def _folder(text: str | Path) -> Path:
    """Refuse an empty name, such as that of an unset variable: a path would take it for the place at hand."""
    if not str(text):
        raise typer.BadParameter("an empty name is no folder; for the one at hand write .")
    return Path(text)


Out = Annotated[
    Path, typer.Option(parser=_folder, metavar="<path>", help="Folder for the files that are written.")
]


def day_of(text: str, option: str) -> date:
    """Read a civil day."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r} is no day; write it as 2013-03-18") from error


def from_submeters(aggregate: str) -> bool:
    """Tell whether the load is to be the sum of the sub-meters (D2)."""
    if aggregate not in {"mains", "submeters"}:
        raise InputError(f"--aggregate {aggregate!r} is unknown; allowed are mains and submeters")
    return aggregate == "submeters"


def battery_value(option: str, value: float | None, field: str, scale: float = 1.0) -> float | None:
    """Return an option in the unit of the battery's field, refused under the name that was typed."""
    from meterveil.core.battery import Battery  # noqa: PLC0415  heavy imports wait for the verb

    if value is None:
        return None
    try:
        Battery(**{field: value * scale})
    except InputError as error:
        allowed = str(error).partition("; ")[2]
        raise InputError(f"{option} is {value:g}; {allowed}") from error
    return value * scale


def check_applies(path: str, house: int | None, options: Mapping[str, object]) -> None:
    """Refuse an option that the reader of this source does not have, in the words of the command line."""
    from meterveil.data.load import READERS, find_kind  # noqa: PLC0415  heavy imports wait for the verb

    kind = find_kind(path)
    known = inspect.signature(READERS[kind]).parameters
    given = [*options] if house is None else ["house", *options]
    unknown = [name for name in given if name not in known]
    if unknown:
        allowed = ", ".join(f"--{name}" for name in _READING if name in known)
        raise InputError(
            f"--{unknown[0]} does not apply to {path} (read as {kind}); "
            + (f"what applies is {allowed}" if allowed else "leave it out")
        )


def spoken(text: str) -> str:
    """Say in the words of the command line what a reader says in those of Python: `unit="kW"`."""
    return _ARGUMENT.sub(r"--\1 \2", text)


def reading(
    timestamp: str | None = None,
    power: str | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    appliances: str | None = None,
) -> dict[str, object]:
    """Gather the options of a reader, only those that were given."""
    names = [name.strip() for name in appliances.split(",")] if appliances else None
    given = {
        "timestamp": timestamp,
        "power": power,
        "unit": unit,
        "timezone": timezone,
        "appliances": "all" if names == ["all"] else names,
    }
    return {name: value for name, value in given.items() if value is not None}
