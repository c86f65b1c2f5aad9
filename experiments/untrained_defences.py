"""Measure every untrained defence on real days: `python -m experiments.untrained_defences`.

Fills the tables of docs/defences.md between their marks: throughput, SoC at midnight, RMS power and costs.
METERVEIL_DATA names the folder with ukdale and redd. No attacker is involved.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import study
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.rollout import Trace, rollout, trace_cost
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.simulation import episodes, span
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import DEFENDERS, defender

PAGE = Path(__file__).parents[1] / "docs" / "defences.md"
SEEDS = 5
FLAT_W = 5.0
"""Change of the meter below which a minute counts as flat."""

PAPER, OURS, YANG = "the paper, baseline table", "ours", "Yang et al., CCS 2012"
WORDS = {
    "none": ("the battery is idle", "-"),
    "random": ("two or three random signatures a day", PAPER),
    "random_equal": ("random signatures until 6.1 kWh of the day are moved", "ours (D8)"),
    "rule_based": ("answers steps of 200 W with a similar signature", f"{PAPER}; rule ours"),
    "flat": ("holds a slowly changing level", OURS),
    "flat_decoys": ("the same, with nine signatures a day on top", OURS),
    "best_effort": ("holds the last reading", "Kalogridis et al., SmartGridComm 2010"),
    "nill": ("holds a level, with two states of recovery", "McLaughlin et al., CCS 2011"),
    "stepping_ls1": ("multiples of 500 W, kept; the next one by SoC", YANG),
    "stepping_ls2": ("multiples of 500 W, kept; the next one at random", YANG),
    "stepping_lc": ("multiples of 500 W, charging until full, then discharging", YANG),
    "stepping_rc": ("multiples of 500 W, random every minute", YANG),
}
"""Defence -> what it does, and its source."""

SHORT_HEAD = ("name", "what it does", "source", "kWh a day", "SoC at midnight", "SoC-neutral cost a day")
LONG_HEAD = (*("name", "kWh a day", "least and most", "SoC at midnight", "RMS W", "flat", "total cost"), "neutral cost")


class Figures(NamedTuple):
    """Figures of a defence on a record; a day is a day of one seed."""

    kwh: FloatArray  # (day,) moved, in and out together
    soc: FloatArray  # (day,) at midnight
    rms_w: float  # of the battery power
    flat: float  # share of minutes
    total: float  # energy and wear, a day
    neutral: float  # the same at equal SoC (D7)


def records() -> dict[str, Scenario]:
    """Read the records: days as separate episodes (D6), and days with SoC carried over midnight (D16)."""
    folder = data_folder()
    redd, ukdale = (
        load(folder / chosen.dataset, chosen.house, appliances=[]) for chosen in (REDD_HOUSE2, UKDALE_HOUSE1)
    )
    training = REDD_HOUSE2.training
    first, last = date(2013, 4, 1), date(2013, 8, 1)
    after = training[-1] + timedelta(days=1)
    return {
        "REDD house 2, 10 training days": episodes(redd, training, PAPER_TARIFF),
        "UK-DALE house 1, 10 training days": episodes(ukdale, UKDALE_HOUSE1.training, PAPER_TARIFF),
        "REDD house 2, the same 10 days in one go": span(redd, training[0], after, PAPER_TARIFF),
        f"UK-DALE house 1, {(last - first).days} days in one go": span(ukdale, first, last, PAPER_TARIFF),
    }


def measure(name: str, record: Scenario) -> Figures:
    """Simulate a defence on a record with several seeds."""
    scenario = record.rows(list(range(record.batch)) * SEEDS)
    rngs = [np.random.default_rng([0, row]) for row in range(scenario.batch)]
    trace = rollout(defender(name), Battery(), decoy_library(), scenario, rngs)
    cost = trace_cost(Battery(), scenario, trace)
    kwh, soc = by_day(scenario, trace)
    change_w = np.abs(np.diff(trace.meter_w))
    return Figures(
        kwh=kwh,
        soc=soc,
        rms_w=float(np.sqrt(np.mean(trace.power_w[~np.isnan(trace.load_w)] ** 2))),
        flat=float(np.mean(change_w[~np.isnan(change_w)] < FLAT_W)),
        total=float(cost.total.sum() / len(kwh)),
        neutral=float(cost.soc_neutral.sum() / len(kwh)),
    )


def by_day(scenario: Scenario, trace: Trace) -> tuple[FloatArray, FloatArray]:
    """Return energy moved and SoC at midnight of every day."""
    kwh, soc = [], []
    for row, day in enumerate(scenario.day[:, scenario.lead :]):
        number = day - day[0]
        kwh.append(np.bincount(number, np.abs(trace.power_w[row]) * KWH_PER_W_MINUTE))
        soc.append(trace.soc[row, np.flatnonzero(np.diff(number, append=number[-1] + 1))])
    return np.concatenate(kwh), np.concatenate(soc)


def short_table(record: str, figures: dict[str, Figures]) -> str:
    """Describe all defences, with the main figures of one record."""
    rows = [
        (f"`{name}`", *WORDS[name], f"{part.kwh.mean():.2f}", spread(part.soc), f"{part.neutral:z.3f}")
        for name, part in figures.items()
    ]
    return f"Figures: {record}.\n\n{study.table(SHORT_HEAD, rows, texts=3)}"


def long_table(record: str, figures: dict[str, Figures]) -> str:
    """Tabulate all figures of one record."""
    rows = [
        (
            *(f"`{name}`", f"{part.kwh.mean():.2f}", f"{part.kwh.min():.2f} to {part.kwh.max():.2f}"),
            *(spread(part.soc), f"{part.rms_w:.0f}", f"{part.flat:.0%}"),
            *(f"{part.total:z.3f}", f"{part.neutral:z.3f}"),
        )
        for name, part in figures.items()
    ]
    return f"### {record}\n\n{study.table(LONG_HEAD, rows)}"


def spread(values: FloatArray) -> str:
    """Write mean and standard deviation."""
    return f"{values.mean():.2f} ± {values.std():.2f}"


def main() -> None:
    """Measure all defences and fill the tables."""
    figures = {title: {name: measure(name, record) for name in DEFENDERS} for title, record in records().items()}
    longest = list(figures)[-1]
    page = study.put(PAGE.read_text(), "defences", short_table(longest, figures[longest]))
    long_tables = "\n\n".join(long_table(title, part) for title, part in figures.items())
    PAGE.write_text(study.put(page, "figures", long_tables))


if __name__ == "__main__":
    main()
