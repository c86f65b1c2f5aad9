"""A household, a lesson and settings that train within seconds."""

from dataclasses import replace

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.windows import Scaler
from meterveil.defenders.manager.presets import preset
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.manager.training import Lesson

LIBRARY = Library.of(
    [("kettle", [1500.0, 2500.0, 2000.0]), ("oven", [1800.0] * 12), ("toaster", [900.0, 900.0])], "test"
)
IDENTITY = Probe("identity", Scaler(400.0, 500.0))

TINY = replace(preset("fast"), budget_days=6, horizon=256, slots=8, minibatch=128, epochs=2, masked=True)


def scenario(days: int = 2, seed: int = 0, gaps: bool = False) -> Scenario:
    return stack([_day(np.random.default_rng([seed, day]), gaps) for day in range(days)])


def _day(rng: np.random.Generator, gaps: bool) -> Scenario:
    load_w = rng.gamma(2.0, 200.0, (1, 1500)) + 2000.0 * (rng.random((1, 1500)) < 0.05)
    if gaps:
        load_w[0, 700:720] = np.nan
    clock = np.arange(-60, 1440)[None] % 1440
    price = PAPER_TARIFF.price(clock, clock)
    return Scenario(load_w, clock, np.zeros_like(clock), price, np.array([1440]), lead=60)


def lesson(**changes) -> Lesson:
    battery = changes.pop("battery", Battery())
    library = changes.pop("library", LIBRARY)
    made = Lesson(EnvParams(battery, library), scenario(), IDENTITY, TINY)
    return replace(made, **changes)
