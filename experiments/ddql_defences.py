"""Train the two DDQL defences and measure them: `python -m experiments.ddql_defences [fast] [paper]`.

Fills the DDQL tables of docs/defences.md between their marks. METERVEIL_DATA names the folder with ukdale and
redd. The first eight training days of each house are for training, the last two for validation; test days are
not used. The information in the meter is measured by a new H-network for each defence, which learns from the
eight defended days, and by one that does not see the meter.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from experiments.study import put, table
from experiments.untrained_defences import PAGE
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.rollout import Policy, Trace, rollout, trace_cost
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import protocol
from meterveil.data.simulation import Setup, episodes
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import defender
from meterveil.defenders.ddql.ddql_rewards import MiReward
from meterveil.defenders.ddql.ddql_training import train
from meterveil.defenders.run_folder import own_randomness
from meterveil.defenders.training_settings import DDQL_PRESETS

TITLES = {"redd": "REDD house 2", "ukdale": "UK-DALE house 1"}
UNTRAINED = ("none", "flat")
METHODS = ("ddql_flat", "ddql_mi")
READINGS = 40
"""Passes of an H-network over the eight days; the best on the two validation days counts."""
HEAD = (
    *("defence", "std W", "off the level W", "misses bits", "tells bits", "kWh a day", "SoC at midnight"),
    *("neutral cost", "training s"),
)


class Days(NamedTuple):
    """Days of a house."""

    learn: Scenario
    validate: Scenario


def days_of(name: str) -> Days:
    """Read the training and validation days of a protocol."""
    chosen = protocol(name)
    household = load(data_folder() / chosen.dataset, chosen.house, appliances=[])
    return Days(*(episodes(household, days, PAPER_TARIFF) for days in chosen.split(household)))


def simulate(policy: Policy, scenario: Scenario) -> Trace:
    """Simulate every day with its own random numbers."""
    rngs = [np.random.default_rng([0, row]) for row in range(scenario.batch)]
    return rollout(policy, Battery(), decoy_library(), scenario, rngs)


def missed_bits(days: Days, learn: Trace, validate: Trace, *, blind: bool = False) -> float:
    """Return the bits of each minute's load that a new H-network cannot predict; a blind one reads zeros."""
    factor = 0.0 if blind else 1.0
    with own_randomness(0):
        network = MiReward.of(replace(DDQL_PRESETS["fast"], h_passes=1), days.learn)
        known, best = ~np.isnan(validate.load_w.T), np.inf
        for reading in range(READINGS):
            network.learn(learn.load_w.T, learn.meter_w.T * factor)
            if reading % 5 == 4:
                network.begin(validate.load_w.shape[0])
                missed = network.score(validate.load_w.T, validate.meter_w.T * factor)[known].mean()
                best = min(best, float(missed))
    return float(best / np.log(2.0))


def row_of(name: str, policy: Policy, days: Days, blind: float, seconds: float | None = None) -> list[str]:
    """Measure a defence on the validation days."""
    learn, trace = simulate(policy, days.learn), simulate(policy, days.validate)
    missed = missed_bits(days, learn, trace)
    moved_kwh = np.abs(trace.power_w).sum(axis=1).mean() * KWH_PER_W_MINUTE
    return [
        *(name, f"{np.nanstd(trace.meter_w):.0f}"),
        f"{np.nanmean(np.abs(trace.meter_w - np.nanmean(learn.load_w))):.0f}",
        *(f"{missed:.2f}", f"{blind - missed:.2f}", f"{moved_kwh:.2f}", f"{trace.soc[:, -1].mean():.2f}"),
        f"{trace_cost(Battery(), days.validate, trace).soc_neutral.mean():z.3f}",
        "-" if seconds is None else f"{seconds:.0f}",
    ]


def house_table(name: str, presets: Sequence[str]) -> str:
    """Train and measure on one house."""
    days = days_of(name)
    idle = (simulate(defender("none"), part) for part in days)
    blind = missed_bits(days, *idle, blind=True)
    rows = [row_of(f"`{untrained}`", defender(untrained), days, blind) for untrained in UNTRAINED]
    for method in METHODS:
        for preset in presets:
            settings, began = replace(DDQL_PRESETS[preset], method=method), time.process_time()
            policy = train(settings, Setup(decoy_library()), days.learn).policy
            seconds = time.process_time() - began
            rows.append(row_of(f"`{method}`, {preset}", policy, days, blind, seconds))
    note = f"A network that never sees the meter misses {blind:.2f} bits of a minute's load."
    return f"### {TITLES[name]}\n\n{table(HEAD, rows)}\n\n{note}"


def main() -> None:
    """Measure both houses and fill the tables."""
    presets = tuple(sys.argv[1:]) or ("fast", "paper")
    tables = "\n\n".join(house_table(name, presets) for name in TITLES)
    PAGE.write_text(put(PAGE.read_text(), "ddql figures", tables))


if __name__ == "__main__":
    main()
