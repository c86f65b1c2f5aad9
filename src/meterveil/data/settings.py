"""Battery, tariff and signature library as a user writes them down: options and small files, checked here."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.tariff import PAPER_TARIFF, Bands, PriceSeries, Tariff, flat
from meterveil.data.delimited import column_names, read_columns, to_numbers
from meterveil.data.files import readable_file
from meterveil.data.stamps import parse_stamps
from meterveil.data.synthetic import decoy_library
from meterveil.errors import InputError

TARIFF_FORMS = "paper, flat:PRICE (as flat:0.25), a .json file of bands or a .csv file of timestamp,price"

_UNLIMITED = ("budget_kwh", "export_limit_w", "import_limit_w")
"""Fields for which null means: no limit."""

_LEAST_KWH = 1e-4
"""A battery that holds less is full after a minute of 6 W, and no appliance hides behind that."""

_BATTERY_KEYS: dict[str, Any] = {
    field.name: (float | None if field.name in _UNLIMITED else float, field.default)
    for field in fields(Battery)
}
BatteryFile = create_model("BatteryFile", __config__=ConfigDict(extra="forbid", strict=True), **_BATTERY_KEYS)
"""What a battery file may say: the fields of `Battery`, each optional."""


class BandFile(BaseModel):
    """Hold one band of a tariff file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    starts: Annotated[str, Field(alias="from", pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
    price: float


class TariffFile(BaseModel):
    """List what a tariff file may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bands: Annotated[list[BandFile], Field(min_length=1)]


_BAND = '{"from": "07:00", "price": 0.3}'
_WANTED = {
    **dict.fromkeys(_UNLIMITED, "a number, or null for no limit"),
    "bands": f"a list of bands such as {_BAND}",
    "band": f"an object such as {_BAND}",
    "from": "a time from 00:00 to 23:59, such as 07:30",
}
"""Key -> what it must be; every other key is a number."""

_Model = TypeVar("_Model", bound=BaseModel)


def battery(path: Path | None = None, **options: float | None) -> Battery:
    """Build a battery from the defaults, then a file, then options that are not None."""
    written = _parse(BatteryFile, path).model_dump(exclude_unset=True) if path else {}
    values = {name: float("inf") if value is None else value for name, value in written.items()}
    values.update({name: value for name, value in options.items() if value is not None})
    built = Battery(**values)
    _check_useful(built)
    return built


def battery_values(battery: Battery) -> dict[str, float | None]:
    """Say what a battery file would have to say for this battery; no limit is null."""
    values = {field.name: float(getattr(battery, field.name)) for field in fields(battery)}
    return {name: None if name in _UNLIMITED and np.isinf(value) else value for name, value in values.items()}


def tariff(text: str) -> Tariff:
    """Read a tariff: a known name, a flat price or a file."""
    if text == "paper":
        return PAPER_TARIFF
    if text.startswith("flat:"):
        return flat(_price(text.removeprefix("flat:")))
    readers: dict[str, Callable[[Path], Tariff]] = {".json": _bands, ".csv": _price_series}
    path = Path(text)
    if path.suffix.lower() not in readers:
        raise InputError(f"there is no tariff {text!r}; allowed is {TARIFF_FORMS}")
    return readers[path.suffix.lower()](path)


def tariff_values(tariff: Tariff) -> dict[str, Any]:
    """Describe a tariff: bands as a tariff file would, a price series by its extent and mean."""
    if isinstance(tariff, Bands):
        times = [f"{start // 60:02d}:{start % 60:02d}" for start in tariff.starts]
        pairs = zip(times, tariff.prices, strict=True)
        return {"bands": [{"from": time, "price": price} for time, price in pairs]}
    if isinstance(tariff, PriceSeries):
        first, last = (pd.Timestamp(int(tariff.starts[n]) * 60, unit="s", tz="UTC") for n in (0, -1))
        extent = {"first": first.isoformat(), "last": last.isoformat()}
        return {"prices": len(tariff.prices), **extent, "mean_price": float(np.mean(tariff.prices))}
    return {"kind": type(tariff).__name__}


def library(path: Path | None = None) -> Library:
    """Read a signature library, or build the synthetic one that ships."""
    if path is None:
        return decoy_library()
    try:
        return Library.from_json(_read(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _check_useful(battery: Battery) -> None:
    if battery.charge_w == 0 and battery.discharge_w == 0:
        raise InputError("this battery can do nothing: its power is 0 W; give more than 0")
    if battery.budget_kwh == 0:
        raise InputError(
            "this battery can do nothing: its budget_kwh is 0 a day; give more, or no limit (null in a file, "
            "inf as an option)"
        )
    usable_kwh = float(battery.capacity_kwh * (battery.soc_max - battery.soc_min))
    if usable_kwh < _LEAST_KWH:
        raise InputError(
            f"this battery can do next to nothing: between soc_min {battery.soc_min} and soc_max "
            f"{battery.soc_max} lie {usable_kwh:.1g} kWh; leave room for {_LEAST_KWH} kWh or more"
        )


def _price(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(
            f"flat:{text} has no number for a price; write a price per kWh, such as flat:0.25"
        ) from error


def _bands(path: Path) -> Bands:
    bands = _parse(TariffFile, path).bands
    starts = [int(band.starts[:2]) * 60 + int(band.starts[3:]) for band in bands]
    try:
        return Bands(tuple(starts), tuple(band.price for band in bands))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _price_series(path: Path) -> PriceSeries:
    """Read timestamps that name their time zone or are UTC; gaps hold the price before them."""
    columns = column_names(readable_file(path))
    if columns[:2] != ("timestamp", "price"):
        raise InputError(f"{path} has the columns {', '.join(columns)}; it needs timestamp,price")
    table = read_columns(path, ("timestamp", "price"), {"timestamp": pa.string()})
    seconds = parse_stamps(f"{path}: timestamp", table["timestamp"], "UTC").seconds
    missing = np.flatnonzero(np.isnan(seconds))
    if len(missing):
        raise InputError(f"{path}: timestamp, row {missing[0] + 1:,} is empty; give every price its time")
    minutes = np.asarray(seconds // 60, dtype=np.int64)
    prices = to_numbers(f"{path}: price", table["price"])
    step = int(np.median(np.diff(minutes))) if len(minutes) > 1 else 30
    try:
        return PriceSeries(minutes, prices, step_minutes=step)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _parse(model: type[_Model], path: Path) -> _Model:
    text = _read(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # also nested, or with a number, beyond all measure
        raise InputError(f"{path} is not JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise InputError(f"{path} holds no JSON object; it needs {{...}} with {_keys(model)}")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {_first_problem(model, error)}") from error


def _first_problem(model: type[BaseModel], error: ValidationError) -> str:
    problem: Any = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    parent = BandFile if model is TariffFile and len(problem["loc"]) > 1 else model
    if problem["type"] == "extra_forbidden":
        return f"the key {key} is unknown; allowed are {_keys(parent)}"
    if problem["type"] == "missing":
        return f"the key {key} is missing; allowed are {_keys(parent)}"
    name = "band" if isinstance(problem["loc"][-1], int) else problem["loc"][-1]
    return f"{key} came as {reprlib.repr(problem['input'])}; it must be {_WANTED.get(name, 'a number')}"


def _keys(model: type[BaseModel]) -> str:
    return ", ".join(field.alias or name for name, field in model.model_fields.items())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Shorten a library's words to one line."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason.strip().splitlines()[0] if reason.strip() else type(error).__name__
