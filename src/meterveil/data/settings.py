"""Battery, tariff and signature library from options and small files, checked."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import fields
from datetime import time
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF, Bands, PriceSeries, Tariff, flat
from meterveil.data import signatures
from meterveil.data.delimited import column_names, read_columns, to_numbers
from meterveil.data.files import read_text, readable_file
from meterveil.data.stamps import parse_stamps
from meterveil.errors import InputError

TARIFF_FORMS = "paper, flat:PRICE (as flat:0.25), a .json file of bands or a .csv file of timestamp,price"

library = signatures.library

_UNLIMITED = ("budget_kwh", "export_limit_w", "import_limit_w")
"""Fields for which null means: no limit."""

_LEAST_KWH = 1e-4
"""Smallest usable capacity: less is full after a minute of 6 W."""

_STRICT = ConfigDict(extra="forbid", strict=True)
_BATTERY_KEYS: dict[str, Any] = {
    field.name: (float | None if field.name in _UNLIMITED else float, field.default) for field in fields(Battery)
}
BatteryFile = create_model("BatteryFile", __config__=_STRICT, **_BATTERY_KEYS)
"""Content of a battery file: the fields of `Battery`, each optional."""


class BandFile(BaseModel):
    """One band of a tariff file, such as {"from": "07:00", "price": 0.3}."""

    model_config = _STRICT

    starts: Annotated[time, Field(alias="from")]
    price: float


class TariffFile(BaseModel):
    """Content of a tariff file."""

    model_config = _STRICT

    bands: Annotated[list[BandFile], Field(min_length=1)]


_Model = TypeVar("_Model", bound=BaseModel)


def battery(path: Path | None = None, **options: float | None) -> Battery:
    """Build a battery from the defaults, then a file, then options that are not None."""
    written = _parse(BatteryFile, path).model_dump(exclude_unset=True) if path else {}
    values = {name: float("inf") if value is None else value for name, value in written.items()}
    values.update({name: value for name, value in options.items() if value is not None})
    built = Battery(**values)
    usable_kwh = float(built.capacity_kwh * (built.soc_max - built.soc_min))
    if built.charge_w == 0 and built.discharge_w == 0:
        raise InputError("this battery can do nothing: its power is 0 W; give more than 0")
    if built.budget_kwh == 0:
        raise InputError(
            "this battery can do nothing: its budget_kwh is 0 a day; give more, or no limit (null in a file, "
            "inf as an option)"
        )
    if usable_kwh < _LEAST_KWH:
        raise InputError(
            f"this battery can do next to nothing: from soc_min {built.soc_min} to soc_max {built.soc_max} "
            f"it holds {usable_kwh:.1g} kWh; give at least {_LEAST_KWH} kWh"
        )
    return built


def battery_values(battery: Battery) -> dict[str, float | None]:
    """Return the content of the battery file that describes this battery; no limit is null."""
    values = {field.name: float(getattr(battery, field.name)) for field in fields(battery)}
    return {name: None if name in _UNLIMITED and np.isinf(value) else value for name, value in values.items()}


def tariff(text: str) -> Tariff:
    """Read a tariff: a known name, a flat price or a file."""
    if text == "paper":
        return PAPER_TARIFF
    if text.startswith("flat:"):
        try:
            return flat(float(text.removeprefix("flat:")))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{text} has no number for a price; write flat:0.25") from error
    readers: dict[str, Callable[[Path], Tariff]] = {".json": _bands, ".csv": _price_series}
    path = Path(text)
    if path.suffix.lower() not in readers:
        raise InputError(f"there is no tariff {text!r}; allowed is {TARIFF_FORMS}")
    try:
        return readers[path.suffix.lower()](path)
    except InputError as error:
        raise error if str(path) in str(error) else InputError(f"{path}: {error}") from error


def tariff_values(tariff: Tariff) -> dict[str, Any]:
    """Describe a tariff: bands as in a tariff file, a price series by its extent and mean."""
    if isinstance(tariff, Bands):
        times = [f"{start // 60:02d}:{start % 60:02d}" for start in tariff.starts]
        pairs = zip(times, tariff.prices, strict=True)
        return {"bands": [{"from": time, "price": price} for time, price in pairs]}
    if isinstance(tariff, PriceSeries):
        first, last = (pd.Timestamp(int(tariff.starts[n]) * 60, unit="s", tz="UTC") for n in (0, -1))
        extent = {"first": first.isoformat(), "last": last.isoformat()}
        return {"prices": len(tariff.prices), **extent, "mean_price": float(np.mean(tariff.prices))}
    return {"kind": type(tariff).__name__}


def _bands(path: Path) -> Bands:
    bands = _parse(TariffFile, path).bands
    starts = [band.starts.hour * 60 + band.starts.minute for band in bands]
    return Bands(tuple(starts), tuple(band.price for band in bands))


def _price_series(path: Path) -> PriceSeries:
    """Read prices with timestamps that have a UTC offset or are UTC; gaps hold the price before them."""
    columns = column_names(readable_file(path))
    if columns[:2] != ("timestamp", "price"):
        raise InputError(f"{path} has the columns {', '.join(columns)}; it needs timestamp,price")
    table = read_columns(path, ("timestamp", "price"), {"timestamp": pa.string()})
    seconds = parse_stamps(f"{path}: timestamp", table["timestamp"], "UTC").seconds
    missing = np.flatnonzero(np.isnan(seconds))
    if len(missing):
        raise InputError(f"{path}: timestamp, row {missing[0] + 1:,} is empty; give every price its time")
    minutes = np.asarray(seconds // 60, dtype=np.int64)
    step = int(np.median(np.diff(minutes))) if len(minutes) > 1 else 30
    return PriceSeries(minutes, to_numbers(f"{path}: price", table["price"]), step_minutes=step)


def _parse(model: type[_Model], path: Path) -> _Model:
    try:
        return model.model_validate_json(read_text(path))
    except ValidationError as error:
        problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    parent = BandFile if model is TariffFile and len(problem["loc"]) > 1 else model
    keys = ", ".join(field.alias or name for name, field in parent.model_fields.items())
    reason = f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
    shown = reprlib.repr(problem["input"])
    raise InputError(f"{path}: {key + ': ' if key else ''}{reason} (it is {shown}); the keys are {keys}")
