"""A household and settings that train within seconds."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.simulation import Setup
from meterveil.data.splits import Scaler
from meterveil.defenders.manager.ppo import TrainingHouseholds
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.training_settings import ManagerSettings, manager_settings

LIBRARY = Library.of(
    [("kettle", [1500.0, 2500.0, 2000.0]), ("oven", [1800.0] * 12), ("toaster", [900.0, 900.0])], "test"
)
SMALLER = Library.of(LIBRARY.signatures()[:2], "test")
IDENTITY = Probe("identity", Scaler(400.0, 500.0))

TINY = manager_settings(
    "fast", probe="identity", budget_days=4, horizon=256, slots=8, minibatch=128, epochs=2, masked=True
)


def scenario(days: int = 2, seed: int = 0, gaps: bool = False) -> Scenario:
    return stack([_day(np.random.default_rng([seed, day]), gaps) for day in range(days)])


def _day(rng: np.random.Generator, gaps: bool) -> Scenario:
    load_w = rng.gamma(2.0, 200.0, (1, 1500)) + 2000.0 * (rng.random((1, 1500)) < 0.05)
    if gaps:
        load_w[0, 700:720] = np.nan
    clock = np.arange(-60, 1440)[None] % 1440
    price = PAPER_TARIFF.price(clock, clock)
    return Scenario(load_w, clock, np.zeros_like(clock), price, np.array([1440]), lead=60)


class Lesson(NamedTuple):
    """Arguments of `train`."""

    settings: ManagerSettings
    setup: Setup
    scenario: Scenario
    probe: Probe

    def households(self) -> TrainingHouseholds:
        reward = ProbeReward(self.probe, self.scenario, self.settings.weight, self.settings.loss)
        params = EnvParams(self.setup.battery, self.setup.library)
        return TrainingHouseholds(params, self.scenario, reward, self.settings)


def lesson(battery=None, library=LIBRARY, world=None, seed=0, **changes) -> Lesson:
    setup = Setup(library, battery or Battery(), seed=seed)
    return Lesson(replace(TINY, **changes), setup, world or scenario(), IDENTITY)
