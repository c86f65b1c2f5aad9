"""A manager's training as a folder: a run with the signatures and the probe that it learned with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as arrays_bytes

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.data.windows import Scaler
from meterveil.defenders import runs
from meterveil.defenders.lessons import training_scenario
from meterveil.defenders.manager.policy import Choice, ManagerPolicy, Mlp
from meterveil.defenders.manager.presets import Preset, preset
from meterveil.errors import InputError

RUN, LIBRARY, POLICY = runs.RUN, "library.json", runs.POLICY
FORMAT = "meterveil-run-1"


@dataclass(frozen=True)
class Options:
    """Say how a household's defence is to be trained."""

    preset: Preset = field(default_factory=lambda: preset("fast"))
    probe: str = "transformer"
    weight: float = 1.0
    clip_signatures: bool = False
    choice: Choice = "sampled"
    """How the policy acts once it is trained; the paper trains by sampling and does not say."""


@dataclass(frozen=True)
class Listeners:
    """Tell somebody how it goes."""

    on_epoch: Callable[[int, float], object] | None = None
    on_update: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class LoadedRun:
    """Hold a finished training."""

    policy: ManagerPolicy
    network: Mlp
    library: Library
    document: dict[str, Any]
    """What `run.json` says."""


def learn(
    household: Household,
    days: Sequence[date],
    setup: Setup,
    options: Options,
    folder: Path,
    notes: Mapping[str, Any] | None = None,
    listeners: Listeners | None = None,
) -> LoadedRun:
    """Train a defence for a household on these days, or go on where the folder's training stopped."""
    from meterveil.defenders.manager import probe_training, probes, training  # noqa: PLC0415  torch waits for a training

    listeners, began = listeners or Listeners(), time.perf_counter()
    params = EnvParams(setup.battery, setup.library)
    scenario = training_scenario(household, days, setup)
    untrained = probes.Probe(probes.check_kind(options.probe), Scaler(0.0, 1.0))
    lesson = training.Lesson(
        params, scenario, untrained, options.preset, options.weight, setup.seed, options.clip_signatures
    )
    training.check(lesson)
    document = runs.begun(FORMAT, household, days, setup, notes or {})
    document |= {"library": setup.library.digest(), "options": asdict(options)}
    texts = {LIBRARY: setup.library.to_json()}
    resumed = (folder / runs.CHECKPOINT).exists()
    runs.write(folder, document, texts=texts)
    if (folder / probes.CARD).exists():
        probe = probes.load(folder)
    else:
        with training.own_randomness():
            probe = probe_training.train_probe(
                options.probe, household, days, setup.seed, progress=listeners.on_epoch
            )
        probes.save(probe, folder)
    trained = training.train(replace(lesson, probe=probe), folder, listeners.on_update)
    weights = arrays_bytes(trained.network.arrays())
    timed = {} if resumed else {"training_seconds": time.perf_counter() - began}
    document |= {
        "status": runs.FINISHED,
        "probe": {"kind": probe.kind, **probe.quality},
        "weights": runs.hash_of(weights),
        "figures": _figures(trained.policy(options.choice), scenario, setup)
        | {"decisions": trained.curve[-1].decisions, "minutes": trained.curve[-1].minutes}
        | timed,
        "curve": [asdict(update) for update in trained.curve],
    }
    runs.write(folder, document, weights, texts)
    return load_run(folder)


def load_run(folder: Path) -> LoadedRun:
    """Read a finished training, without torch; a missing, foreign or altered file is refused."""
    document = runs.read_finished(folder, FORMAT)
    network = Mlp.of(runs.read_weights(folder, document))
    try:
        library = Library.from_json((folder / LIBRARY).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the run {folder} lacks a file: {error}; train anew") from error
    if library.digest() != document["library"]:
        raise InputError(f"{LIBRARY} in {folder} was altered since the training; train anew")
    options = document["options"]
    policy = ManagerPolicy(network, library.n_actions, options["preset"]["masked"], options["choice"])
    return LoadedRun(policy, network, library, document)


def read_document(folder: Path) -> dict[str, Any]:
    """Read what a run says of itself, finished or not."""
    return runs.read_document(folder, FORMAT)


def _figures(policy: ManagerPolicy, scenario: Scenario, setup: Setup) -> dict[str, float]:
    """Measure what the policy does on the days that it learned from: no claim, but a first look."""
    rngs = [np.random.default_rng([setup.seed, row]) for row in range(scenario.batch)]
    trace = rollout(policy, setup.battery, setup.library, scenario, rngs)
    return {
        "training_days_moved_kwh": float(np.abs(trace.power_w).sum(axis=1).mean() * KWH_PER_W_MINUTE),
        "training_days_rms_w": float(np.sqrt(np.mean(trace.power_w**2))),
        "training_days_end_soc": float(trace.soc[:, -1].mean()),
    }
