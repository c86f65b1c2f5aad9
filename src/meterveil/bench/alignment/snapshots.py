"""A training whose manager is kept after every update: an ordinary run, with a folder of weights in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as arrays_bytes

from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.outputs import write_whole
from meterveil.data.simulation import Setup
from meterveil.data.splits import Days
from meterveil.data.windows import Scaler
from meterveil.defenders.bundle import hash_of
from meterveil.defenders.manager import manager_training, ppo
from meterveil.defenders.manager.manager_policy import Mlp
from meterveil.defenders.manager.manager_training import learn
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import CARD, Probe
from meterveil.defenders.manager.probes import load as load_probe
from meterveil.defenders.run_folder import (
    CHECKPOINT,
    FINISHED,
    RUN,
    load_trained,
    read_checkpoint,
    read_document,
    run_document,
)
from meterveil.defenders.training_days import training_scenario
from meterveil.defenders.training_settings import ManagerSettings
from meterveil.errors import InputError

FOLDER = "snapshots"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the updates: where along a training one looks."""

_STANDING = ("status", "version")
"""What a run says of itself that was not asked of it."""

_LAYERS = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")


class Snapshot(NamedTuple):
    """A manager as it was after so many updates."""

    update: int
    network: Mlp

    @property
    def digest(self) -> str:
        """Hash the weights, as a run states those that it ends with."""
        return hash_of(arrays_bytes(self.network.arrays()))


@dataclass(frozen=True)
class Asked:
    """Say which training is meant."""

    household: Household
    days: Days
    setup: Setup
    options: ManagerSettings

    @property
    def params(self) -> EnvParams:
        """Fix what an episode does not change."""
        return EnvParams(self.setup.battery, self.setup.library)

    @property
    def scenario(self) -> Scenario:
        """Make one episode of every day."""
        return training_scenario(self.household, self.days, self.setup)

    def document(self) -> dict[str, Any]:
        """Say it as a run does, without how far it has come."""
        said = run_document(self.options, self.household, self.days, self.setup, {})
        known: dict[str, Any] = json.loads(json.dumps(said))
        return {name: value for name, value in known.items() if name not in _STANDING}


def learn_with_snapshots(asked: Asked, folder: Path) -> list[Snapshot]:
    """Train as `meterveil train` does, or go on with it, and return the managers at the shares of the way.

    The run is the very one that the verb makes: the same seed ends with the same weights. One that lies in
    the folder already is taken only where it is the one asked for.
    """
    if any((folder / name).exists() for name in (RUN, CARD, CHECKPOINT)):
        _check_asked(asked, folder)
    if not _is_finished(folder):
        _keep_begun(asked, folder)
        where = (asked.household, asked.days, asked.setup, asked.options, folder)
        learn(*where, on_update=lambda _: _keep_latest(folder))
    document = read_document(folder)
    count = len(document["curve"])
    snapshots = [_read(folder / FOLDER, round(share * count)) for share in SHARES]
    if snapshots[-1].digest != document["weights"]:
        raise InputError(f"the snapshots in {folder} are of another training; give a folder to train anew")
    return snapshots


def first_network(asked: Asked) -> Mlp:
    """Draw the weights that a training begins with; they depend on the seed and on no reward."""
    scenario = asked.scenario
    reward = ProbeReward(Probe("identity", Scaler(0.0, 1.0)), scenario)
    households = ppo.TrainingHouseholds(asked.params, scenario, reward, asked.options)
    with ppo.own_randomness():
        return ppo.actor(ppo.build(asked.options, households, asked.setup.seed))


def _check_asked(asked: Asked, folder: Path) -> None:
    """Refuse another training: first by what it says of itself, then by the very readings and the probe."""
    document = read_document(folder)
    other = [name for name, value in asked.document().items() if document.get(name) != value]
    if other:
        raise InputError(
            f"the training in {folder} is not the one asked for (other: {', '.join(other)}); "
            "give another folder, or remove this one"
        )
    if (folder / CHECKPOINT).exists():
        key = manager_training.key_of(asked.options, asked.setup, asked.scenario, load_probe(folder))
        read_checkpoint(folder / CHECKPOINT, key)


def _is_finished(folder: Path) -> bool:
    if not (folder / RUN).exists() or read_document(folder)["status"] != FINISHED:
        return False
    load_trained(folder)  # refuses what was altered
    return True


def _keep_begun(asked: Asked, folder: Path) -> None:
    """Keep where a training begins, or goes on: a kill may have come before its last update was kept."""
    if not (folder / CHECKPOINT).exists():
        _keep(folder / FOLDER, 0, first_network(asked))
    elif (folder / FOLDER / _name(0)).exists():
        _keep_latest(folder)
    else:
        raise InputError(f"the training in {folder} kept no snapshots; give a folder of its own")


def _keep_latest(folder: Path) -> None:
    """Copy the actor out of the checkpoint that the update has just left."""
    with safe_open(folder / CHECKPOINT, framework="numpy") as file:
        update = len(json.loads(file.metadata()["state"])["curve"])
        names = [[f"policy:weights/{name}.{part}" for part in ("weight", "bias")] for name in _LAYERS]
        layers = [[file.get_tensor(name) for name in pair] for pair in names]
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
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"the training kept no whole snapshot {path}; give another folder to train anew"
        ) from error


def _name(update: int) -> str:
    return f"{update:05d}.safetensors"
