"""A DDQL training as a folder: what was asked, what was learned from, the checkpoint and the policy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as arrays_bytes

from meterveil import __version__
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data import outputs, settings
from meterveil.data.household import Household
from meterveil.data.run import Setup
from meterveil.defenders.bundle import tariff_document
from meterveil.defenders.ddql.policy import QPolicy
from meterveil.defenders.ddql.settings import Settings, preset
from meterveil.defenders.manager.run import training_scenario
from meterveil.errors import InputError

RUN, POLICY = "run.json", "policy.safetensors"
FORMAT = "meterveil-ddql-1"


@dataclass(frozen=True)
class Options:
    """Say how a household's defence is to be trained."""

    method: str
    """`ddql_flat` or `ddql_mi`."""
    settings: Settings = field(default_factory=lambda: preset("fast"))
    weight: float = 1.0


@dataclass(frozen=True)
class LoadedDdql:
    """Hold a finished training."""

    policy: QPolicy
    document: dict[str, Any]
    """What `run.json` says."""


def learn(
    household: Household,
    days: Sequence[date],
    setup: Setup,
    options: Options,
    folder: Path,
    notes: Mapping[str, Any] | None = None,
    on_epoch: Callable[[Any], object] | None = None,
) -> LoadedDdql:
    """Train a defence for a household on these days, or go on where the folder's training stopped."""
    from meterveil.defenders.ddql.training import Lesson, train  # noqa: PLC0415  torch waits for a training

    scenario = training_scenario(household, days, setup)
    lesson = Lesson(options.method, setup.battery, scenario, options.settings, options.weight, setup.seed)
    document = {
        "format": FORMAT,
        "version": __version__,
        "status": "unfinished",
        **(notes or {}),
        "household": household.name,
        "aggregate": household.aggregate,
        "days": [str(day) for day in days],
        "seed": setup.seed,
        "battery": settings.battery_values(setup.battery),
        "tariff": tariff_document(setup.tariff),
        "options": asdict(options),
    }
    _write(folder, document)
    trained = train(lesson, folder, on_epoch)
    weights = arrays_bytes(trained.policy.arrays())
    document |= {
        "status": "finished",
        "weights": hashlib.sha256(weights).hexdigest(),
        "figures": _figures(trained.policy, scenario, setup) | {"training_seconds": trained.seconds},
        "curve": [asdict(epoch) for epoch in trained.curve],
    }
    _write(folder, document, weights)
    return load_ddql(folder)


def load_ddql(folder: Path) -> LoadedDdql:
    """Read a finished training, without torch; a missing, foreign or altered file is refused."""
    document = read_document(folder)
    if document["status"] != "finished":
        raise InputError(f"the training in {folder} is not finished; go on with meterveil train --resume")
    try:
        weights = (folder / POLICY).read_bytes()
    except OSError as error:
        raise InputError(f"the run {folder} lacks a file: {error}; train anew") from error
    if hashlib.sha256(weights).hexdigest() != document["weights"]:
        raise InputError(f"{POLICY} in {folder} was altered since the training; train anew")
    try:
        return LoadedDdql(QPolicy.of(load_arrays(weights)), document)
    except SafetensorError as error:
        raise InputError(f"{folder / POLICY} is damaged: {error}; train anew") from error


def is_ddql(folder: Path) -> bool:
    """Tell whether a folder holds a training of this kind, finished or not."""
    try:
        document = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_document(folder: Path) -> dict[str, Any]:
    """Read what a run says of itself, finished or not."""
    if not is_ddql(folder):
        raise InputError(f'{folder} holds no training of "format": "{FORMAT}" ({RUN}); train anew')
    document: dict[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    return document


def _write(folder: Path, document: dict[str, Any], weights: bytes | None = None) -> None:
    files: dict[Path, Callable[[Path], object]] = {}
    if weights is not None:
        files[folder / POLICY] = lambda path: path.write_bytes(weights)
    files[folder / RUN] = outputs.text_writer(json.dumps(document, indent=1) + "\n")
    outputs.write_all(files)


def _figures(policy: QPolicy, scenario: Scenario, setup: Setup) -> dict[str, float]:
    """Measure what the policy does on the days that it learned from: no claim, but a first look."""
    rngs = [np.random.default_rng([setup.seed, row]) for row in range(scenario.batch)]
    trace = rollout(policy, setup.battery, setup.library, scenario, rngs)
    return {
        "training_days_moved_kwh": float(np.abs(trace.power_w).sum(axis=1).mean() * KWH_PER_W_MINUTE),
        "training_days_end_soc": float(trace.soc[:, -1].mean()),
        "training_days_load_std_w": float(np.nanstd(trace.load_w)),
        "training_days_meter_std_w": float(np.nanstd(trace.meter_w)),
    }
