"""Small homes whose appliances are known, and the paper's days of the real ones."""

from datetime import timedelta

import numpy as np
import pandas as pd

from meterveil.data.household import Household
from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.redd import read_redd
from meterveil.data.ukdale import read_ukdale


def home(days=5, seed=0, base_w=60.0):
    """A kettle at breakfast (later at weekends), a microwave at noon and a fridge that cycles."""
    rng = np.random.default_rng(seed)
    minutes = pd.date_range("2024-01-01", periods=days * 1440, freq="min", tz="Europe/London")
    power_w = {name: np.zeros(len(minutes)) for name in ("kettle", "microwave", "fridge")}
    for day in range(days):
        breakfast = 420 + 120 * (day % 7 >= 5) + int(rng.integers(-10, 11))
        noon = 720 + int(rng.integers(-15, 16))
        power_w["kettle"][day * 1440 + breakfast :][:4] = 2200.0
        power_w["kettle"][day * 1440 + 1000 :][:3] = 2200.0
        power_w["microwave"][day * 1440 + noon :][:8] = 800.0
    power_w["fridge"] = np.where((np.arange(len(minutes)) + seed) % 50 < 20, 90.0, 0.0)
    total_w = base_w + sum(power_w.values()) + rng.normal(0.0, 1.0, len(minutes))
    return Household("home", minutes, np.maximum(total_w, 0.0), power_w)


def real_days(folder, dataset):
    """Training days as one household, the held-out days and the targets of a protocol."""
    if dataset == "redd":
        house, protocol = read_redd(folder / "redd", 2), REDD_HOUSE2
        held_out = protocol.test
    else:
        house, protocol = read_ukdale(folder / "ukdale", 1), UKDALE_HOUSE1
        held_out = protocol.held_out(house.select(["fridge", "kettle", "microwave"]))[:14]
    targets = protocol.present_targets(house, protocol.test[0])
    training = house.between(protocol.training[0], protocol.training[-1] + timedelta(days=1))
    return training.select(targets), [house.select(targets).day(day) for day in held_out], targets
