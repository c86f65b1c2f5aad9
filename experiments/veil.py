"""Measure what the veil certifies, follows and costs: `python -m experiments.veil`.

Makes results/study_veil.csv and the tables and pictures of docs/veil.md (with --picture, only these): three deciders
with daily budgets of 8, 4 and 2 kWh, bolder plans, decoys, private choices and tariffs, on the held-out days of four
houses, SoC carried over midnight. No attacker is involved. All stretches of days run in one batch. The veil is fitted
to each budget, and the learned manager is trained on the training days of each house, once for each budget.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from experiments import study
from meterveil.bench.estimates import estimate, mean
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.certificate import DAY_MINUTES, Rules
from meterveil.core.rollout import Trace, rollout
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import PAPER_TARIFF, Bands, Tariff, day_cost, flat, usual_price
from meterveil.data.cache import household_digest, key_of, library_versions
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import FURTHER_HOUSES, REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Setup, span
from meterveil.data.splits import Days, consecutive_pieces, only_days
from meterveil.defenders import version_of
from meterveil.defenders.defence import knowing
from meterveil.defenders.training_days import LEAST_KNOWN
from meterveil.defenders.training_settings import VeilSettings
from meterveil.defenders.veil.dice import Dice
from meterveil.defenders.veil.heuristic import Heuristic
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.policy import Logged, Veil
from meterveil.plots.html import save
from meterveil.plots.studies import curves_figure, trade_off_figure

NAME = "veil"
HOUSES = {
    "ukdale_1": UKDALE_HOUSE1,
    "redd_2": REDD_HOUSE2,
    "ukdale_2": FURTHER_HOUSES["ukdale", 2],
    "refit_2": FURTHER_HOUSES["refit", 2],
}
BUDGETS_KWH = (8.0, 4.0, 2.0)
DECIDERS = ("planner", "heuristic", "learned")
_AGILE = (18, 17, 16, 16, 16, 17, 19, 22, 21, 19, 18, 17, 16, 16, 18, 24, 38, 40, 38, 27, 24, 22, 20, 19)
TARIFFS: dict[str, Tariff] = {
    "paper tariff": PAPER_TARIFF,
    "flat tariff": flat(0.25),
    "half-hourly tariff": Bands(tuple(60 * hour for hour in range(24)), tuple(pence / 100 for pence in _AGILE)),
}
"""Name -> tariff; the last one has the usual shape of a half-hourly (Agile-like) day: dear from 16 to 19 h."""

VARIANTS: dict[str, tuple[Veil, str]] = {
    "planner": (Veil(), "paper tariff"),
    "heuristic": (Veil(decider=Heuristic()), "paper tariff"),
    "learned": (Veil(), "paper tariff"),
    "planner, 18 h, 0.1 an hour": (
        Veil(Rules((0, 7 * 60, 18 * 60)), Planner(hour_cost=0.1), large_w=1000.0),
        "paper tariff",
    ),
    "planner, 0.4 an hour": (Veil(decider=Planner(hour_cost=0.4)), "paper tariff"),
    "planner, 0.1 an hour": (Veil(decider=Planner(hour_cost=0.1)), "paper tariff"),
    "epsilon 1": (Veil(Rules(epsilon=1.0)), "paper tariff"),
    "epsilon 4": (Veil(Rules(epsilon=4.0)), "paper tariff"),
    "4 decoys a day": (Veil(dice=Dice(4 / 1440)), "paper tariff"),
    "10 decoys a day": (Veil(dice=Dice(10 / 1440)), "paper tariff"),
    "flat tariff": (Veil(), "flat tariff"),
    "half-hourly tariff": (Veil(), "half-hourly tariff"),
}
"""Row of the table -> veil and tariff."""
ON_TRAINING = ", training days"
"""End of the names of rows to choose a variant by: recorded are half of the training days, measured the others."""
LEARNED = {"learned": VeilSettings()}
"""Row of the table -> training of the manager that decides instead of the veil's planner."""


def managed(veil: Veil, home: Household, training: Days, setup: Setup, settings: VeilSettings) -> tuple[Veil, float]:
    """Train a manager on the training days; return the veil that it decides for and the seconds it took."""
    from meterveil.defenders.veil.manager_learning import train  # noqa: PLC0415  needs torch

    days_w = [day.aggregate_w for day in map(home.day, training) if len(day.aggregate_w) == DAY_MINUTES]
    days_w = [load_w for load_w in days_w if np.isfinite(load_w).mean() >= LEAST_KNOWN]
    manager, _, took = train(veil, days_w, setup.battery, usual_price(setup.tariff), settings, seed=0)
    return replace(veil, decider=manager), took


def measure(asked: argparse.Namespace) -> None:
    """Measure every variant in each house, and record each as soon as it is finished."""
    for house in asked.houses:
        protocol = HOUSES[house]
        home = load(data_folder(asked.data) / protocol.dataset, protocol.house)
        known, days, suffix = protocol.training, protocol.held_out(home, min_days=1), ""
        if asked.choose:
            half = len(protocol.training) // 2
            known, days, suffix = protocol.training[:half], protocol.training[half:], ON_TRAINING
        home = home.select([])
        for variant in asked.variants:
            veil, tariff = VARIANTS[variant]
            setup = Setup(read_library(asked.library), Battery(), TARIFFS[tariff])
            trained = {"manager": asdict(LEARNED[variant])} if variant in LEARNED else {}
            rows: list[dict[str, Any]] = []
            seconds = []
            for budget_kwh in BUDGETS_KWH:
                own = replace(setup, battery=replace(setup.battery, budget_kwh=budget_kwh))
                fitted = cast(Veil, knowing(veil, [only_days(home, known)], own))
                if variant in LEARNED:
                    fitted, took = managed(fitted, home, known, own, LEARNED[variant])
                    seconds.append(took)
                label = f"{variant}, {budget_kwh:g} kWh a day{suffix}"
                rows += [{"dataset": house, "row": label, **figure} for figure in figures(fitted, own, home, days)]
            if seconds:
                rows += [{**rows[0], "metric": "training_seconds", "value": float(np.mean(seconds))}]
            settings = {
                "defence": "veil",
                "version": version_of("veil"),
                "variant": variant,
                "library": setup.library.digest()[:12],
                "data": key_of(household_digest(home, ()), [str(day) for day in days]),
                "training": [str(known[0]), str(known[-1])],
                "versions": dict(library_versions("numpy")),
            } | trained
            study.record(asked.results, NAME, f"{NAME}_{key_of({**settings, 'house': house})[:12]}", rows, settings)


def figures(veil: Veil, setup: Setup, home: Household, days: Days) -> Iterator[dict[str, Any]]:
    """Run a veil on stretches of days, and sum them up."""
    scenario = stack([_scenario(piece, setup.tariff) for piece in consecutive_pieces(home, days)])
    logged = Logged(veil)
    rngs = [np.random.default_rng([7, row]) for row in range(scenario.batch)]
    trace = rollout(logged, setup.battery, setup.library, scenario, rngs)
    certified = logged.certificate(scenario, trace)
    unknown = _by_piece(np.isnan(trace.load_w), scenario).sum()
    real = certified.minutes > 0.0
    count, bits = int(real.sum()), certified.bits[real]
    missed = certified.missed.sum() - unknown
    cost = float(sum(_cost(setup.battery, scenario, trace, row) for row in range(scenario.batch)))
    totals = {
        "followed_percent": (100.0 * (1.0 - missed / (certified.minutes.sum() - unknown)),),
        "certified_bits_median": (float(np.median(bits)),),
        "certified_bits_p90": (float(np.percentile(bits, 90.0)),),
        "certified_bits": estimate(bits[None], mean),
        "quiet_days_percent": (100.0 * float(np.mean(bits <= certified.bound_bits[real])),),
        "rescues": (float(certified.rescues.sum() / count),),
        "off_grid_minutes": (float((certified.off_grid.sum() - unknown) / count),),
        "throughput_kwh": (np.abs(trace.power_w).sum() * KWH_PER_W_MINUTE / count,),
        "soc_neutral_cost": (cost / count,),
    }
    for metric, values in totals.items():
        interval = dict(zip(("value", "low", "high"), values, strict=False))
        yield {"metric": metric, "n_days": count, **interval}


def _scenario(piece: Household, tariff: Tariff) -> Scenario:
    recorded = piece.days()
    return span(piece, recorded[0], recorded[-1] + timedelta(days=1), tariff, lead=0)


def _by_piece(minutes: BoolArray, scenario: Scenario) -> FloatArray:
    inside = np.arange(scenario.horizon) < scenario.minutes[:, None]
    return np.asarray((minutes & inside).sum(axis=1))


def _cost(battery: Battery, scenario: Scenario, trace: Trace, row: int) -> float:
    """Return the SoC-neutral cost of one stretch of days."""
    end, one = int(scenario.minutes[row]), slice(row, row + 1)
    ends = trace.soc_start[one], trace.soc[one, end - 1]
    return float(day_cost(battery, scenario.price[one, :end], trace.power_w[one, :end], *ends).soc_neutral[0])


PANELS = {
    "minutes not followed, %": "followed_percent",
    "bits a day, mean": "certified_bits",
    "SoC-neutral cost a day": "soc_neutral_cost",
}
"""Panel of the picture -> metric; the first two have a logarithmic axis."""
TITLES = {"ukdale_1": "UK-DALE 1", "redd_2": "REDD 2", "ukdale_2": "UK-DALE 2", "refit_2": "REFIT 2"}
HEADS = {
    "followed_percent": ("minutes followed", "{:.2f} %"),
    "certified_bits_median": ("bits a day, median", "{:,.1f}"),
    "certified_bits_p90": ("90th percentile", "{:,.0f}"),
    "rescues": ("rescues a day", "{:.2f}"),
    "throughput_kwh": ("kWh a day", "{:.2f}"),
    "soc_neutral_cost": ("SoC-neutral cost a day", "{:+.3f}"),
}
"""Metric -> column of the tables and its format."""


def page_table(table: pd.DataFrame, wanted: Sequence[tuple[str, str]]) -> str:
    """Write some (house, row) pairs of the study as a table."""
    values = table.set_index(["dataset", "row", "metric"])["value"]
    days = table.groupby(["dataset", "row"])["n_days"].first()
    lines = [f"| house (days) | veil | {' | '.join(head for head, _ in HEADS.values())} |"]
    lines.append("| --- | --- |" + " ---: |" * len(HEADS))
    for house, row in wanted:
        if (house, row, "followed_percent") in values.index:
            cells = [words.format(values[house, row, metric]) for metric, (_, words) in HEADS.items()]
            lines.append(f"| {house} ({days[house, row]:.0f}) | {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_deciders(table: pd.DataFrame, path: Path) -> None:
    """Draw the deciders on UK-DALE 1 against the daily budget."""
    values = table[table["dataset"] == "ukdale_1"].set_index(["row", "metric"])["value"]
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for panel, metric in PANELS.items():
        for decider in DECIDERS:
            rows = {kwh: (f"{decider}, {kwh:g} kWh a day", metric) for kwh in BUDGETS_KWH}
            points = [(kwh, float(values[row])) for kwh, row in rows.items() if row in values.index]
            if metric == "followed_percent":
                points = [(kwh, 100.0 - percent) for kwh, percent in points]
            if points:
                panels.setdefault(panel, {})[decider] = points
    title = "Deciders of the veil, 126 held-out days of UK-DALE 1"
    save(curves_figure(panels, "kWh that may be moved a day", title, list(PANELS)[:2]), path, width=760)


def write_page(results: Path, page: Path, pictures: Path | None = None) -> None:
    """Fill the tables of the page from the recorded figures, and draw the deciders into a folder."""
    table = study.read(results, NAME)
    frontier = [
        (house, f"{variant}, {kwh:g} kWh a day") for house in HOUSES for kwh in BUDGETS_KWH for variant in DECIDERS
    ]
    others = [
        (house, f"{variant}, 8 kWh a day") for house in HOUSES for variant in VARIANTS if variant not in DECIDERS[1:]
    ]
    candidates = [name for name in VARIANTS if name.startswith("planner")]
    choosing = [(house, f"{name}, 8 kWh a day{ON_TRAINING}") for house in HOUSES for name in candidates]
    if pictures:
        draw_deciders(table, pictures / "veil-deciders.png")
    text = page.read_text()
    for mark, wanted in (("frontier", frontier), ("variants", others), ("choosing", choosing)):
        text = study.put(text, mark, page_table(table, wanted))
    page.write_text(text)


def draw_tariffs(results: Path, pictures: Path) -> None:
    """Draw certified bits against SoC-neutral cost for the three tariffs and all budgets, a panel for each house."""
    values = study.read(results, NAME).set_index(["dataset", "row", "metric"])["value"].to_dict()
    lines = {"paper tariff": "planner", "flat tariff": "flat tariff", "half-hourly tariff": "half-hourly tariff"}
    panels: dict[str, dict[str, list[tuple[float, float, str]]]] = {}
    for house, title in TITLES.items():
        for line, variant in lines.items():
            keys = [(house, f"{variant}, {kwh:g} kWh a day") for kwh in BUDGETS_KWH]
            if all((*key, "soc_neutral_cost") in values for key in keys):
                panels.setdefault(title, {})[line] = [
                    (values[*key, "soc_neutral_cost"], values[*key, "certified_bits_median"], f"{kwh:g} kWh")
                    for key, kwh in zip(keys, BUDGETS_KWH, strict=True)
                ]
    if panels:
        title = "What the veil tells and what it costs, by tariff and daily budget"
        save(trade_off_figure(panels, "SoC-neutral cost a day", title), pictures / "veil-tariffs.png", width=760)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options and measure."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--houses", nargs="+", default=list(HOUSES), choices=list(HOUSES))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--page", type=Path, default=Path("docs/veil.md"), help="page with the tables")
    parser.add_argument("--choose", action="store_true", help="measure on the last half of the training days")
    asked = parser.parse_args(arguments)
    if not asked.picture:
        measure(asked)
    write_page(asked.results, asked.page, asked.pictures)
    draw_tariffs(asked.results, asked.pictures)


if __name__ == "__main__":
    main()
