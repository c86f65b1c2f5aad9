"""RMSE and F1 over several days, straight from their definitions."""

import numpy as np

from meterveil.attackers.protocol import meter_of
from meterveil.data.protocols import on_threshold_w


def scores(attacker, days, target, head=False):
    """RMSE in watts and F1, from the power said or from the on-probability."""
    truth_w = np.concatenate([day.appliances_w[target] for day in days])
    known = ~np.isnan(truth_w) & ~np.isnan(np.concatenate([day.aggregate_w for day in days]))
    said = [attacker.predict(meter_of(day)) for day in days]
    said_w = np.concatenate([one.watts[target][0] for one in said])[known]
    on = np.concatenate([one.on[target][0] for one in said])[known] >= 0.5 if head else None
    on = said_w >= on_threshold_w(target) if on is None else on
    truly_on = truth_w[known] >= on_threshold_w(target)
    rmse_w = float(np.sqrt(np.mean((said_w - truth_w[known]) ** 2)))
    return rmse_w, float(2 * np.sum(on & truly_on) / max(np.sum(on) + np.sum(truly_on), 1))
