"""Measure what batteries of many sizes hide in four houses: `python -m experiments.battery_chart`.

Makes results/study_battery_chart.csv and docs/img/battery-chart.png: certified bits,
minutes missed, energy and cost of the veil for 93 batteries, on days after the training days of each house. The
figures are those of `meterveil plan`; no attacker is involved. A house takes about 15 seconds of one core.
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

import pandas as pd

from experiments import study
from meterveil.bench.battery_plan import ENOUGH, Plan, Size, plan, sizes
from meterveil.data.cache import key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import FURTHER_HOUSES, REDD_HOUSE2, UKDALE_HOUSE1, Protocol
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import version_of
from meterveil.plots.battery_plan import Cell, battery_figure
from meterveil.plots.html import save

NAME = "battery_chart"
HOUSES = {
    "ukdale_1": UKDALE_HOUSE1,
    "redd_2": REDD_HOUSE2,
    "ukdale_2": FURTHER_HOUSES["ukdale", 2],
    "refit_2": FURTHER_HOUSES["refit", 2],
}
TITLES = {"ukdale_1": "UK-DALE 1", "redd_2": "REDD 2", "ukdale_2": "UK-DALE 2", "refit_2": "REFIT 2"}
BUDGETS_KWH = (4.0, 8.0, 16.0)
SHOWN_BUDGET_KWH = 8.0
MOST_DAYS = 14


def measure(asked: argparse.Namespace) -> None:
    """Simulate every battery in each house, and record each house as soon as it is finished."""
    for name in asked.houses:
        setup = Setup(decoy_library())
        result = measure_house(HOUSES[name], data_folder(asked.data), setup)
        settings = {
            "defence": "veil",
            "version": version_of("veil"),
            "days": [str(result.days[0]), str(result.days[-1])],
            "history_days": len(result.history),
            "versions": dict(library_versions("numpy")),
        }
        figures = [
            {"dataset": name, "row": part.size.label, "metric": metric, "value": value, "n_days": result.counted}
            for part in result.table
            for metric, value in part._asdict().items()
            if metric != "size"
        ]
        study.record(asked.results, NAME, f"{NAME}_{key_of({**settings, 'house': name})[:12]}", figures, settings)


def measure_house(house: Protocol, folder: Path, setup: Setup) -> Plan:
    """Plan a battery for the days after a house's training days."""
    home = load(folder / house.dataset, house.house, appliances=[])
    start = house.training[-1] + timedelta(days=1)
    days = min((home.days()[-1] - start).days + 1, MOST_DAYS)
    return plan(home, setup, start, days, others=sizes(BUDGETS_KWH))


def draw(asked: argparse.Namespace) -> None:
    """Draw the recorded bits and missed minutes of each house at one budget."""
    table = study.read(asked.results, NAME).pivot_table(index=["dataset", "row"], columns="metric", values="value")
    panels = {title: cells(table.loc[[name]].droplevel(0)) for name, title in TITLES.items() if name in table.index}
    title = f"Bits a day and minutes missed, up to {SHOWN_BUDGET_KWH:g} kWh moved a day"
    save(battery_figure(panels, title), asked.pictures / "battery-chart.png", width=700)


def cells(house: pd.DataFrame) -> list[Cell]:
    """Return the batteries of the shown budget; the smallest that is enough is marked."""
    measured = {Size(*map(float, str(label).split("/"))): row for label, row in house.iterrows()}
    shown = {size: row for size, row in sorted(measured.items()) if size.budget_kwh == SHOWN_BUDGET_KWH}
    enough = next((size for size, row in shown.items() if row["followed"] >= ENOUGH), None)
    return [
        Cell(size.capacity_kwh, size.power_kw, row["bits"], row["missed_minutes"], "enough" if size == enough else "")
        for size, row in shown.items()
    ]


def main() -> None:
    """Parse the options, measure and draw."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=[*HOUSES], choices=[*HOUSES])
    asked = parser.parse_args()
    if not asked.picture:
        measure(asked)
    draw(asked)


if __name__ == "__main__":
    main()
