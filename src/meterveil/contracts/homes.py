"""Small homes whose appliances are known, and scores straight from their definitions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from meterveil.attackers.protocol import Attacker, meter_of
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w


def home(days: int = 5, seed: int = 0, base_w: float = 60.0) -> Household:
    """Draw a kettle at breakfast (later at weekends), a microwave at noon and a fridge that cycles."""
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


def square_waves(days: int = 4, seed: int = 0) -> Household:
    """Draw a microwave that runs 10 minutes in every 100 or so, in a house that is otherwise only noise."""
    rng = np.random.default_rng(seed)
    minutes = pd.date_range("2024-01-01", periods=days * 1440, freq="min", tz="Europe/London")
    microwave_w = np.zeros(len(minutes))
    for start in np.arange(0, len(minutes), 100) + rng.integers(0, 80, days * 1440 // 100 + 1):
        microwave_w[start : start + 10] = 1000.0
    noise_w = rng.uniform(100, 200, len(minutes))
    return Household("waves", minutes, microwave_w + noise_w, {"microwave": microwave_w})


def scores(
    attacker: Attacker, days: Sequence[Household], target: str, head: bool = False
) -> tuple[float, float]:
    """Compute RMSE in watts and F1, from the power said or from the on-probability."""
    truth_w = np.concatenate([day.appliances_w[target] for day in days])
    known = ~np.isnan(truth_w) & ~np.isnan(np.concatenate([day.aggregate_w for day in days]))
    said = [attacker.predict(meter_of(day)) for day in days]
    said_w = np.concatenate([one.watts[target][0] for one in said])[known]
    on = np.concatenate([one.on[target][0] for one in said])[known] >= 0.5 if head else None
    on = said_w >= on_threshold_w(target) if on is None else on
    truly_on = truth_w[known] >= on_threshold_w(target)
    rmse_w = float(np.sqrt(np.mean((said_w - truth_w[known]) ** 2)))
    return rmse_w, float(2 * np.sum(on & truly_on) / max(np.sum(on) + np.sum(truly_on), 1))
