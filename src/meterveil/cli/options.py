"""Options that several verbs share."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.errors import InputError, unknown

if TYPE_CHECKING:
    from meterveil.data import household

SYNTHETIC = "synthetic"

_READING = ("house", "timestamp", "power", "unit", "timezone", "appliances")
_TRANSLATED = (*_READING, "days", "start", "seeds")
_ARGUMENT = re.compile(rf'(?<![\w/-])({"|".join(_TRANSLATED)})="?(-?[\w.]+)"?(?!/)')

Source = Annotated[
    str, typer.Argument(metavar="PATH", help="Folder or file of a data set, your own CSV or Parquet, or 'synthetic'.")
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
    str,
    typer.Option(
        help="Load: mains; submeters for the sum of those named by --appliances, or of a protocol's appliances; "
        "active for an estimate of the active power of mains in VA."
    ),
]


def _folder(text: str | Path) -> Path:
    """Refuse an empty name, such as that of an unset variable, which would be the current folder."""
    if not str(text):
        raise typer.BadParameter("the name is empty; write . for the current folder")
    return Path(text)


Out = Annotated[Path, typer.Option(parser=_folder, metavar="<path>", help="Folder for the results.")]
OutPerInput = Annotated[
    Path | None, typer.Option(parser=_folder, metavar="<path>", help="Folder for the results; default: out/VERB/INPUT.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")]
Data = Annotated[Path | None, typer.Option(help="Folder with ukdale, redd and refit; default: $METERVEIL_DATA.")]
Library = Annotated[Path | None, typer.Option(help="JSON file of signatures to replay.")]
BatteryFile = Annotated[
    Path | None, typer.Option("--battery", help='JSON file of a battery, such as {"capacity_kwh": 5}.')
]
Tariff = Annotated[
    str | None, typer.Option(help="paper (default), flat:0.25, a .json file of bands or a .csv file of prices.")
]
Pictures = Annotated[Path | None, typer.Option(help="Also save the figures as PNG in this folder.")]


def listed(text: str) -> tuple[str, ...]:
    """Split names at commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def out_folder(out: Path | None, verb: str, path: str, house: int | None, *more: str) -> Path:
    """Return --out, or a folder of its own for each input, such as `out/audit/redd-2`."""
    if out is not None:
        return out
    parts = [Path(path).stem, *[str(house)] * (house is not None), *(Path(text).name for text in more)]
    return Path("out") / verb / re.sub(r"[^\w.-]+", "-", "-".join(parts))


def day_of(text: str, option: str) -> date:
    """Read a civil day."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"{option} {text!r} is not a day; write it as 2013-03-18") from error


def load_source(aggregate: str) -> household.Aggregate:
    """Return the source of the load (D2)."""
    from meterveil.data.household import AGGREGATES  # noqa: PLC0415  heavy imports wait for the verb

    if aggregate not in AGGREGATES:
        raise unknown("--aggregate", aggregate, AGGREGATES)
    return aggregate


def battery_value(option: str, value: float | None, field: str, scale: float = 1.0) -> float | None:
    """Return an option in the unit of the battery's field; an error names the option."""
    from meterveil.core.battery import Battery  # noqa: PLC0415  heavy imports wait for the verb

    if value is None:
        return None
    try:
        Battery(**{field: value * scale})
    except InputError as error:
        allowed = str(error).partition("; ")[2]
        came = f"{value:g}" if scale == 1.0 or not math.isfinite(value) else f"{value:g}, that is {value * scale:g} W"
        raise InputError(f"{option} is {came}; {allowed}") from error
    return value * scale


def check_applies(path: str, house: int | None, options: Mapping[str, object]) -> None:
    """Refuse an option that the reader of this source does not have."""
    from meterveil.data.load import READERS, find_kind  # noqa: PLC0415  heavy imports wait for the verb

    kind = find_kind(path)
    known = inspect.signature(READERS[kind]).parameters
    given = [*options] if house is None else ["house", *options]
    foreign = [name for name in given if name not in known]
    if foreign:
        allowed = ", ".join(f"--{name}" for name in _READING if name in known)
        raise InputError(
            f"--{foreign[0]} does not apply to {path} (read as {kind}); "
            + (f"what applies is {allowed}" if allowed else "leave it out")
        )


def spoken(text: str) -> str:
    """Turn Python arguments in a message into options: `unit="kW"` becomes `--unit kW`, and `data` --data."""
    text = re.sub("`(appliances|choice|data|library|out|results|resume)`", r"--\1", text)
    return _ARGUMENT.sub(r"--\1 \2", text).replace("clip_signatures=True", "--clip")


def reading(
    timestamp: str | None = None,
    power: str | None = None,
    unit: str | None = None,
    timezone: str | None = None,
    appliances: str | None = None,
) -> dict[str, object]:
    """Collect the given options of a reader."""
    names = [name.strip() for name in appliances.split(",")] if appliances else None
    given = {
        "timestamp": timestamp,
        "power": power,
        "unit": unit,
        "timezone": timezone,
        "appliances": "all" if names == ["all"] else names,
    }
    return {name: value for name, value in given.items() if value is not None}
