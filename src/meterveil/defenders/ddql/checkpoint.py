"""Where a DDQL training stands after an epoch: networks, optimiser, replay and signal.

Chance depends on seed and epoch alone, so no generator is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from meterveil.defenders import checkpoints
from meterveil.defenders.ddql.learner import Learner, Replay
from meterveil.defenders.runs import Arrays

FORMAT = "meterveil-ddql-checkpoint-1"
_BETWEEN = ":"
"""Names of arrays hold slashes of their own."""


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
    document = {
        "format": FORMAT,
        "key": key,
        "updates": learner.updates,
        "added": replay.added,
        "curve": curve,
    }
    checkpoints.save(path, document, groups, _BETWEEN)


def restore(path: Path, learner: Learner, replay: Replay, key: str) -> tuple[Arrays, list[dict[str, Any]]]:
    """Put learner and replay where they were; return the signal's arrays and the curve up to there."""
    document, groups = checkpoints.read(path, FORMAT, key, _BETWEEN)
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
