"""Reader of NILMTK's HDF5 files (ukdale.h5, redd.h5 and others).

`/building<N>/elec/meter<M>/table` holds rows of `index` (time since the epoch) and `values_block_0` (one
column per measurement). Pickled attributes describe columns, meters and appliances. They are read as plain
data: nothing that a pickle names is run (D13).
"""

from __future__ import annotations

import io
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from meterveil.data.cache import cached
from meterveil.data.files import readable_file
from meterveil.data.household import (
    FloatArray,
    Household,
    Series,
    Unit,
    check_seconds,
    choose_appliances,
    distinct,
    minute_means,
    minute_sums,
    to_household,
)
from meterveil.data.releases import choose_house, total
from meterveil.data.stamps import check_timezone
from meterveil.errors import InputError, how_to_install

ROWS_PER_CHUNK = 4_000_000
TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UNITS_BY_PREFERENCE: dict[str, Unit] = {"active": "W", "apparent": "VA", "": "W"}
"""Type of power -> unit, the preferred one first."""
ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    **{("datetime", kind.__name__): kind for kind in (date, datetime, timedelta, timezone)},
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): lambda text, encoding="latin-1": text.encode("latin-1"),
}
"""What a pickle may name; old protocols use `_codecs.encode` for bytes."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return ALLOWED[module, name]


def load_plain(where: str, data: bytes) -> Any:
    """Read a pickle of dictionaries, lists, texts, numbers and dates; refuse any other (D13)."""
    try:
        return _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()
    except Exception as error:  # a broken pickle may raise anything
        reason = " ".join(str(error).split())[:100]
        raise InputError(f"{where} is not plain metadata ({reason}); nothing of it was run") from None


class _Meter(NamedTuple):
    number: int
    label: str  # name of its first appliance, the original one if the file has it
    is_mains: bool
    upstream: int


def read_nilmtk(
    path: str | Path,
    house: int | None = None,
    appliances: Sequence[str] | None = None,
    aggregate: str = "mains",
    dataset: str | None = None,
) -> Household:
    """Read one building of a NILMTK file; `dataset` names it where the file does not.

    Mains that meter one supply each (REDD) are added up; mains that meter the same supply again (UK-DALE) are
    left out. Active power is preferred where a meter has it.
    """
    file = readable_file(path)
    with _opened(file) as store:
        houses = {f"house_{number}": number for number in _buildings(store)}
        if not houses:
            raise InputError(f"{file} has no /building<N>; it is not a file of NILMTK")
        number = houses[choose_house(file, houses, house)]
        about = _metadata(file, store)
        meters = _meters(file, number, store[f"building{number}"])
        mains, notes = _mains(file, number, meters) if aggregate == "mains" else ([], [])
        wanted, nesting = _submeters(file, number, meters, appliances)
        read = {meter: _read_meter(file, store, number, meter) for meter in (*mains, *wanted.values())}
    if "timezone" not in about:
        notes.append("the file names no time zone: days begin at midnight UTC")
    units = {name: read[meter][1] for name, meter in wanted.items()}
    for meter in (mains or list(wanted.values()))[:1]:
        units["aggregate"] = read[meter][1]
    household = to_household(
        f"{dataset or about.get('name', file.stem)} house_{number}",
        total([read[meter][0] for meter in mains]) if mains else None,
        {name: read[meter][0] for name, meter in wanted.items()},
        check_timezone(str(about.get("timezone", "UTC"))),
        units,
        (*notes, *nesting),
    )
    return replace(household, units=units)


def nilmtk_houses(path: str | Path) -> list[int]:
    """List the buildings of a NILMTK file."""
    file = readable_file(path)
    with _opened(file) as store:
        return _buildings(store)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        import h5py  # noqa: PLC0415  an extra: only this reader needs it
        import hdf5plugin  # noqa: F401, PLC0415  registers blosc, with which NILMTK compresses
    except ImportError:
        raise InputError(f"{file} is HDF5; get its reader with {how_to_install('hdf5')}") from None
    try:
        with h5py.File(file, "r") as store:
            yield store
    except (OSError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{file} is not a whole HDF5 file: {reason}") from None


def _buildings(store: Any) -> list[int]:
    return sorted(int(key[8:]) for key in store if re.fullmatch(r"building\d+", key))


def _metadata(file: Path, node: Any) -> dict[str, Any]:
    where, data = f"{file}: metadata of {node.name}", node.attrs.get("metadata")
    metadata = {} if data is None else load_plain(where, bytes(data))
    if not isinstance(metadata, Mapping):
        raise InputError(f"{where} is {type(metadata).__name__}, not a dictionary")
    return dict(metadata)


def _meters(file: Path, number: int, building: Any) -> list[_Meter]:
    """List the meters that have a table, with their metadata."""
    metadata = {**_metadata(file, building["elec"]), **_metadata(file, building)}
    described = metadata.get("elec_meters")
    if not isinstance(described, Mapping):
        raise InputError(f"{file}: building {number} does not describe its meters (elec_meters)")
    labels: dict[int, str] = {}
    for appliance in metadata.get("appliances", []):
        for meter in appliance.get("meters", []):
            label = str(appliance.get("original_name") or appliance.get("type", "unknown"))
            labels.setdefault(int(meter), label)
    return [
        _Meter(int(n), labels.get(int(n), ""), bool(of.get("site_meter")), int(of.get("submeter_of") or 0))
        for n, of in sorted(described.items())
        if f"elec/meter{n}/table" in building
    ]


def _mains(file: Path, number: int, meters: Sequence[_Meter]) -> tuple[list[int], list[str]]:
    sites = {meter.number: meter.upstream in (0, meter.number) for meter in meters if meter.is_mains}
    if not any(sites.values()):
        raise InputError(f"{file}: building {number} has no mains meter (site_meter); use another building")
    notes = [f"meter {meter} reads the same mains again: left out" for meter, own in sites.items() if not own]
    return [meter for meter, own in sites.items() if own], notes


def _submeters(
    file: Path, number: int, meters: Sequence[_Meter], appliances: Sequence[str] | None
) -> tuple[dict[str, int], list[str]]:
    plugs = [meter for meter in meters if meter.label and not meter.is_mains]
    names = distinct(meter.label for meter in plugs)
    known = {name: meter.number for name, meter in zip(names, plugs, strict=True)}
    wanted = choose_appliances(f"{file}: building {number}", known, appliances)
    chosen = {known[name]: name for name in wanted}
    nested = [meter for meter in plugs if meter.number in chosen and meter.upstream in chosen]
    notes = [f"{chosen[meter.number]}: metered again within {chosen[meter.upstream]}" for meter in nested]
    return {name: known[name] for name in wanted}, notes


def _read_meter(file: Path, store: Any, house: int, meter: int) -> tuple[Series, Unit]:
    group = store[f"building{house}/elec/meter{meter}"]
    table, where = group["table"], f"{file}: {group.name}"
    if table.dtype.names is None or not {"index", "values_block_0"} <= set(table.dtype.names):
        raise InputError(f"{where}: its columns are {table.dtype.names}, not those of a pandas table")
    labels = load_plain(f"{where}: its column names", bytes(table.attrs.get("values_block_0_kind", b"N.")))
    pairs = [tuple(label) if isinstance(label, list | tuple) else (label, "") for label in labels or ()]
    for kind, unit in UNITS_BY_PREFERENCE.items():
        if ("power", kind) in pairs:
            column = pairs.index(("power", kind))
            return cached(file, f"{group.name} {column}", partial(_minutes, where, table, column)), unit
    raise InputError(f"{where}: it measures {pairs or 'nothing known'}; power (active or apparent) is needed")


def _minutes(where: str, table: Any, column: int) -> Series:
    """Average a table chunk by chunk, so that memory does not grow with its rows."""
    kind = bytes(table.attrs.get("index_kind", b"datetime64")).decode("ascii", "replace")
    resolution = kind.removeprefix("datetime64").strip("[]") or "ns"  # old versions of pandas wrote none
    if resolution not in TICKS_PER_SECOND:
        raise InputError(f"{where}: its index is {kind}, not a time; it is not a table of NILMTK")
    ticks = TICKS_PER_SECOND[resolution]
    parts, ends = [], []
    for begin in range(0, len(table), ROWS_PER_CHUNK):
        seconds, watts = _samples(table[begin : begin + ROWS_PER_CHUNK], column, ticks)
        if len(seconds):
            ends.append((seconds[0], seconds[-1]))
            parts.append(minute_sums(seconds, watts))
            if np.any(seconds[1:] <= seconds[:-1]) or (len(ends) > 1 and ends[-2][1] >= seconds[0]):
                return minute_means(*_samples(table[:], column, ticks), where)
    if not parts:
        raise InputError(f"{where}: no readings; leave this meter out")
    check_seconds(ends[0][0], ends[-1][1], where)
    minute, total_w, count = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    starts = np.append(0, np.flatnonzero(np.diff(minute)) + 1)
    return Series(minute[starts], np.add.reduceat(total_w, starts) / np.add.reduceat(count, starts))


def _samples(rows: Any, column: int, ticks_per_second: int) -> tuple[FloatArray, FloatArray]:
    watts = rows["values_block_0"].reshape(len(rows), -1)[:, column].astype(np.float64)
    known = ~np.isnan(watts)
    return rows["index"][known] / ticks_per_second, watts[known]
