"""Days and settings from which a DDQL defence learns within seconds."""

from dataclasses import replace

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library
from meterveil.defenders.training_settings import DdqlSettings, settings_for

TINY = settings_for(
    "ddql_flat", epochs=2, slots=8, updates=4, minibatch=64, step_w=500.0, buffer=4000, h_hidden=8, h_passes=1
)
QUICK = replace(TINY, epochs=10, slots=16, block_minutes=60, updates=30, minibatch=128, gamma=0.9, buffer=50_000)


def two_levels(days: int = 2, low_w: float = 0.0, high_w: float = 1000.0, minutes: int = 1440) -> Scenario:
    """Half an hour low, half an hour high, from midnight on."""
    minute = np.arange(minutes)
    load_w = np.where(minute // 30 % 2, high_w, low_w)
    rows = [np.tile(part, (days, 1)) for part in (load_w, minute, np.zeros_like(minute))]
    return Scenario(*rows, PAPER_TARIFF.price(rows[1], rows[1]), np.full(days, minutes))


MORNING = two_levels(minutes=240)


def lesson(
    method="ddql_flat", battery=None, scenario=MORNING, seed=0, settings=TINY, **changes
) -> tuple[DdqlSettings, Setup, Scenario]:
    setup = Setup(decoy_library(), battery or Battery(), seed=seed)
    return replace(settings, method=method, **changes), setup, scenario


def play(policy, scenario=MORNING):
    rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
    return rollout(policy, Battery(), decoy_library(), scenario, rngs)
