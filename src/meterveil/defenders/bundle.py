"""Bundles: a defence of any kind as a folder that acts with NumPy only.

A bundle holds no data, probe or attacker. Every file is checked against its hash when it is loaded, and
loading executes no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import Bands, PriceSeries, Tariff
from meterveil.defenders import DEFENDERS
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp, QPolicy
from meterveil.defenders.veil.dice import Dice
from meterveil.defenders.veil.heuristic import Heuristic
from meterveil.defenders.veil.learned import Learned
from meterveil.defenders.veil.planner import Planner
from meterveil.errors import InputError

MANIFEST = "bundle.json"
SETTINGS, LIBRARY, CARD = "settings.json", "library.json", "card.json"
WEIGHTS, ONNX = "weights.safetensors", "policy.onnx"
FORMAT = "meterveil-bundle-2"

Arrays = dict[str, npt.NDArray[Any]]

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "|u1", "BOOL": "|b1"}
"""Types of a safetensors file -> NumPy's."""


@dataclass(frozen=True)
class Bundle:
    """Defence that is ready to act."""

    policy: Policy
    library: Library
    battery: Battery
    tariff: Tariff
    card: Mapping[str, Any]
    """Origin of the defence: its name, and data, days, seed and figures of its training."""


def load_bundle(path: str | Path) -> Bundle:
    """Read a bundle; a missing, foreign or altered file is refused."""
    folder = Path(path)
    contents = _checked(folder)
    try:
        settings, card = (json.loads(contents[name]) for name in (SETTINGS, CARD))
        arrays = read_tensors(contents[WEIGHTS])[0] if WEIGHTS in contents else {}
        policy = _decoded(settings["policy"], arrays)
        battery, tariff = battery_from(settings["battery"]), tariff_from(settings["tariff"])
        library = Library.from_json(contents[LIBRARY].decode())
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder} lacks or mistakes {error}; export the bundle again") from error
    return Bundle(policy, library, battery, tariff, card)


@cache
def known_types() -> dict[str, Any]:
    """Classes that a bundle may contain, by name."""
    untrained = [type(make()) for make in DEFENDERS.values()]
    parts = (Rules, Dice, Heuristic, Planner, Learned, Mlp)
    return {made.__name__: made for made in (*untrained, Rationed, ManagerPolicy, QPolicy, *parts)}


def read_tensors(content: bytes) -> tuple[Arrays, dict[str, str]]:
    """Read the arrays and the metadata of a safetensors file; a damaged one raises ValueError."""
    begin = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:begin])
        metadata = header.pop("__metadata__", {})
        arrays = {}
        for name, entry in header.items():
            first, last = (begin + offset for offset in entry["data_offsets"])
            values = np.frombuffer(content[first:last], dtype=_DTYPES[entry["dtype"]])
            arrays[name] = values.reshape(entry["shape"]).copy()
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"the header is damaged: {error}") from error
    return arrays, metadata


def battery_from(values: Mapping[str, float | None]) -> Battery:
    """Build a battery from JSON, in which null is no limit."""
    return Battery(**{name: float("inf") if value is None else value for name, value in values.items()})


def tariff_from(document: Mapping[str, Any]) -> Tariff:
    """Build the tariff that `tariff_document` described."""
    if document["kind"] == "bands":
        return Bands(tuple(document["starts"]), tuple(document["prices"]))
    starts, prices = np.array(document["starts"], dtype=np.int64), np.array(document["prices"], dtype=float)
    return PriceSeries(starts, prices, document["step_minutes"])


def tariff_document(tariff: Tariff) -> dict[str, Any]:
    """Describe a tariff completely."""
    if isinstance(tariff, Bands):
        return {"kind": "bands", "starts": list(tariff.starts), "prices": list(tariff.prices)}
    if isinstance(tariff, PriceSeries):
        series = {"starts": tariff.starts.tolist(), "prices": tariff.prices.tolist()}
        return {"kind": "series", **series, "step_minutes": tariff.step_minutes}
    raise InputError(f"a tariff of type {type(tariff).__name__} cannot be stored; use bands or prices")


def hash_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _decoded(value: Any, arrays: Arrays) -> Any:
    """Rebuild what `_encoded` described; only known classes are created."""
    if isinstance(value, list):
        return tuple(_decoded(part, arrays) for part in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "number" in value:
        return float(value["number"])
    made = known_types()[value["kind"]]
    return made(**{name: _decoded(part, arrays) for name, part in value["parameters"].items()})


def _checked(folder: Path) -> dict[str, bytes]:
    """Read every file of a bundle once and compare it with the manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no bundle ({MANIFEST}); write one with meterveil export") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f'{folder / MANIFEST} is not of "format": "{FORMAT}"; export the bundle again')
    contents = {}
    for name in {SETTINGS, LIBRARY, CARD, *manifest["files"]} & {SETTINGS, LIBRARY, CARD, WEIGHTS, ONNX}:
        try:
            contents[name] = (folder / name).read_bytes()
        except OSError as error:
            raise InputError(f"the bundle {folder} lacks {name}; export it again") from error
        if hash_of(contents[name]) != manifest["files"].get(name):
            raise InputError(f"{folder / name} was altered since its export; export the bundle again")
    return contents
