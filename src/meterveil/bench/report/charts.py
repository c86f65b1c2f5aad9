"""The pictures of the report, drawn from comparisons; None where nothing was measured that they show."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from meterveil.bench.report.columns import COLUMNS
from meterveil.bench.report.compare import Comparison, case_figures
from meterveil.bench.report.leaderboard import Board, standing_name
from meterveil.bench.report.names import row_name
from meterveil.bench.report.reading import Results
from meterveil.plots.evaluation import Point, defences_figure
from meterveil.plots.report import (
    Pair,
    Price,
    Reading,
    bars_figure,
    cases_figure,
    pareto_figure,
    sensitivity_figure,
)

HEADLINES = ("rmse_increase_percent", "f1_reduction_percent")
_FACTORS = {"capacity": "capacity, kWh", "power": "power, kW", "throughput": "throughput a day, kWh"}
_MAIN = {"capacity": 8.0, "power": 4.0, "throughput": 8.0}
"""The paper's main battery: it is a point of every curve."""

_CASE_METRICS = {"rmse": "RMSE, W", "f1": "F1"}

Comparisons = Sequence[Comparison]


def bars_chart(comparisons: Comparisons) -> go.Figure | None:
    """Draw RMSE Inc. and F1 Red. of every row, the paper's beside ours."""
    if not _is_measured(comparisons):
        return None
    panels = {
        COLUMNS[column].words: {row_name(one.row): _pair(one) for one in comparisons if one.column == column}
        for column in HEADLINES
    }
    return bars_figure(panels)


def sensitivity_chart(comparisons: Comparisons) -> go.Figure | None:
    """Draw RMSE Inc. and F1 Red. against each property of the battery."""
    if not _is_measured(comparisons):
        return None
    panels = {
        words: {COLUMNS[column].words: _along(comparisons, factor, column) for column in HEADLINES}
        for factor, words in _FACTORS.items()
    }
    return sensitivity_figure(panels)


def pareto_chart(comparisons: Comparisons) -> go.Figure | None:
    """Draw what every weight of privacy gives against its cost."""
    values = {(one.row, one.column): one.ours.value for one in comparisons if one.ours}
    points = []
    for row in dict.fromkeys(one.row for one in comparisons):
        keys = [(row, column) for column in ("soc_neutral_cost", *HEADLINES)]
        if all(key in values for key in keys):
            points.append(Price(row, *(values[key] for key in keys)))
    return pareto_figure(points) if points else None


def cases_chart(dataset: str, results: Results) -> go.Figure | None:
    """Draw what every attacker reads of every target, as in the paper's main figure."""
    panels: dict[str, dict[str, dict[str, Reading]]] = {}
    measured = False
    for key, paper, ours in case_figures(dataset, results):
        if key.metric in _CASE_METRICS:
            measured = measured or bool(ours)
            reading = Reading(ours.get("raw"), ours.get("masked"), paper.get("masked"))
            columns = panels.setdefault(key.target, {})
            columns.setdefault(_CASE_METRICS[key.metric], {})[key.attacker] = reading
    return cases_figure(panels) if measured else None


def board_chart(board: Board) -> go.Figure | None:
    """Draw every defence by the energy it moves and by what is still read behind it."""
    if board.raw_f1 is None or board.prior_f1 is None:
        return None
    points = []
    for one in board.standings:
        read = one.adaptive_f1 if board.threat == "adaptive" else one.fixed_f1
        if read and one.throughput_kwh:
            bounds = [float("nan") if end is None else end for end in (read.low, read.high)]
            points.append(Point(_short(standing_name(one)), one.throughput_kwh.value, read.value, *bounds))
    return defences_figure(points, board.prior_f1, board.raw_f1, board.threat) if points else None


CHARTS: dict[str, Callable[[Comparisons], go.Figure | None]] = {
    "baseline_comparison": bars_chart,
    "probe_ablation": bars_chart,
    "signature_size_ablation": bars_chart,
    "battery_sensitivity": sensitivity_chart,
    "lambda_sweep": pareto_chart,
    "heldout_day_generalization": bars_chart,
    "heldout_day_generalization_redd": bars_chart,
}
"""Table -> what draws it."""


def _along(comparisons: Comparisons, factor: str, column: str) -> dict[float, Pair]:
    found = {}
    for one in comparisons:
        value = re.fullmatch(rf"{factor} ([\d.]+) kWh?", one.row)
        if one.column == column and (value or one.row == "main"):
            found[float(value.group(1)) if value else _MAIN[factor]] = _pair(one)
    return found


def _short(name: str) -> str:
    """Leave out what finds no room beside a point on a phone: the axis says how many kWh."""
    return name.replace(" at equal kWh", "").replace("submitted: ", "")


def _pair(one: Comparison) -> Pair:
    return Pair(one.paper, one.ours.value if one.ours else None)


def _is_measured(comparisons: Comparisons) -> bool:
    return any(one.ours for one in comparisons)
