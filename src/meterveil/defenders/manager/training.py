"""Trains the manager: PPO that chooses which signature to replay, and when (section 5, appendices C and E.4).

Only the manager learns. The probe is fixed, the executor is the core's.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger, configure

from meterveil.core import executor
from meterveil.core.battery import BatteryState
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario
from meterveil.defenders import runs
from meterveil.defenders.lessons import check_lambda
from meterveil.defenders.manager import checkpoint
from meterveil.defenders.manager.env import TrainingHouseholds
from meterveil.defenders.manager.parts import MaskedPolicy, MinuteDiscount
from meterveil.defenders.manager.policy import Choice, ManagerPolicy, Mlp
from meterveil.defenders.manager.presets import Preset
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.manager.reward import ProbeReward, check_loss
from meterveil.errors import InputError

CHECKPOINT, TENSORBOARD = runs.CHECKPOINT, "tensorboard"

THREADS = 1
"""Threads within one matrix product: all of them are too small to share, and threads that wait for each other
on a busy machine cost a hundredfold. The probe's windows are shared out instead (`reward.WORKERS`)."""


@dataclass(frozen=True)
class Lesson:
    """Say what is learned from, what is rewarded, and how."""

    params: EnvParams
    scenario: Scenario
    """One row for each training day."""
    probe: Probe
    preset: Preset
    weight: float = 1.0
    """Lambda of `eq:total_reward`: 1 is privacy alone."""
    seed: int = 0
    clip_signatures: bool = False
    """Accept signatures that are stronger than the battery; it then plays them with their tops cut off."""

    def key(self) -> str:
        """Hash of everything that can change what is learned."""
        numbers = [asdict(self.preset), self.weight, self.seed, self.params.degradation_per_kwh]
        settings = [*numbers, self.params.soc_start, self.probe.kind, self.params.library.digest()]
        digest = hashlib.sha256(json.dumps(settings).encode())
        digest.update(repr(self.params.battery).encode())
        digest.update(self.probe.weights())
        for part in (self.scenario.load_w, self.scenario.price, self.scenario.minutes):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Update:
    """Tell how a training stands after an update."""

    decisions: int
    minutes: int
    """Simulated so far, of all slots together."""
    reward_per_decision: float
    minutes_per_decision: float
    reward_per_day: float | None
    """Mean over the whole days that ended since the update before; none did, where it is None."""
    entropy: float


@dataclass(frozen=True)
class Trained:
    """Hold what was learned, and how that went."""

    network: Mlp
    n_actions: int
    masked: bool
    curve: tuple[Update, ...]
    seconds: float
    """Wall time of this process; a resumed training does not know of the time before."""

    def policy(self, choice: Choice = "sampled") -> ManagerPolicy:
        """Return what evaluates and deploys."""
        return ManagerPolicy(self.network, self.n_actions, self.masked, choice)


def train(
    lesson: Lesson,
    folder: Path | None = None,
    on_update: Callable[[Update], object] | None = None,
) -> Trained:
    """Train until the preset's budget is simulated.

    With a folder, every update leaves a checkpoint there, and a training that was killed goes on from it.
    """
    check(lesson)
    began = time.perf_counter()
    reward = ProbeReward(lesson.probe, lesson.scenario, lesson.weight, lesson.preset.loss)
    households = TrainingHouseholds(lesson.params, lesson.scenario, reward, lesson.preset)
    with own_randomness():
        model = build(lesson, households)
        model.set_logger(_logger(folder))
        curve: list[Update] = []
        if folder and (folder / CHECKPOINT).exists():
            known = checkpoint.restore(folder / CHECKPOINT, model, households, lesson.key())
            curve = [Update(**entry) for entry in known]
        while households.minutes < lesson.preset.budget_minutes:
            curve.append(_update(model, households, lesson.preset))
            if folder:
                entries = [asdict(entry) for entry in curve]
                checkpoint.save(folder / CHECKPOINT, model, households, lesson.key(), entries)
            if on_update:
                on_update(curve[-1])
        network = actor(model)
    took = time.perf_counter() - began
    return Trained(network, lesson.params.library.n_actions, lesson.preset.masked, tuple(curve), took)


def check(lesson: Lesson) -> None:
    """Refuse what cannot be learned from, before any time is spent on it."""
    check_lambda(lesson.weight)
    check_loss(lesson.preset.loss)
    battery, library = lesson.params.battery, lesson.params.library
    loads_w = np.nan_to_num(np.nanmax(lesson.scenario.load_w, axis=1))
    rested = BatteryState(np.full(len(loads_w), lesson.params.soc_start), np.zeros(len(loads_w)))
    if not executor.feasible(battery, library, rested, loads_w)[:, 1:].any():
        raise InputError(
            "this battery can do nothing: it would move no energy for any signature, even at the highest "
            "load; give it power, a budget and a SoC range"
        )
    longest, day = int(library.lengths.max()), int(lesson.scenario.minutes.min())
    if longest > day:
        raise InputError(
            f"a signature of {longest:,} minutes is longer than the shortest training day of {day:,}; "
            "leave it out of the library, or give whole days"
        )
    peak_w, limit_w = (
        library.watts.max(axis=1),
        float(np.max(np.maximum(battery.charge_w, battery.discharge_w))),
    )
    if peak_w.max() > limit_w and not lesson.clip_signatures:
        worst = int(np.argmax(peak_w))
        raise InputError(
            f"signature {worst} ({library.names[worst]}) reaches {peak_w[worst]:,.0f} W, the battery "
            f"{limit_w:,.0f} W; leave it out, or accept that its top is cut off (--clip)"
        )


def build(lesson: Lesson, households: TrainingHouseholds) -> PPO:
    """Build the learner; it draws its weights from the seed."""
    preset = lesson.preset
    by_minute = preset.discount == "minute"
    return PPO(
        MaskedPolicy if preset.masked else "MlpPolicy",
        households,
        learning_rate=preset.learning_rate,
        n_steps=preset.horizon // preset.slots,
        batch_size=preset.minibatch,
        n_epochs=preset.epochs,
        gamma=preset.gamma,
        gae_lambda=preset.gae_lambda,
        clip_range=preset.clip,
        ent_coef=preset.entropy,
        target_kl=preset.target_kl,
        rollout_buffer_class=MinuteDiscount if by_minute else None,
        rollout_buffer_kwargs={"households": households} if by_minute else None,
        seed=lesson.seed,
        device="cpu",
    )


def actor(model: PPO) -> Mlp:
    """Take the actor out of the learner."""
    state = {name: part.detach().numpy().copy() for name, part in model.policy.state_dict().items()}
    layers: Sequence[str] = ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net")
    weights = tuple(np.ascontiguousarray(state[f"{layer}.weight"].T) for layer in layers)
    return Mlp(weights, tuple(state[f"{layer}.bias"] for layer in layers))


def _update(model: PPO, households: TrainingHouseholds, preset: Preset) -> Update:
    """Collect one horizon of decisions and learn from them."""
    before, households.finished = households.minutes, []
    left = max(1.0 - before / preset.budget_minutes, 0.0) if preset.anneal else 1.0
    model.lr_schedule = lambda _: preset.learning_rate * left
    model.learn(preset.horizon, reset_num_timesteps=False)
    entropy = model.logger.name_to_value.get("train/entropy_loss", 0.0)
    return Update(
        decisions=model.num_timesteps,
        minutes=households.minutes,
        reward_per_decision=float(model.rollout_buffer.rewards.mean()) / preset.reward_scale,
        minutes_per_decision=(households.minutes - before) / preset.horizon,
        reward_per_day=float(np.mean(households.finished)) if households.finished else None,
        entropy=-float(entropy),
    )


def _logger(folder: Path | None) -> Logger:
    """Write TensorBoard's files where there is a folder and a TensorBoard."""
    if folder is None or find_spec("tensorboard") is None:
        return Logger(None, [])
    return configure(str(folder / TENSORBOARD), ["tensorboard"])


@contextmanager
def own_randomness() -> Iterator[None]:
    """Let SB3 seed the global generators, and leave them and the thread count as they were."""
    before: Any = np.random.get_state()  # noqa: NPY002  what SB3 draws from
    count = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(count)
        np.random.set_state(before)  # noqa: NPY002  what SB3 draws from
