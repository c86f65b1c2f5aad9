"""A DDQL training as a folder: a run that replays no signatures and needs no probe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as arrays_bytes

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders import runs
from meterveil.defenders.ddql.policy import QPolicy
from meterveil.defenders.ddql.settings import Settings, preset
from meterveil.defenders.lessons import training_scenario

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
    document = runs.begun(FORMAT, household, days, setup, notes or {}) | {"options": asdict(options)}
    runs.write(folder, document)
    trained = train(lesson, folder, on_epoch)
    weights = arrays_bytes(trained.policy.arrays())
    document |= {
        "status": runs.FINISHED,
        "weights": runs.hash_of(weights),
        "figures": _figures(trained.policy, scenario, setup) | {"training_seconds": trained.seconds},
        "curve": [asdict(epoch) for epoch in trained.curve],
    }
    runs.write(folder, document, weights)
    return load_ddql(folder)


def load_ddql(folder: Path) -> LoadedDdql:
    """Read a finished training, without torch; a missing, foreign or altered file is refused."""
    document = runs.read_finished(folder, FORMAT)
    return LoadedDdql(QPolicy.of(runs.read_weights(folder, document)), document)


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
