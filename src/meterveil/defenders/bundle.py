"""A trained defence as it is deployed: a folder that acts with NumPy and onnxruntime alone.

No torch, no probe, no attacker, no data. Every file is checked against its hash before it is believed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.tariff import Bands, PriceSeries, Tariff
from meterveil.defenders.manager.policy import ManagerPolicy
from meterveil.errors import InputError, how_to_install

MANIFEST = "bundle.json"
POLICY, LIBRARY, SETTINGS, CARD = "policy.onnx", "library.json", "settings.json", "card.json"
FILES = (POLICY, LIBRARY, SETTINGS, CARD)
FORMAT = "meterveil-bundle-1"

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Bundle:
    """Hold a defence that is ready to act, and what is known of it."""

    policy: ManagerPolicy
    """A `Policy` of the core: `core.rollout` and the live controller run it as any other."""
    library: Library
    battery: Battery
    tariff: Tariff
    card: Mapping[str, Any]
    """Where it comes from: data, days, seeds, commit, measured figures."""


def load_bundle(path: str | Path) -> Bundle:
    """Read a bundle; a missing, foreign or altered file is refused."""
    folder = Path(path)
    contents = _checked(folder)
    settings, card = (json.loads(contents[name]) for name in (SETTINGS, CARD))
    try:
        policy = ManagerPolicy(
            OnnxNetwork(contents[POLICY]), settings["n_actions"], settings["masked"], settings["choice"]
        )
        battery, tariff = battery_from(settings["battery"]), tariff_from(settings["tariff"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / SETTINGS} lacks or mistakes {error}; export the bundle again") from error
    return Bundle(policy, Library.from_json(contents[LIBRARY].decode()), battery, tariff, card)


class OnnxNetwork:
    """Compute logits with onnxruntime, on one thread: the network is too small to share."""

    def __init__(self, model: bytes) -> None:
        try:
            onnxruntime = import_module("onnxruntime")
        except ImportError as error:
            raise InputError(f"a bundle needs onnxruntime; get it with {how_to_install('live')}") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def logits(self, observation: Float32Array) -> Float32Array:
        """Return the logit of every action."""
        (answer,) = self._session.run(None, {"observation": observation})
        logits: Float32Array = answer
        return logits


def battery_from(values: Mapping[str, float | None]) -> Battery:
    """Build a battery from JSON, in which null is no limit."""
    return Battery(**{name: float("inf") if value is None else value for name, value in values.items()})


def tariff_from(document: Mapping[str, Any]) -> Tariff:
    """Build a tariff from what `tariff_document` wrote."""
    if document["kind"] == "bands":
        return Bands(tuple(document["starts"]), tuple(document["prices"]))
    starts, prices = np.array(document["starts"], dtype=np.int64), np.array(document["prices"], dtype=float)
    return PriceSeries(starts, prices, document["step_minutes"])


def tariff_document(tariff: Tariff) -> dict[str, Any]:
    """Write a tariff down, whole."""
    if isinstance(tariff, Bands):
        return {"kind": "bands", "starts": list(tariff.starts), "prices": list(tariff.prices)}
    if isinstance(tariff, PriceSeries):
        series = {"starts": tariff.starts.tolist(), "prices": tariff.prices.tolist()}
        return {"kind": "series", **series, "step_minutes": tariff.step_minutes}
    raise InputError(f"a tariff of kind {type(tariff).__name__} cannot be written down; use bands or prices")


def _checked(folder: Path) -> dict[str, bytes]:
    """Read every file of a bundle once, and compare what was read with the manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no bundle ({MANIFEST}); write one with meterveil export") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f'{folder / MANIFEST} is not of "format": "{FORMAT}"; export the bundle again')
    contents = {}
    for name in FILES:
        try:
            contents[name] = (folder / name).read_bytes()
        except OSError as error:
            raise InputError(f"the bundle {folder} lacks {name}; export it again") from error
        if hashlib.sha256(contents[name]).hexdigest() != manifest.get("files", {}).get(name):
            raise InputError(f"{folder / name} was altered since its export; export the bundle again")
    return contents
