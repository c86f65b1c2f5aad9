"""Write the tables of docs/fidelity.md from what is recorded: `python -m experiments.fidelity_page`.

`paper | as published | ours`, the arithmetic on the paper's tables, and the candidates of the search
(`python -m experiments.fidelity`). Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import study
from meterveil.attackers.registry import INFORMED
from meterveil.bench import fingerprint, reported, results
from meterveil.bench.reproduce.experiments import AS_PUBLISHED_LOAD, BOTH
from meterveil.bench.results import battery_label, where
from meterveil.core.battery import Battery
from meterveil.data.household import AGGREGATES

HOUSES = {"ukdale": "UK-DALE house 1, 18 March 2013", "redd": "REDD house 2, 29 April 2011"}
ROWS: dict[str, tuple[str, int]] = {
    "rmse_increase_percent": ("RMSE increase, %", 0),
    "mae_increase_percent": ("MAE increase, %", 0),
    "sae_increase_percent": ("SAE increase, %", 0),
    "f1_reduction_percent": ("F1 reduction, %", 0),
    "rmse_significant": ("significant cases, RMSE", 0),
    "f1_significant": ("significant cases, F1", 0),
    "throughput_kwh": ("kWh moved", 2),
    "energy_cost": ("energy cost", 3),
    "degradation_cost": ("wear cost", 3),
    "total_cost": ("total cost", 3),
    "soc_end": ("SoC at midnight", 2),
    "soc_neutral_cost": ("SoC-neutral cost", 3),
}
"""Metric -> words and digits."""
FIGURES = {"mae_w": "MAE, W", "rmse_w": "RMSE, W", "sae": "SAE", "throughput_kwh": "kWh", "energy_cost": "energy cost"}
"""Physical figure -> head of its column; errors are those of a reader that takes the meter for the load."""


def side_by_side(table: pd.DataFrame) -> str:
    """Write `paper | as published | ours` for both houses; a figure that is not recorded is left empty."""
    printed = reported.figures(reported.AS_PUBLISHED)
    papers = {(row["dataset"], row["metric"]): row for row in printed.to_dict("records")}
    rows = []
    for dataset in BOTH:
        rows.append([f"**{HOUSES[dataset]}**", "", "", ""])
        sides = {name: _recorded(table, dataset, name) for name in ("as_published", "ours")}
        for metric, (words, digits) in ROWS.items():
            paper = papers.get((dataset, metric))
            cases = paper["paper_cases"] if paper and metric.endswith("_significant") else None
            text = _text(paper["paper"], digits, cases) if paper else ""
            if metric == "throughput_kwh" and dataset == "ukdale":
                text = f"{fingerprint.printed(dataset).throughput_kwh:.2f}"
            rows.append([words, text, *(_measured(side, metric, digits) for side in sides.values())])
        rows.append(["attackers, seeds", "6, 5", *(_effort(side) for side in sides.values())])
    return study.table(["", "paper", "as published", "ours"], rows)


def informed(table: pd.DataFrame) -> str:
    """Write what an informed attacker reads of both defences, and what they cost SoC-neutrally."""
    rows = []
    for dataset in BOTH:
        for name in ("as_published", "ours"):
            side = _recorded(table, dataset, name, "adaptive")
            most = side[side["attacker"] == "strongest"].set_index("metric")["value"]
            if len(most) and not set(INFORMED).isdisjoint(side["attacker"]):  # weaker adaptive attackers do not count
                f1 = [f"{most[metric]:.2f}" for metric in ("f1_undefended", "f1")]
                rows.append([HOUSES[dataset], name, *f1, f"{100 * most['f1_leak']:.0f} %"])
    if not rows:
        return "Not measured yet: `meterveil reproduce --table as_published --threat adaptive`."
    return study.table(["", "defence", "F1 without a defence", "F1 with it", "leak"], rows, 2)


def bounds() -> str:
    """Write what the printed figures say about energy and load."""
    costs = fingerprint.papers_costs()
    moved = fingerprint.moved_kwh(costs["degradation_cost"])
    flows = fingerprint.flows(costs["energy_cost"], moved)
    share = costs["total_cost"] / fingerprint.cheapest_total()
    rows = [
        ["energy moved, UK-DALE", f"{moved:.2f} kWh"],
        ["net charge in the cheap hours", _interval(flows.cheap, 2, "kWh")],
        ["net charge in the other hours", _interval(flows.dear, 2, "kWh")],
        ["net charge of the day", _interval(flows.net, 2, "kWh")],
        ["total cost as a share of the lowest that the battery allows", f"{100 * share:.0f} %"],
        *([f"mean load of the test day, {name}", _interval(fingerprint.load_bounds(name), 0, "W")] for name in BOTH),
    ]
    return study.table(["", "follows from the tables"], rows)


def loads(figures: pd.DataFrame) -> str:
    """Write the sources of the load that were tried."""
    rows = []
    for dataset in BOTH:
        low, high = fingerprint.load_bounds(dataset)
        for aggregate in AGGREGATES:
            load_w = _values(figures, dataset, f"load {aggregate}").get("load_w", np.nan)
            if np.isnan(load_w):
                continue
            fits = "yes" if low <= load_w <= high else "no"
            cells = [f"{load_w:.0f}", f"{low:.0f} to {high:.0f}", fits]
            rows.append([HOUSES[dataset], aggregate, *cells])
    return study.table(["", "load", "mean, W", "bounds, W", "possible"], rows, 2)


def means(figures: pd.DataFrame) -> str:
    """Write the mean power of each appliance on the test day beside the highest that the tables allow."""
    rows = []
    for row in figures[figures["metric"] == "mean_w"].to_dict("records"):
        highest = _values(figures, row["dataset"], row["row"])["highest_mean_w"]
        name, day = str(row["row"]).removeprefix("mean of ").replace("_", " ").split(", ")
        fits = "yes" if row["value"] <= highest else "no"
        rows.append([f"{row['dataset']}, {day}", name, f"{row['value']:.1f}", f"{highest:.1f}", fits])
    return study.table(
        ["", "appliance", "mean in our data, W", "highest that the tables allow, W", "possible"], rows, 2
    )


def drains(figures: pd.DataFrame) -> str:
    """Write a drain that covers the load and one that exports, beside the paper."""
    rows = []
    for dataset in BOTH:
        sides = {"paper": fingerprint.printed(dataset).terms}
        names = {"drain, clipped to the load": f"load {AS_PUBLISHED_LOAD[dataset]}", "drain that exports": ""}
        sides |= {words: _values(figures, dataset, name or words) for words, name in names.items()}
        cells = ("mae_w", "rmse_w")
        rows += [[HOUSES[dataset], words, *(_text(side.get(m), 0) for m in cells)] for words, side in sides.items()]
    return study.table(["", "", "MAE, W", "RMSE, W"], rows, 2)


def candidates(figures: pd.DataFrame) -> str:
    """Write every candidate with its figures on UK-DALE and REDD, the best score first."""
    scored = figures[figures["metric"] == "score"].sort_values("value")
    rows = [["paper", "", *_reading_cells({name: fingerprint.printed(name).terms for name in BOTH}), "0"]]
    for entry in scored.to_dict("records"):
        readings = {dataset: _values(figures, dataset, str(entry["row"])) for dataset in BOTH}
        rows.append([str(entry["row"]), str(entry["seeds"]), *_reading_cells(readings), f"{entry['value']:.2f}"])
    heads = [
        f"{words}{', REDD' * (dataset == 'redd')}" for dataset, names in _SHOWN.items() for words in names.values()
    ]
    return study.table(["", "seeds", *heads, "score"], rows)


_SHOWN = {"ukdale": FIGURES, "redd": {name: words for name, words in FIGURES.items() if name.endswith(("_w", "sae"))}}


def _reading_cells(readings: dict[str, Any]) -> list[str]:
    digits = {"sae": 2, "throughput_kwh": 1, "energy_cost": 2}
    return [
        _text(readings[dataset].get(name), digits.get(name, 0)) for dataset, names in _SHOWN.items() for name in names
    ]


def _values(figures: pd.DataFrame, dataset: str, row: str) -> dict[str, float]:
    part = figures[(figures["dataset"] == dataset) & (figures["row"] == row)]
    return dict(zip(part["metric"], part["value"], strict=True))


def _recorded(table: pd.DataFrame, dataset: str, defence: str, threat: str = "fixed") -> pd.DataFrame:
    aggregate = AS_PUBLISHED_LOAD[dataset] if defence == "as_published" else "mains"
    chosen = {"dataset": dataset, "days": "paper", "aggregate": aggregate, "defence": defence}
    part = where(table, **chosen, battery=battery_label(Battery()))
    return part[part["threat"].isin(["", threat])]


def _measured(side: pd.DataFrame, metric: str, digits: int) -> str:
    part = side[side["attacker"].isin(["", "all"]) & side["appliance"].isin(["", "all"])]
    values = part.set_index("metric")["value"]
    cases = values.get(metric.replace("_significant", "_cases")) if metric.endswith("_significant") else None
    return _text(values.get(metric), digits, cases)


def _effort(side: pd.DataFrame) -> str:
    named = set(side["attacker"]) - {"", "all", "strongest", "prior", "meter"}
    return f"{len(named)}, {side['seeds'].max()}" if len(side) else "not measured"


def _text(value: float | None, digits: int, cases: float | None = None) -> str:
    if value is None or np.isnan(value):
        return ""
    of = "" if cases is None or np.isnan(cases) else f"/{cases:.0f}"
    return f"{round(value, digits) + 0.0:.{digits}f}{of}"


def _interval(interval: fingerprint.Interval, digits: int, unit: str) -> str:
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f} {unit}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill the tables of the page."""
    parser = study.options(__doc__ or "")
    parser.add_argument("--page", type=Path, default=Path("docs/fidelity.md"), help="page to fill")
    options = parser.parse_args(arguments)
    table, figures = results.read(options.results), study.read(options.results, "fidelity")
    made = {
        "bounds": bounds(),
        "loads": loads(figures),
        "means": means(figures),
        "drains": drains(figures),
        "candidates": candidates(figures),
        "side by side": side_by_side(table),
        "informed": informed(table),
    }
    page = options.page.read_text(encoding="utf-8")
    for mark, text in made.items():
        page = study.put(page, mark, text)
    options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
