"""Where a DDQL training stands, in one file that is replaced whole after every epoch.

Reading one executes nothing (D13). Chance depends on seed and epoch alone, so no generator is kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as tensor_bytes
from torch import nn

from meterveil.data.outputs import write_whole
from meterveil.defenders.ddql.learner import Arrays, Learner, Replay
from meterveil.errors import InputError

CHECKPOINT = "checkpoint.safetensors"
FORMAT = "meterveil-ddql-checkpoint-1"


def save(
    path: Path, learner: Learner, replay: Replay, signal: Arrays, key: str, curve: list[dict[str, Any]]
) -> None:
    """Write down everything that the next epoch depends on; `key` says what is being learned."""
    groups = {
        "online": trained_arrays(learner.online, learner.optimiser),
        "target": trained_arrays(learner.target),
        "replay": {name: part[: replay.added] for name, part in replay.kept._asdict().items()},
        "signal": signal,
    }
    flat = {f"{group}:{name}": part for group, parts in groups.items() for name, part in parts.items()}
    document = {
        "format": FORMAT,
        "key": key,
        "updates": learner.updates,
        "added": replay.added,
        "curve": curve,
    }
    content = tensor_bytes(
        {name: np.ascontiguousarray(part) for name, part in flat.items()}, {"state": json.dumps(document)}
    )
    write_whole(path, lambda half: half.write_bytes(content))


def restore(path: Path, learner: Learner, replay: Replay, key: str) -> tuple[Arrays, list[dict[str, Any]]]:
    """Put learner and replay where they were; return the signal's arrays and the curve up to there."""
    document, groups = _read(path)
    if document.get("format") != FORMAT or document.get("key") != key:
        raise InputError(
            f"{path} belongs to another training; resume with the same data, settings and version, or give "
            "--out another folder"
        )
    restore_trained(learner.online, learner.optimiser, groups["online"])
    restore_trained(learner.target, None, groups["target"])
    learner.updates, replay.added = document["updates"], document["added"]
    for name, part in replay.kept._asdict().items():
        part[: replay.added] = groups["replay"][name]
    curve: list[dict[str, Any]] = document["curve"]
    return groups.get("signal", {}), curve


def trained_arrays(module: nn.Module, optimiser: torch.optim.Optimizer | None = None) -> Arrays:
    """Return a network's weights and its optimiser's moments."""
    weights = {f"weights/{name}": part.detach().numpy() for name, part in module.state_dict().items()}
    moments = optimiser.state_dict()["state"] if optimiser else {}
    return weights | {
        f"moments/{number}/{name}": value.numpy()
        for number, parts in moments.items()
        for name, value in parts.items()
    }


def restore_trained(module: nn.Module, optimiser: torch.optim.Optimizer | None, arrays: Arrays) -> None:
    """Take weights and moments back."""
    weights, moments = (
        {
            name.removeprefix(kind): torch.from_numpy(part)
            for name, part in arrays.items()
            if name.startswith(kind)
        }
        for kind in ("weights/", "moments/")
    )
    module.load_state_dict(weights)
    if optimiser:
        document = optimiser.state_dict()
        for name, value in moments.items():
            number, key = name.split("/")
            document["state"].setdefault(int(number), {})[key] = value
        optimiser.load_state_dict(document)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Arrays]]:
    groups: dict[str, Arrays] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            document = json.loads((file.metadata() or {}).get("state", "{}"))
            for name in file.keys():  # noqa: SIM118  it is no mapping
                group, _, rest = name.partition(":")
                groups.setdefault(group, {})[rest] = file.get_tensor(name)
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(f"{path} is no checkpoint, or damaged ({error}); train anew") from error
    return document, groups
