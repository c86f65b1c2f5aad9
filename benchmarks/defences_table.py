"""Measure every untrained defence on real days and put the figures into docs/defences.md, between its marks.

METERVEIL_DATA names the folder with ukdale and redd. No attacker is asked here: this says what a defence does
to the battery and to the meter, not what it hides.
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery
from meterveil.core.rollout import Trace, rollout, trace_cost
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import settings
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.simulation import episodes, span
from meterveil.defenders import DEFENDERS, defender

PAGE = Path(__file__).parents[1] / "docs" / "defences.md"
SEEDS = 5
FLAT_W = 5.0
"""A reading within this of the one before tells of no appliance."""

PAPER, OURS = "the paper, baseline table", "ours"
YANG = "Yang et al., CCS 2012"
WORDS = {
    "none": ("rests", "-"),
    "random": ("two or three signatures a day, by chance", PAPER),
    "random_equal": ("signatures by chance until the day's 6.1 kWh are moved", "ours (D8)"),
    "rule_based": ("answers steps of 200 W with a signature like them", f"{PAPER}; rule ours"),
    "flat": ("holds a slowly moving level", OURS),
    "flat_decoys": ("the same, with nine signatures a day on top", OURS),
    "best_effort": ("holds the last reading", "Kalogridis et al., SmartGridComm 2010"),
    "nill": ("holds a level, with two states of recovery", "McLaughlin et al., CCS 2011"),
    "stepping_ls1": ("multiples of 500 W, kept; the next one by SoC", YANG),
    "stepping_ls2": ("multiples of 500 W, kept; the next one by chance", YANG),
    "stepping_lc": ("multiples of 500 W, charging until full, then discharging", YANG),
    "stepping_rc": ("multiples of 500 W, by chance every minute", YANG),
}


HEAD = (
    "name",
    "kWh a day",
    "least and most",
    "SoC at midnight",
    "RMS W",
    "flat",
    "total cost",
    "neutral cost",
)


class Figures(NamedTuple):
    """Hold what a defence came to on a record; a day is a day of one seed."""

    kwh: np.ndarray  # (day,) moved, in and out together
    soc: np.ndarray  # (day,) at midnight
    rms_w: float  # of the battery power: how far the meter is from the truth
    flat: float  # share of minutes
    total: float  # energy and wear, a day
    neutral: float  # the same with the SoC of the start bought back


def records() -> dict[str, Scenario]:
    """Read the days: apart from each other, SoC 0.5 in the morning (D6), and in one go (D16)."""
    folder = Path(os.environ["METERVEIL_DATA"])
    redd = load(folder / "redd" / "low_freq", 2, appliances=[])
    ukdale = load(folder / "ukdale", 1, appliances=[])
    training = REDD_HOUSE2.training
    first, last = date(2013, 4, 1), date(2013, 8, 1)
    after = training[-1] + timedelta(days=1)
    return {
        "REDD house 2, 10 training days": episodes(redd, training, PAPER_TARIFF),
        "UK-DALE house 1, 10 training days": episodes(ukdale, UKDALE_HOUSE1.training, PAPER_TARIFF),
        "REDD house 2, the same 10 days in one go": span(redd, training[0], after, PAPER_TARIFF),
        f"UK-DALE house 1, {(last - first).days} days in one go": span(ukdale, first, last, PAPER_TARIFF),
    }


def measured(name: str, record: Scenario) -> Figures:
    scenario = record.rows(list(range(record.batch)) * SEEDS)
    rngs = [np.random.default_rng([0, row]) for row in range(scenario.batch)]
    trace = rollout(defender(name), Battery(), settings.library(), scenario, rngs)
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


def by_day(scenario: Scenario, trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    kwh, soc = [], []
    for row, day in enumerate(scenario.day[:, scenario.lead :]):
        number = day - day[0]
        kwh.append(np.bincount(number, np.abs(trace.power_w[row]) * KWH_PER_W_MINUTE))
        soc.append(trace.soc[row, np.flatnonzero(np.diff(number, append=number[-1] + 1))])
    return np.concatenate(kwh), np.concatenate(soc)


def short_table(figures: dict[str, dict[str, Figures]]) -> str:
    """Show words and figures together, those of the longest record."""
    record = list(figures)[-1]
    lines = [
        f"Figures: {record}.",
        "",
        "| name | what it does | source | kWh a day | SoC at midnight | SoC-neutral cost a day |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for name, (what, source) in WORDS.items():
        one = figures[record][name]
        cells = (f"`{name}`", what, source, f"{one.kwh.mean():.2f}", spread(one.soc), f"{one.neutral:z.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def long_tables(figures: dict[str, dict[str, Figures]]) -> str:
    blocks = []
    for record, rows in figures.items():
        lines = [f"### {record}", "", f"| {' | '.join(HEAD)} |", f"| --- |{' ---: |' * (len(HEAD) - 1)}"]
        for name, one in rows.items():
            reach = f"{one.kwh.min():.2f} to {one.kwh.max():.2f}"
            cells = (f"`{name}`", f"{one.kwh.mean():.2f}", reach, spread(one.soc), f"{one.rms_w:.0f}")
            costs = (f"{one.flat:.0%}", f"{one.total:z.3f}", f"{one.neutral:z.3f}")
            lines.append(f"| {' | '.join((*cells, *costs))} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def spread(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ± {values.std():.2f}"


def put(page: str, mark: str, text: str) -> str:
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{text}\n{end}{after}"


def main() -> None:
    assert set(WORDS) == set(DEFENDERS), "every registered defence needs a line of words here"
    figures: dict[str, dict[str, Figures]] = {}
    for title, record in records().items():
        figures[title] = {}
        for name in WORDS:
            figures[title][name] = measured(name, record)
            one = figures[title][name]
            print(f"{title}: {name} {one.kwh.mean():.2f} kWh, SoC {spread(one.soc)}", flush=True)
    page = put(PAGE.read_text(), "defences", short_table(figures))
    PAGE.write_text(put(page, "figures", long_tables(figures)))


if __name__ == "__main__":
    main()
