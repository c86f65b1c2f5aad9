"""The synthetic household as a registered Gymnasium environment; importing this module registers it.

Gymnasium imports the module before the colon:
`gymnasium.make("meterveil.adapters.embedded:meterveil/Household-v0")`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams, rms_disturbance_kw
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.simulation import episodes

GYMNASIUM_ID = "meterveil/Household-v0"


def household_env(**changes: Any) -> HouseholdEnv:
    """Build the environment of two weeks, each day an episode; `changes` replace its arguments."""
    home = synthetic.household(np.random.default_rng(0), days=14)
    params = EnvParams(Battery(), synthetic.decoy_library())
    scenario = episodes(home, home.days(), PAPER_TARIFF)
    return HouseholdEnv(**{"params": params, "scenario": scenario, "reward": rms_disturbance_kw, **changes})


if GYMNASIUM_ID not in gymnasium.registry:
    gymnasium.register(GYMNASIUM_ID, entry_point=f"{__name__}:household_env")
