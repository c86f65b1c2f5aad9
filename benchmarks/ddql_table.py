"""Train the two DDQL defences on real days and put what they come to into docs/defences.md.

METERVEIL_DATA names the folder with ukdale and redd. The first eight training days of each house teach, the
last two validate; no test day is read, and no attacker is asked. What the meter tells is measured by a fresh
H-network for each defence, which learns from the eight days behind it, and by one that never sees a meter.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from defences_table import PAGE, put
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.rollout import Policy, Trace, rollout, trace_cost
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import settings
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders import defender
from meterveil.defenders.ddql.ddql_rewards import MiReward
from meterveil.defenders.ddql.ddql_training import train
from meterveil.defenders.ddql.q_learner import own_randomness
from meterveil.defenders.training_settings import DDQL_PRESETS, DdqlSettings

TITLES = {"redd": "REDD house 2", "ukdale": "UK-DALE house 1"}
UNTRAINED = ("none", "flat")
PRESETS = ("fast", "paper")
METHODS = ("ddql_flat", "ddql_mi")
READINGS = 40
"""How often an H-network reads the eight days; of these networks the best on the two days counts."""
HEAD = (
    "defence",
    "std W",
    "off the level W",
    "misses bits",
    "tells bits",
    "kWh a day",
    "SoC at midnight",
    "neutral cost",
    "training s",
)


class Days(NamedTuple):
    """Hold the days of a house."""

    learn: Scenario
    validate: Scenario


class Row(NamedTuple):
    """Hold what a defence came to on the validation days."""

    std_w: float
    off_w: float
    misses: float
    kwh: float
    soc: float
    neutral: float


def days_of(name: str) -> Days:
    protocol = PROTOCOLS[name]
    household = load(Path(os.environ["METERVEIL_DATA"]) / protocol.dataset, protocol.house, appliances=[])
    split = protocol.split(household)
    return Days(
        episodes(household, split.train, PAPER_TARIFF), episodes(household, split.validation, PAPER_TARIFF)
    )


def play(policy: Policy, scenario: Scenario) -> Trace:
    rngs = [np.random.default_rng([0, row]) for row in range(scenario.batch)]
    return rollout(policy, Battery(), settings.library(), scenario, rngs)


def _settings(method: str, preset: str) -> DdqlSettings:
    return replace(DDQL_PRESETS[preset], method=method)


def missed_bits(world: Days, learn: Trace, validate: Trace, blind: bool = False) -> float:
    """Bits of each minute's load that a fresh H-network misses; a blind one reads zeros for the meter."""
    shown = 0.0 if blind else 1.0
    with own_randomness(0):
        signal = MiReward.of(replace(DDQL_PRESETS["fast"], h_passes=1), world.learn)
        known, best = ~np.isnan(validate.load_w.T), np.inf
        for reading in range(READINGS):
            signal.learn(learn.load_w.T, learn.meter_w.T * shown)
            if reading % 5 == 4:
                signal.begin(validate.load_w.shape[0])
                missed = signal.score(validate.load_w.T, validate.meter_w.T * shown)[known].mean()
                best = min(best, float(missed))
    return best / np.log(2.0)


def measured(policy: Policy, world: Days) -> Row:
    learn, trace = play(policy, world.learn), play(policy, world.validate)
    level_w = np.nanmean(learn.load_w)
    return Row(
        std_w=float(np.nanstd(trace.meter_w)),
        off_w=float(np.nanmean(np.abs(trace.meter_w - level_w))),
        misses=missed_bits(world, learn, trace),
        kwh=float(np.abs(trace.power_w).sum(axis=1).mean() * KWH_PER_W_MINUTE),
        soc=float(trace.soc[:, -1].mean()),
        neutral=float(trace_cost(Battery(), world.validate, trace).soc_neutral.mean()),
    )


def line(name: str, row: Row, blind: float, seconds: float | None) -> str:
    bits = (f"{row.misses:.2f}", f"{blind - row.misses:.2f}")
    rest = (
        f"{row.kwh:.2f}",
        f"{row.soc:.2f}",
        f"{row.neutral:z.3f}",
        "-" if seconds is None else f"{seconds:.0f}",
    )
    return f"| {' | '.join((name, f'{row.std_w:.0f}', f'{row.off_w:.0f}', *bits, *rest))} |"


def table(name: str, presets: tuple[str, ...]) -> str:
    world, lines = days_of(name), [f"### {TITLES[name]}", "", f"| {' | '.join(HEAD)} |"]
    lines.append(f"| --- |{' ---: |' * (len(HEAD) - 1)}")
    rest = play(defender("none"), world.learn), play(defender("none"), world.validate)
    blind = missed_bits(world, *rest, blind=True)
    for untrained in UNTRAINED:
        lines.append(line(f"`{untrained}`", measured(defender(untrained), world), blind, None))
        print(lines[-1], flush=True)
    for method in METHODS:
        for chosen in presets:
            began = time.process_time()
            policy = train(_settings(method, chosen), Setup(settings.library()), world.learn).policy
            seconds = time.process_time() - began
            row = measured(policy, world)
            lines.append(line(f"`{method}`, {chosen}", row, blind, seconds))
            print(lines[-1], flush=True)
    return "\n".join(
        [*lines, "", f"A network that never sees the meter misses {blind:.2f} bits of a minute's load."]
    )


def main() -> None:
    presets = tuple(sys.argv[1:]) or PRESETS
    tables = "\n\n".join(table(name, presets) for name in TITLES)
    PAGE.write_text(put(PAGE.read_text(), "ddql figures", tables))


if __name__ == "__main__":
    main()
