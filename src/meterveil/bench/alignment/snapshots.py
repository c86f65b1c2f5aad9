"""A training whose manager is kept after every update: an ordinary run, with a folder of weights in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as arrays_bytes

from meterveil.core.env import EnvParams
from meterveil.data.household import Household
from meterveil.data.outputs import write_whole
from meterveil.data.run import Setup
from meterveil.data.splits import Days
from meterveil.data.windows import Scaler
from meterveil.defenders.lessons import training_scenario
from meterveil.defenders.manager.env import TrainingHouseholds
from meterveil.defenders.manager.policy import Mlp
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.manager.reward import ProbeReward
from meterveil.defenders.manager.run import (
    RUN,
    Listeners,
    Options,
    learn,
    load_run,
    read_document,
)
from meterveil.defenders.manager.training import CHECKPOINT, Lesson, actor, build, own_randomness
from meterveil.errors import InputError

FOLDER = "snapshots"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the updates: where along a training one looks."""

_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")


class Snapshot(NamedTuple):
    """A manager as it was after so many updates."""

    update: int
    network: Mlp


def learn_with_snapshots(
    household: Household, days: Days, setup: Setup, options: Options, folder: Path
) -> list[Snapshot]:
    """Train as `meterveil train` does, or go on with it, and return the managers at the shares of the way.

    The run is the very one that the verb makes: the same seed ends with the same weights.
    """
    kept = folder / FOLDER
    if not _is_finished(folder):
        if (folder / CHECKPOINT).exists() and not (kept / _name(0)).exists():
            raise InputError(f"the training in {folder} kept no snapshots; give a folder of its own")
        _keep(kept, 0, first_network(household, days, setup, options))
        listeners = Listeners(on_update=lambda _: _keep_latest(folder))
        learn(household, days, setup, options, folder, listeners=listeners)
    count = len(read_document(folder)["curve"])
    return [_read(kept, round(share * count)) for share in SHARES]


def first_network(household: Household, days: Days, setup: Setup, options: Options) -> Mlp:
    """Draw the weights that a training begins with; they depend on the seed and on no reward."""
    params, scenario = EnvParams(setup.battery, setup.library), training_scenario(household, days, setup)
    formula = Probe("identity", Scaler(0.0, 1.0))
    lesson = Lesson(params, scenario, formula, options.preset, seed=setup.seed)
    households = TrainingHouseholds(params, scenario, ProbeReward(formula, scenario), options.preset)
    with own_randomness():
        return actor(build(lesson, households))


def _is_finished(folder: Path) -> bool:
    if not (folder / RUN).exists() or read_document(folder)["status"] != "finished":
        return False
    load_run(folder)  # refuses what was altered
    return True


def _keep_latest(folder: Path) -> None:
    """Copy the actor out of the checkpoint that the update has just left."""
    with safe_open(folder / CHECKPOINT, framework="numpy") as file:
        update = len(json.loads(file.metadata()["state"])["curve"])
        layers = [
            [file.get_tensor(f"policy/{name}.{part}") for part in ("weight", "bias")] for name in _LAYERS
        ]
    weights, biases = zip(*layers, strict=True)
    network = Mlp(tuple(np.ascontiguousarray(weight.T) for weight in weights), tuple(biases))
    _keep(folder / FOLDER, update, network)


def _keep(folder: Path, update: int, network: Mlp) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = arrays_bytes(network.arrays())
    write_whole(folder / _name(update), lambda half: half.write_bytes(content))


def _read(folder: Path, update: int) -> Snapshot:
    path = folder / _name(update)
    try:
        return Snapshot(update, Mlp.of(load_arrays(path.read_bytes())))
    except OSError as error:
        raise InputError(
            f"the training kept no snapshot {path}; give another folder to train anew"
        ) from error


def _name(update: int) -> str:
    return f"{update:05d}.safetensors"
