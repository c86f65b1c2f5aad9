"""Fingerprint of the paper's defence: everything physical that its tables print, and what follows from it.

No figure of what attackers read of an appliance under the defence is part of it, so that a reading of the
paper can be chosen by its fingerprint and then tested blind. Battery figures are of one day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linprog  # type: ignore[import-untyped]

from meterveil.attackers.protocol import AGGREGATE
from meterveil.bench import reported
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import INITIAL_SOC, Battery
from meterveil.core.tariff import DEGRADATION_PER_KWH, PAPER_TARIFF
from meterveil.errors import InputError

READERS = ("bert4nilm", "electricity")
"""Attackers that read the undefended load to 4 to 16 W RMSE, so that their masked rows show the battery."""

HOURS = 24.0
ROUNDING = 0.005
"""Half of the last printed digit of the attacker tables."""
COST_TOLERANCE = 0.1
"""Share by which costs and energies may miss the printed ones before a term of the score exceeds 1."""
CHEAP, DEAR = PAPER_TARIFF.prices
"""Prices of the night and of the day (D7)."""


class Interval(NamedTuple):
    """Smallest and largest value that the printed figures allow."""

    low: float
    high: float


class Flows(NamedTuple):
    """Energy of a day in kWh, as intervals: net charge at the cheap and at the dear price, and both together."""

    cheap: Interval
    dear: Interval
    net: Interval
    discharged: Interval  # in the dear hours


def moved_kwh(degradation_cost: float) -> float:
    """Return the throughput that a degradation cost stands for."""
    return degradation_cost / DEGRADATION_PER_KWH


def flows(energy_cost: float, throughput_kwh: float, battery: Battery | None = None) -> Flows:
    """Bound what a day with this energy cost and throughput charged and discharged, and when.

    Unknown are four energies: charged and discharged at either price. Known are their sum, their cost, and
    that the state of charge stays in its range.
    """
    battery = battery or Battery()
    room_kwh = float(battery.capacity_kwh * (battery.soc_max - INITIAL_SOC))
    left_kwh = float(battery.capacity_kwh * (INITIAL_SOC - battery.soc_min))
    net = np.array([1.0, -1.0, 1.0, -1.0])  # charged and discharged when cheap, charged and discharged when dear
    asked = {
        "cheap": np.array([1.0, -1.0, 0.0, 0.0]),
        "dear": np.array([0.0, 0.0, 1.0, -1.0]),
        "net": net,
        "discharged": np.array([0.0, 0.0, 0.0, 1.0]),
    }
    equal = np.array([np.ones(4), np.repeat([CHEAP, DEAR], 2) * net])
    limits = {"A_eq": equal, "b_eq": [throughput_kwh, energy_cost], "A_ub": [net, -net], "b_ub": [room_kwh, left_kwh]}
    return Flows(**{name: Interval(_least(row, limits), -_least(-row, limits)) for name, row in asked.items()})


def cheapest_total(battery: Battery | None = None) -> float:
    """Return the lowest cost of a day, energy and degradation, that the battery allows without regard to the load."""
    battery = battery or Battery()
    net = np.array([1.0, -1.0, 1.0, -1.0])
    price = np.repeat([CHEAP, DEAR], 2) * net + DEGRADATION_PER_KWH
    left_kwh = float(battery.capacity_kwh * (INITIAL_SOC - battery.soc_min))
    bounds = {"A_ub": [-net, np.ones(4)], "b_ub": [left_kwh, float(battery.budget_kwh)]}
    return _least(price, bounds)


def load_bounds(dataset: str) -> Interval:
    """Bound the mean load of the paper's test day in watts, if the battery never exports.

    From above: a signed error is no larger than an absolute one, SAE x load <= MAE, for every attacker. From
    below: what a nearly perfect reader saw discharged, (MAE + SAE x load) / 2, is no more than the load; with
    the printed costs, neither is what must have been discharged in the dear hours.
    """
    above = float(highest_means(dataset)[AGGREGATE])
    read = _aggregate_rows(dataset)["masked"].loc[list(READERS)]
    below = float((read["mae"] / (2.0 - read["sae"])).min())
    if dataset == "ukdale":
        costs = papers_costs()
        drained = flows(costs["energy_cost"], moved_kwh(costs["degradation_cost"]))
        below = max(below, 1000.0 * drained.discharged.low / HOURS)
    return Interval(below, above)


def highest_means(dataset: str) -> pd.Series[float]:
    """Return the highest mean power on the test day that the tables allow each target, in watts.

    For every attacker, without and with the defence, SAE x mean <= MAE; the smallest quotient is the bound.
    """
    rows = reported.cases(dataset).set_index(["target", "attacker", "metric"])[["raw", "masked"]].stack()
    wide = rows.unstack("metric")
    quotient = (wide["mae"] + ROUNDING) / (wide["sae"] - ROUNDING).clip(lower=1e-9)
    return quotient.groupby("target").min()


@dataclass(frozen=True)
class Reading:
    """Physical figures of one day, printed or simulated; NaN for what is not known."""

    mae_w: float
    """Mean of the absolute battery power: what a perfect reader's aggregate error would be."""
    rmse_w: float
    sae: float
    """Net energy as a share of the day's load."""
    throughput_kwh: float = np.nan
    energy_cost: float = np.nan
    load_w: float = np.nan
    """Mean load of the day."""

    @property
    def terms(self) -> dict[str, float]:
        """Figures by name."""
        return {name: float(value) for name, value in vars(self).items()}


def printed(dataset: str) -> Reading:
    """Return what the paper prints of its defence on its test day; costs exist for UK-DALE only."""
    read = _aggregate_rows(dataset)["masked"].loc[list(READERS)].mean()
    errors = (float(read["mae"]), float(read["rmse"]), float(read["sae"]))
    if dataset != "ukdale":
        return Reading(*errors)
    costs = papers_costs()
    return Reading(*errors, moved_kwh(costs["degradation_cost"]), costs["energy_cost"])


def papers_costs() -> dict[str, float]:
    """Read the costs of the paper's own defence from its comparison."""
    table = reported.table("baseline_comparison")
    [row] = table[table["method"] == "Ours"].to_dict("records")
    return {str(name): float(value) for name, value in row.items() if str(name).endswith("_cost")}


def simulated(power_w: FloatArray, load_w: FloatArray, price: FloatArray) -> Reading:
    """Return the figures of one simulated day, (minute,) each."""
    energy = power_w * KWH_PER_W_MINUTE
    return Reading(
        mae_w=float(np.abs(power_w).mean()),
        rmse_w=float(np.sqrt(np.mean(power_w**2))),
        sae=float(abs(power_w.sum()) / np.nansum(load_w)),
        throughput_kwh=float(np.abs(energy).sum()),
        energy_cost=float(np.sum(price * energy)),
        load_w=float(np.nanmean(load_w)),
    )


def misses(dataset: str, reading: Reading) -> dict[str, float]:
    """Return how far each figure is from the printed one, in units of its tolerance.

    Tolerances are the paper's own standard deviations over seeds and, for costs and energies, a tenth. A mean
    load between its bounds misses by nothing, outside by its distance in tenths of the bound.
    """
    paper, spread = printed(dataset), _aggregate_rows(dataset)["masked_std"].loc[list(READERS)].mean()
    tolerance = {"mae_w": spread["mae"], "rmse_w": spread["rmse"], "sae": spread["sae"]}
    missed = {}
    for name, value in paper.terms.items():
        if not np.isnan(value):
            allowed = tolerance.get(name, COST_TOLERANCE * abs(value))
            missed[name] = (reading.terms[name] - value) / float(allowed)
    low, high = load_bounds(dataset)
    if not np.isnan(reading.load_w):
        nearest = min(max(reading.load_w, low), high)
        missed["load_w"] = (reading.load_w - nearest) / (COST_TOLERANCE * nearest)
    return missed


def score(readings: Mapping[str, Reading]) -> float:
    """Return the root mean square of all misses, data set -> reading: 0 is the paper, 1 is within its noise."""
    if not readings:
        raise InputError("a score needs the reading of at least one data set")
    every = [miss for dataset, reading in readings.items() for miss in misses(dataset, reading).values()]
    return float(np.sqrt(np.mean(np.square(every))))


def _aggregate_rows(dataset: str) -> dict[str, pd.DataFrame]:
    """Return the aggregate rows of an attacker table: column -> (attacker, metric)."""
    rows = reported.cases(dataset)
    rows = rows[rows["target"] == AGGREGATE]
    columns = ("raw", "masked", "masked_std")
    return {column: rows.pivot_table(index="attacker", columns="metric", values=column) for column in columns}


def _least(row: FloatArray, limits: Mapping[str, object]) -> float:
    solution = linprog(row, **limits)
    if not solution.success:
        raise InputError("no day has this energy cost and throughput; check the figures and the tariff")
    return float(solution.fun)
