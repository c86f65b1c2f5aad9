"""Training of the manager by PPO (section 5, appendices C and E.4), in memory or in a run folder.

Only the manager learns; probe and executor are fixed. A denoising probe is refitted from time to time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger, configure

from meterveil.core import executor
from meterveil.core.battery import INITIAL_SOC, BatteryState
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders.manager import ppo, probes
from meterveil.defenders.manager.denoising import DenoisingReward
from meterveil.defenders.manager.ppo import TrainingHouseholds
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.run_folder import (
    CHECKPOINT,
    TrainedRun,
    finish_run,
    own_randomness,
    run_document,
    training_key,
    write_run,
)
from meterveil.defenders.trained_policies import ManagerPolicy
from meterveil.defenders.training_days import Trained, training_figures, training_scenario
from meterveil.defenders.training_settings import DENOISING, ManagerSettings
from meterveil.errors import InputError

TENSORBOARD = "tensorboard"


@dataclass(frozen=True)
class Update:
    """State of a training after an update."""

    decisions: int
    minutes: int
    """Minutes simulated so far, in all slots together."""
    reward_per_decision: float
    minutes_per_decision: float
    reward_per_day: float | None
    """Mean over the whole days since the last update; None without any."""
    entropy: float
    relative_error: float | None = None
    """Error of a denoising probe after its latest refit, relative to that of the usual load."""


def learn(
    household: Household,
    days: Sequence[date],
    setup: Setup,
    settings: ManagerSettings,
    folder: Path,
    notes: Mapping[str, Any] | None = None,
    on_epoch: Callable[[int, float], object] | None = None,
    on_update: Callable[[Update], object] | None = None,
) -> TrainedRun:
    """Train a defence for a household in a run folder, or continue the training there.

    `on_epoch` is called after every epoch of the probe, `on_update` after every update of the manager.
    """
    began, resumed = time.perf_counter(), (folder / CHECKPOINT).exists()
    scenario = training_scenario(household, days, setup)
    check(settings, setup, scenario)
    document = run_document(settings, household, days, setup, notes)
    write_run(folder, document, setup.library)
    if (folder / probes.CARD).exists():
        probe = probes.load(folder)
    else:
        with own_randomness():
            recipe = probes.Recipe(epochs=settings.probe_epochs)
            probe = probes.train_probe(settings.probe, household, days, setup.seed, recipe, on_epoch)
        probes.save(probe, folder)
    trained = train(settings, setup, scenario, probe, folder, on_update)
    last = trained.curve[-1]
    figures: dict[str, float] = training_figures(trained.policy, scenario, setup)
    figures |= {"decisions": last.decisions, "minutes": last.minutes}
    if not resumed:
        figures["training_seconds"] = time.perf_counter() - began
    return finish_run(
        folder,
        document,
        trained.policy.network.arrays(),
        probe={"kind": probe.kind, **probe.quality},
        figures=figures,
        curve=[asdict(update) for update in trained.curve],
    )


def train(
    settings: ManagerSettings,
    setup: Setup,
    scenario: Scenario,
    probe: probes.Probe,
    folder: Path | None = None,
    on_update: Callable[[Update], object] | None = None,
) -> Trained[ManagerPolicy, Update]:
    """Train on the rows of a scenario, one per day, until the budget of the settings is simulated.

    With a folder, every update writes a checkpoint, and an interrupted training continues from it.
    """
    check(settings, setup, scenario)
    began, key = time.perf_counter(), manager_key(settings, setup, scenario, probe)
    denoising = DenoisingReward(probe, scenario, settings.weight, settings.loss) if probe.kind == DENOISING else None
    reward = denoising or ProbeReward(probe, scenario, settings.weight, settings.loss)
    params = EnvParams(setup.battery, setup.library)
    households = TrainingHouseholds(params, scenario, reward, settings)
    path = folder / CHECKPOINT if folder else None
    reader = denoising.probe.network if denoising else None
    with own_randomness():
        model = ppo.build(settings, households, setup.seed)
        model.set_logger(_logger(folder))
        curve: list[Update] = []
        if path and path.exists():
            curve = [Update(**entry) for entry in ppo.restore(path, model, households, key, reader)]
        while households.minutes < settings.budget_minutes:
            error = curve[-1].relative_error if curve else None
            if denoising and len(curve) % settings.refit_updates == 0:
                acting = _policy(model, settings, setup)
                error = denoising.refit(acting, setup, np.random.default_rng([setup.seed, len(curve)]))
            curve.append(replace(_update(model, households, settings), relative_error=error))
            if path:
                ppo.save(path, model, households, key, [asdict(entry) for entry in curve], reader)
            if on_update:
                on_update(curve[-1])
        policy = _policy(model, settings, setup)
    return Trained(policy, tuple(curve), time.perf_counter() - began)


def _policy(model: PPO, settings: ManagerSettings, setup: Setup) -> ManagerPolicy:
    return ManagerPolicy(ppo.actor(model), setup.library.n_actions, settings.masked, settings.choice)


def manager_key(settings: ManagerSettings, setup: Setup, scenario: Scenario, probe: probes.Probe) -> str:
    """Hash everything that can change what is learned."""
    data = (scenario.load_w, scenario.price, scenario.minutes)
    return training_key(settings, setup, (setup.library.digest().encode(), probe.weights(), *data))


def check(settings: ManagerSettings, setup: Setup, scenario: Scenario) -> None:
    """Refuse a setup that cannot be learned with, before any time is spent."""
    battery, library = setup.battery, setup.library
    loads_w = np.nan_to_num(np.nanmax(scenario.load_w, axis=1))
    rested = BatteryState(np.full(len(loads_w), INITIAL_SOC), np.zeros(len(loads_w)))
    if not executor.feasible(battery, library, rested, loads_w)[:, 1:].any():
        raise InputError(
            "this battery can do nothing: it would move no energy for any signature, even at the highest "
            "load; give it power, a budget and a SoC range"
        )
    longest, day = int(library.lengths.max()), int(scenario.minutes.min())
    if longest > day:
        raise InputError(
            f"a signature of {longest:,} minutes is longer than the shortest training day of {day:,}; "
            "remove it from the library, or give whole days"
        )
    peak_w = library.watts.max(axis=1)
    limit_w = float(np.max(np.maximum(battery.charge_w, battery.discharge_w)))
    if peak_w.max() > limit_w and not settings.clip_signatures:
        worst = int(np.argmax(peak_w))
        raise InputError(
            f"signature {worst} ({library.names[worst]}) reaches {peak_w[worst]:,.0f} W, the battery "
            f"{limit_w:,.0f} W; remove it, or accept that it is cut off (clip_signatures=True)"
        )


def _update(model: PPO, households: TrainingHouseholds, settings: ManagerSettings) -> Update:
    before, households.finished = households.minutes, []
    left = max(1.0 - before / settings.budget_minutes, 0.0) if settings.anneal else 1.0
    model.lr_schedule = lambda _: settings.learning_rate * left
    model.learn(settings.horizon, reset_num_timesteps=False)
    entropy = model.logger.name_to_value.get("train/entropy_loss", 0.0)
    return Update(
        decisions=model.num_timesteps,
        minutes=households.minutes,
        reward_per_decision=float(model.rollout_buffer.rewards.mean()) / settings.reward_scale,
        minutes_per_decision=(households.minutes - before) / settings.horizon,
        reward_per_day=float(np.mean(households.finished)) if households.finished else None,
        entropy=-float(entropy),
    )


def _logger(folder: Path | None) -> Logger:
    """Write TensorBoard files where there is a folder and TensorBoard is installed."""
    if folder is None or find_spec("tensorboard") is None:
        return Logger(None, [])
    return configure(str(folder / TENSORBOARD), ["tensorboard"])
