"""A small world for the adapters: four days of unequal length, one of them with a gap."""

import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.synthetic import decoy_signatures


@pytest.fixture(scope="session")
def params() -> EnvParams:
    return EnvParams(Battery(), Library.of(decoy_signatures(np.random.default_rng(3)), "synthetic"))


@pytest.fixture(scope="session")
def scenario() -> Scenario:
    return stack([_day(np.random.default_rng(row), minutes) for row, minutes in enumerate([300, 240, 360, 300])])


def _day(rng: np.random.Generator, minutes: int) -> Scenario:
    load_w = rng.gamma(2.0, 200.0, (1, 60 + minutes)) + 2000.0 * (rng.random((1, 60 + minutes)) < 0.1)
    load_w[0, 200:220] = np.nan
    clock = np.arange(300, 360 + minutes)[None] % 1440
    return Scenario(load_w, clock, np.zeros_like(clock), PAPER_TARIFF.price(clock, clock), np.array([minutes]), lead=60)
