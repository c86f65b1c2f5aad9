"""Write the tables of docs/fidelity.md from what is recorded: `python -m experiments.fidelity_page --picture`.

`paper | as published | ours`, the arithmetic on the paper's tables, and the candidates of the search
(`python -m experiments.fidelity`). Nothing is measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from experiments import study
from experiments.fidelity import ALL_SUBMETERS
from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import INFORMED, PAPER_SIX
from meterveil.bench import fingerprint, reported, results
from meterveil.bench.metrics import headline_percent
from meterveil.bench.reproduce.experiments import AS_PUBLISHED_LOAD, BOTH, TABLES
from meterveil.bench.results import battery_label, where
from meterveil.core.battery import Battery
from meterveil.data.household import AGGREGATES
from meterveil.plots import save
from meterveil.plots.attack import label
from meterveil.plots.studies import sides_figure

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
LEVELS = {"rmse": ("RMSE, W", 0), "mae": ("MAE, W", 0), "sae": ("SAE", 2), "f1": ("F1", 2)}
"""Score of an attacker -> words and digits."""
DRAWN = ("rmse_increase_percent", "f1_reduction_percent", "throughput_kwh", "total_cost", "soc_neutral_cost")
"""Metrics of the picture."""
MEASURED = {"as published": "as_published", "ours": "ours"}
"""Side -> defence in the results."""
FIGURES = {"mae_w": "MAE, W", "rmse_w": "RMSE, W", "sae": "SAE", "throughput_kwh": "kWh", "energy_cost": "energy cost"}
"""Physical figure -> head of its column; errors are those of a reader that takes the meter for the load."""


class Figure(NamedTuple):
    """Figure, and what it was counted in where it is a count."""

    value: float
    cases: float = np.nan


def compared(table: pd.DataFrame, dataset: str) -> dict[str, dict[str, Figure]]:
    """Return metric -> side -> figure for the sides paper, as published and ours; what is not known is NaN."""
    printed = reported.figures(reported.AS_PUBLISHED)
    papers = {
        str(row["metric"]): Figure(row["paper"], row["paper_cases"])
        for row in printed[printed["dataset"] == dataset].to_dict("records")
    }
    papers["throughput_kwh"] = Figure(fingerprint.printed(dataset).throughput_kwh)
    sides = {words: _recorded(table, dataset, name) for words, name in MEASURED.items()}
    return {
        metric: {
            "paper": papers.get(metric, Figure(np.nan)),
            **{words: _measured(side, metric) for words, side in sides.items()},
        }
        for metric in ROWS
    }


def side_by_side(table: pd.DataFrame) -> str:
    """Write `paper | as published | ours` for both houses; a figure that is not recorded is left empty."""
    rows = []
    for dataset in BOTH:
        rows.append([f"**{HOUSES[dataset]}**", "", "", ""])
        for metric, sides in compared(table, dataset).items():
            words, digits = ROWS[metric]
            cells = [
                _text(figure.value, digits, figure.cases if metric.endswith("_significant") else None)
                for figure in sides.values()
            ]
            rows.append([words, *cells])
        effort = [_effort(_recorded(table, dataset, name)) for name in MEASURED.values()]
        rows.append(["attackers, seeds", "6, 5", *effort])
    return study.table(["", "paper", *MEASURED], rows)


def by_attacker(table: pd.DataFrame) -> str:
    """Write the headlines of each attacker alone and of all together, over the appliances that paper and data share."""
    rows = []
    for dataset in BOTH:
        sides = _shared_cases(table, dataset)
        known = [name for name in PAPER_SIX if name in set(sides["paper"]["attacker"])]
        groups = {label(name): [name] for name in known} | ({"together": known} if len(known) > 1 else {})
        for words, names in groups.items():
            parts = [cases[cases["attacker"].isin(names)] for cases in sides.values()]
            cells = [_headline(part, metric) for metric in ("rmse", "f1") for part in parts]
            rows.append([HOUSES[dataset], words, *cells])
    if not rows:
        return "Not measured yet."
    heads = [f"{words}: {side}" for words in ("RMSE increase, %", "F1 reduction, %") for side in ("paper", *MEASURED)]
    return study.table(["", "attacker", *heads], rows, 2)


def levels(table: pd.DataFrame) -> str:
    """Write the mean scores without and with the defence, over the attackers and appliances that all sides have."""
    rows = []
    for dataset in BOTH:
        sides = _shared_cases(table, dataset)
        for metric, (words, digits) in LEVELS.items():
            parts = [cases[cases["metric"] == metric] for cases in sides.values()]
            if all(len(part) for part in parts):
                cells = [f"{part['raw'].mean():.{digits}f} to {part['masked'].mean():.{digits}f}" for part in parts]
                rows.append([HOUSES[dataset], words, *cells])
    return study.table(["", "", "paper", *MEASURED], rows, 2) if rows else "Not measured yet."


def picture(table: pd.DataFrame) -> go.Figure:
    """Draw `paper | as published | ours` for both houses."""
    houses = {
        HOUSES[dataset].replace(", ", "<br>"): {
            ROWS[metric][0]: {side: figure.value for side, figure in sides.items()}
            for metric, sides in compared(table, dataset).items()
        }
        for dataset in BOTH
    }
    return sides_figure(houses, dict(ROWS[metric] for metric in DRAWN))


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
        for aggregate in (*AGGREGATES, ALL_SUBMETERS):
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
    """Write every candidate, those measured on both houses first, of these the best score first."""
    scored = figures[figures["metric"] == "score"]
    scored = scored.assign(houses=scored["dataset"].str.count("_") + 1).sort_values("houses", ascending=False)
    scored = scored.drop_duplicates("row").sort_values(["houses", "value"], ascending=[False, True])
    paper = {name: {m: (value, np.nan) for m, value in fingerprint.printed(name).terms.items()} for name in BOTH}
    rows = [["paper", "", *_reading_cells(paper), "0"]]
    for entry in scored.to_dict("records"):
        own = figures[figures["row"] == entry["row"]].set_index("dataset")
        readings = {
            name: {row.metric: (row.value, row.spread) for row in own.loc[own.index == name].itertuples()}
            for name in BOTH
        }
        rows.append([str(entry["row"]), str(entry["seeds"]), *_reading_cells(readings), f"{entry['value']:.2f}"])
    heads = [
        f"{words}{', REDD' * (dataset == 'redd')}" for dataset, names in _SHOWN.items() for words in names.values()
    ]
    return study.table(["", "seeds", *heads, "score"], rows)


def batteries(figures: pd.DataFrame) -> str:
    """Write the aggregate error with batteries of other sizes as a share of that with the paper's battery."""
    rows = []
    for row in TABLES["battery_sensitivity"].rows:
        values = _values(figures, "ukdale", f"battery, {row.label}")
        if values:
            shares = (values.get(name) for name in ("paper_share", "share", "share_unmasked"))
            rows.append([row.label, *("" if share is None else f"{100 * share:.0f} %" for share in shares)])
    if not rows:
        return "Not measured yet: `python -m experiments.fidelity --step batteries`."
    return study.table(["battery", "paper", "as published, not trained again", "the same without the mask"], rows)


_SHOWN = {"ukdale": FIGURES, "redd": {name: words for name, words in FIGURES.items() if name.endswith(("_w", "sae"))}}


def _reading_cells(readings: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    digits = {"sae": 2, "throughput_kwh": 1, "energy_cost": 2}
    cells = []
    for dataset, names in _SHOWN.items():
        for name in names:
            value, spread = (_text(part, digits.get(name, 0)) for part in readings[dataset].get(name, (np.nan, np.nan)))
            cells.append(f"{value}±{spread}" if spread else value)
    return cells


def _values(figures: pd.DataFrame, dataset: str, row: str) -> dict[str, float]:
    part = figures[(figures["dataset"] == dataset) & (figures["row"] == row)]
    return dict(zip(part["metric"], part["value"], strict=True))


def _recorded(table: pd.DataFrame, dataset: str, defence: str, threat: str = "fixed") -> pd.DataFrame:
    aggregate = AS_PUBLISHED_LOAD[dataset] if defence == "as_published" else "mains"
    chosen = {"dataset": dataset, "days": "paper", "aggregate": aggregate, "defence": defence}
    part = where(table, **chosen, battery=battery_label(Battery()))
    return part[part["threat"].isin(["", threat])]


def _measured(side: pd.DataFrame, metric: str) -> Figure:
    part = side[side["attacker"].isin(["", "all"]) & side["appliance"].isin(["", "all"])]
    values = part.set_index("metric")["value"]
    return Figure(values.get(metric, np.nan), values.get(metric.replace("_significant", "_cases"), np.nan))


def _cases(side: pd.DataFrame) -> pd.DataFrame:
    """Return attacker, appliance, metric, and the figures without and with the defence."""
    cases = side[(side["threat"] == "fixed") & side["change"].notna() & (side["appliance"] != AGGREGATE)]
    return cases.assign(raw=cases["value"] - cases["change"], masked=cases["value"])


def _shared_cases(table: pd.DataFrame, dataset: str) -> dict[str, pd.DataFrame]:
    """Return side -> cases of the attackers and appliances that all sides have."""
    printed = reported.cases(dataset)
    printed = printed[printed["target"] != AGGREGATE].rename(columns={"target": "appliance"})
    sides = {"paper": printed} | {words: _cases(_recorded(table, dataset, name)) for words, name in MEASURED.items()}
    for column in ("attacker", "appliance"):
        shared = set.intersection(*(set(cases[column]) for cases in sides.values()))
        sides = {side: cases[cases[column].isin(shared)] for side, cases in sides.items()}
    return sides


def _headline(cases: pd.DataFrame, metric: str) -> str:
    known = cases[cases["metric"] == metric]
    return f"{headline_percent(metric, known['raw'].to_numpy(), known['masked'].to_numpy()):.0f}"


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
        "batteries": batteries(figures),
        "side by side": side_by_side(table),
        "by attacker": by_attacker(table),
        "levels": levels(table),
        "informed": informed(table),
    }
    page = options.page.read_text(encoding="utf-8")
    for mark, text in made.items():
        page = study.put(page, mark, text)
    options.page.write_text(page, encoding="utf-8")
    if options.picture:
        save(picture(table), options.pictures / "fidelity.png", width=800)


if __name__ == "__main__":
    main()
