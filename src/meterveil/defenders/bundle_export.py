"""Export of bundles: a policy, everything that it needs to act, and its origin."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meterveil import __version__
from meterveil.core.rollout import Policy
from meterveil.data import outputs
from meterveil.data.settings import battery_values
from meterveil.data.simulation import Setup
from meterveil.defenders.bundle import (
    CARD,
    FORMAT,
    LIBRARY,
    MANIFEST,
    ONNX,
    SETTINGS,
    WEIGHTS,
    Arrays,
    hash_of,
    known_types,
    tariff_document,
)
from meterveil.defenders.run_folder import tensor_bytes
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.errors import InputError, how_to_install

OPSET, IR_VERSION = 17, 9


def export_bundle(policy: Policy, setup: Setup, card: Mapping[str, Any], folder: Path) -> Path:
    """Write a policy with everything that it needs to act; the manager's network is also written as ONNX."""
    arrays: Arrays = {}
    settings = {
        "format": "meterveil-settings-2",
        "policy": _encoded(policy, "policy", arrays),
        "battery": battery_values(setup.battery),
        "tariff": tariff_document(setup.tariff),
    }
    contents = {
        SETTINGS: _json(settings),
        LIBRARY: setup.library.to_json().encode(),
        CARD: _json({**card, "format": "meterveil-card-2"}),
    }
    if arrays:
        contents[WEIGHTS] = tensor_bytes(arrays)
    if isinstance(policy, ManagerPolicy):
        contents[ONNX] = onnx_bytes(policy.network)
    hashes = {name: hash_of(content) for name, content in contents.items()}
    contents[MANIFEST] = _json({"format": FORMAT, "version": __version__, "files": hashes})
    ours = (folder / MANIFEST).exists()
    outputs.folder(folder, [name for name in contents if not (ours and name in (WEIGHTS, ONNX))])
    outputs.write_all({folder / name: _writer(content) for name, content in contents.items()})
    return folder


def card_of(defence: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Describe the origin of a defence: its name and, for a training, its document without the curve."""
    kept = {name: value for name, value in (document or {}).items() if name != "curve"}
    return {"version": __version__, **kept, "defence": defence}


def onnx_bytes(network: Mlp) -> bytes:
    """Write a network as an ONNX graph in float32, for other runtimes."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415  an optional part
    except ImportError as error:
        raise InputError(f"exporting a manager needs onnx; get it with {how_to_install('train')}") from error
    nodes, last, count = [], "observation", len(network.weights)
    for n in range(count):
        product = "logits" if n == count - 1 else f"layer_{n}"
        nodes.append(helper.make_node("Gemm", [last, f"weight_{n}", f"bias_{n}"], [product]))
        if product != "logits":
            last = f"hidden_{n}"
            nodes.append(helper.make_node("Tanh", [product], [last]))
    width, actions = network.weights[0].shape[0], network.weights[-1].shape[1]
    inputs = helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", width])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", actions])
    constants = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in network.arrays().items()]
    graph = helper.make_graph(nodes, "manager", [inputs], [logits], constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="meterveil",
        producer_version=__version__,
    )
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _encoded(value: Any, name: str, arrays: Arrays) -> Any:
    """Describe a policy as JSON: its class and its parameters; arrays are collected by name."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, tuple):
        return [_encoded(part, f"{name}.{number}", arrays) for number, part in enumerate(value)]
    if is_dataclass(value) or hasattr(value, "decide"):
        kind = type(value).__name__
        if known_types().get(kind) is not type(value):
            raise InputError(f"a policy of type {kind} is not part of meterveil and cannot be exported")
        parameters = {
            field.name: _encoded(getattr(value, field.name), f"{name}.{field.name}", arrays) for field in fields(value)
        }
        return {"kind": kind, "parameters": parameters}
    if isinstance(value, float) and not math.isfinite(value):  # JSON has no such number
        return {"number": str(value)}
    return value


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _writer(content: bytes) -> Any:
    return lambda path: path.write_bytes(content)
