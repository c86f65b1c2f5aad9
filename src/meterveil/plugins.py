"""The embedded household under a name that Gymnasium knows; importing this module registers it.

Gymnasium 1 looks for no entry points, but imports the module before the colon:
`gymnasium.make("meterveil.plugins:meterveil/Household-v0")`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.simulation import episodes

GYMNASIUM_ID = "meterveil/Household-v0"


def register_gymnasium() -> None:
    """Register the embedded household, unless that has been done."""
    if GYMNASIUM_ID not in gymnasium.registry:
        gymnasium.register(GYMNASIUM_ID, entry_point="meterveil.plugins:household_env")


def household_env(**changes: Any) -> HouseholdEnv:
    """Build the environment of the embedded household: two weeks, of which every day is an episode.

    `changes` replace its `params`, `scenario` or `reward`.
    """
    home = synthetic.household(np.random.default_rng(0), days=14)
    default: dict[str, Any] = {
        "params": EnvParams(Battery(), synthetic.decoy_library()),
        "scenario": episodes(home, home.days(), PAPER_TARIFF),
        "reward": rms_disturbance_kw,
    }
    return HouseholdEnv(**{**default, **changes})


def rms_disturbance_kw(scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
    """Pay the RMS battery power of the window that ends with a decision, where that moved energy (D5).

    It is the error of a probe that takes the meter for the load, and needs no training.
    """
    rms_w = np.sqrt(np.mean(after.past_w**2, axis=1))
    paid_w: FloatArray = np.where(after.moved_kwh > 0.0, rms_w, 0.0)
    return paid_w / 1000.0


register_gymnasium()
