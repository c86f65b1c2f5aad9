"""How long the manager's training takes, beside the obvious implementation, in one run.

Both train with the paper's settings on ten days of the embedded household, under the same transformer probe.
The obvious one steps one Gymnasium household and asks the probe twice in every decision, for the masked and
for the clean window; it is run on a small part of the budget, and its time is scaled up. `--household redd`
or `ukdale` takes a real house from $METERVEIL_DATA. The probe is not trained: that does not change its cost.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from stable_baselines3 import PPO
from torch.profiler import ProfilerActivity, profile, record_function

from _record import record
from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.simulation import Setup, episodes
from meterveil.data.splits import Scaler
from meterveil.defenders.manager import probe_reward, probes
from meterveil.defenders.manager.manager_training import train
from meterveil.defenders.manager.probes import Float32Array
from meterveil.defenders.training_settings import ManagerSettings, manager_settings

PLAIN_DECISIONS = 4096
"""One horizon of the paper's: the obvious implementation collects and learns once."""
PROFILED_DAYS = 15
PRODUCTS = ("aten::addmm", "aten::bmm", "aten::mm", "aten::baddbmm")


class ObviousReward:
    """Reward of the obvious implementation: the probe reads both windows of each decision, one at a time."""

    def __init__(self, probe: probes.Probe) -> None:
        self.probe = probe

    def __call__(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        """Return one reward."""
        end = scenario.lead + after.minute[0]
        clean_w = scenario.load_w[after.row, end - 60 : end]
        clean = np.nan_to_num(self.probe.scaler.transform(clean_w)).astype(np.float32)
        masked = clean + (after.past_w / self.probe.scaler.std).astype(np.float32)
        errors = [np.mean((self.probe.reconstruct(seen) - clean) ** 2) for seen in (masked, clean)]
        return np.array([errors[0] - errors[1]]) * (after.moved_kwh > 0.0)


class TrainingArguments(NamedTuple):
    """Arguments of a training."""

    settings: ManagerSettings
    setup: Setup
    scenario: Scenario
    probe: probes.Probe


def training_arguments(name: str) -> TrainingArguments:
    """Take ten days of a house and a transformer of the paper's size."""
    if name == "synthetic":
        home = synthetic.household(np.random.default_rng(0), days=10)
        days = home.days()
    else:
        protocol = PROTOCOLS[name]
        home = load(Path(os.environ["METERVEIL_DATA"]) / protocol.dataset, protocol.house, appliances=[])
        days = list(protocol.training)
    scenario = episodes(home, days, PAPER_TARIFF)
    torch.manual_seed(0)
    network = probes.build("transformer")
    assert network is not None
    probe = probes.Probe("transformer", Scaler.fit(scenario.load_w), network.eval())
    return TrainingArguments(manager_settings("paper"), Setup(synthetic.decoy_library()), scenario, probe)


def plain_seconds(arguments: TrainingArguments) -> tuple[float, float, int]:
    """Train the obvious way for one horizon; return seconds, processor time and simulated minutes."""
    settings, minutes = arguments.settings, 0

    class Counting(HouseholdEnv):
        def step(self, action):  # type: ignore[no-untyped-def]
            nonlocal minutes
            before = self.state.minute[0]
            answer = super().step(action)
            minutes += int(self.state.minute[0] - before)
            return answer

    params = EnvParams(arguments.setup.battery, arguments.setup.library)
    household = Counting(params, arguments.scenario, ObviousReward(arguments.probe))
    model = PPO(
        "MlpPolicy",
        household,
        learning_rate=settings.learning_rate,
        n_steps=settings.horizon,
        batch_size=settings.minibatch,
        n_epochs=settings.epochs,
        clip_range=settings.clip,
        ent_coef=settings.entropy,
        target_kl=settings.target_kl,
        seed=0,
        device="cpu",
    )
    began, worked = time.perf_counter(), time.process_time()
    model.learn(PLAIN_DECISIONS)
    return time.perf_counter() - began, time.process_time() - worked, minutes


class Watch:
    """Processor time that threads spend inside the probe."""

    def __init__(self) -> None:
        self.seconds, self._lock = 0.0, Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure every call of a probe in this context."""
        answer = probes.Probe.reconstruct

        def watched(probe: probes.Probe, scaled: Float32Array) -> Float32Array:
            began = time.thread_time()
            with record_function("probe"):
                output = answer(probe, scaled)
            with self._lock:
                self.seconds += time.thread_time() - began
            return output

        probes.Probe.reconstruct = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            probes.Probe.reconstruct = answer  # type: ignore[method-assign]


def products_share(arguments: TrainingArguments) -> float:
    """Profile a short training: which share of the probe's time goes into matrix products.

    On one thread, since a profile does not say to whom the work of another thread belongs.
    """
    short = arguments._replace(settings=replace(arguments.settings, budget_days=PROFILED_DAYS))
    shared_out, probe_reward._WORTH_SHARING = probe_reward._WORTH_SHARING, 10**9
    with Watch().watching(), profile(activities=[ProfilerActivity.CPU]) as profiled:
        train(*short)
    probe_reward._WORTH_SHARING = shared_out
    events = profiled.events()
    inside = sum(event.cpu_time_total for event in events if event.name == "probe")
    products = sum(event.self_cpu_time_total for event in events if event.name in PRODUCTS and _within(event, "probe"))
    return products / inside


def _within(event: Any, name: str) -> bool:
    while event is not None and event.name != name:
        event = event.cpu_parent
    return event is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--household", default="synthetic", choices=["synthetic", *PROTOCOLS])
    arguments = training_arguments(parser.parse_args().household)
    torch.set_num_threads(1)
    plain_s, plain_cpu_s, plain_minutes = plain_seconds(arguments)
    watch, began = Watch(), time.process_time()
    with watch.watching():
        trained = train(*arguments)
    cpu_s = time.process_time() - began
    factor = trained.curve[-1].minutes / plain_minutes
    probe = watch.seconds / cpu_s
    products = probe * products_share(arguments)
    table = Table("what", "value", "unit", "target", title="Training with the paper's budget")
    for words, value, unit, target in (
        ("300 days with a transformer probe", trained.seconds, "s", "<= 90"),
        ("300 days with a transformer probe, processor time", cpu_s, "s", ""),
        ("the obvious implementation, scaled up", plain_s * factor, "s", ""),
        ("obvious implementation / ours", plain_s * factor / trained.seconds, "x", ">= 8"),
        ("obvious implementation / ours, processor time", plain_cpu_s * factor / cpu_s, "x", ">= 8"),
        ("share of the processor time inside the probe", probe * 100, "%", ">= 50"),
        ("share of it inside the probe's matrix products", products * 100, "%", ""),
        ("decisions", trained.curve[-1].decisions, "", ""),
    ):
        record(f"training: {words}", value, unit, target)
        table.add_row(words, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}", unit, target)
    Console().print(table)


if __name__ == "__main__":
    main()
