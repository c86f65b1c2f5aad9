"""Writes bundles: the policy as ONNX, beside it everything that it needs to act, and where it comes from."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from meterveil import __version__
from meterveil.data import outputs
from meterveil.defenders.bundle import CARD, FILES, FORMAT, LIBRARY, MANIFEST, POLICY, SETTINGS
from meterveil.defenders.manager.policy import Mlp
from meterveil.defenders.manager.run import load_run
from meterveil.errors import InputError, how_to_install

OPSET, IR_VERSION = 17, 9


def export(run: Path, out: Path) -> Path:
    """Turn a finished training into a bundle; whatever is in its files is hashed."""
    trained = load_run(run)
    settings = {
        "format": "meterveil-settings-1",
        "n_actions": trained.policy.n_actions,
        "masked": trained.policy.masked,
        "choice": trained.policy.choice,
        **{name: trained.document[name] for name in ("battery", "tariff")},
    }
    contents = {
        POLICY: onnx_bytes(trained.network),
        LIBRARY: trained.library.to_json().encode(),
        SETTINGS: _json(settings),
        CARD: _json(_card(trained.document)),
    }
    hashes = {name: hashlib.sha256(contents[name]).hexdigest() for name in FILES}
    contents[MANIFEST] = _json({"format": FORMAT, "version": __version__, "files": hashes})
    ours = (out / MANIFEST).exists()
    outputs.folder(out, [name for name in contents if not (ours and name == POLICY)])
    outputs.write_all({out / name: _writer(content) for name, content in contents.items()})
    return out


def onnx_bytes(network: Mlp) -> bytes:
    """Write the layers down as an ONNX graph: matrix products, biases and tanh, float32 throughout."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper  # noqa: PLC0415  an optional part
    except ImportError as error:
        raise InputError(f"exporting needs onnx; get it with {how_to_install('train')}") from error
    nodes, last = [], "observation"
    count = len(network.weights)
    for n in range(count):
        ends = n == count - 1
        product = "logits" if ends else f"layer_{n}"
        nodes.append(helper.make_node("Gemm", [last, f"weight_{n}", f"bias_{n}"], [product]))
        if not ends:
            last = f"hidden_{n}"
            nodes.append(helper.make_node("Tanh", [product], [last]))
    width, actions = network.weights[0].shape[0], network.weights[-1].shape[1]
    seen = helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", width])
    said = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", actions])
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(part), name) for name, part in network.arrays().items()
    ]
    graph = helper.make_graph(nodes, "manager", [seen], [said], constants)
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


def _card(document: dict[str, Any]) -> dict[str, Any]:
    """Keep what a reader of the bundle wants to know; the curve stays with the run."""
    return {**{key: value for key, value in document.items() if key != "curve"}, "format": "meterveil-card-1"}


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _writer(content: bytes) -> Any:
    return lambda path: path.write_bytes(content)
