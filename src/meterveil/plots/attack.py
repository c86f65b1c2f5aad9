"""Figures of attackers: predictions beside the truth, and strength."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look

COLOURS = {
    "co": "#8C6D1F",
    "fhmm": "#7F3C8D",
    "dae": "#E69F00",
    "seq2point": "#0072B2",
    "electricity": "#009E73",
    "bert4nilm": "#D55E00",
    "nilmformer": "#CC79A7",
    "prior": "#5f6368",
}
"""Attacker -> its colour in every picture."""

LABELS = {
    "co": "CO",
    "fhmm": "FHMM",
    "dae": "DAE",
    "seq2point": "Seq2Point",
    "electricity": "ELECTRIcity",
    "bert4nilm": "BERT4NILM",
    "nilmformer": "NILMFormer",
    "mean": "mean",
    "off": "always off",
    "prior": "prior",
}
METRICS = {"rmse": "RMSE in W (lower reads more)", "f1": "F1 from power", "f1_head": "F1 from on/off head"}
_TRUTH, _PAPER, _ROW_PX = "#c3c7cb", "#bdc1c6", 104
_DASHES = {"mean": "dot", "off": "dash", "prior": "dashdot"}


class Score(NamedTuple):
    """Mean and standard deviation."""

    value: float
    spread: float = 0.0


def predictions_figure(
    minutes: pd.DatetimeIndex,
    truth_w: Mapping[str, FloatArray],
    predicted_w: Mapping[str, Mapping[str, FloatArray]],
    notes: Mapping[tuple[str, str], str] | None = None,
    title: str = "",
) -> go.Figure:
    """Draw a panel for each attacker (rows) and appliance (columns): predicted in colour, true in grey.

    `notes` is (attacker, appliance) -> text in a corner of the panel, such as its scores.
    """
    rows, columns = len(predicted_w), len(truth_w)
    panels = make_subplots(
        rows,
        columns,
        shared_xaxes=True,
        shared_yaxes="columns",
        horizontal_spacing=0.035,
        vertical_spacing=24 / (_ROW_PX * rows + 60),
        column_titles=[f"<b>{look.readable(target)}</b>" for target in truth_w],
    )
    for row, (name, answers) in enumerate(predicted_w.items(), start=1):
        for column, (target, true_w) in enumerate(truth_w.items(), start=1):
            first = row == 1 and column == 1
            panels.add_trace(_true_area(minutes, true_w, first), row, column)
            panels.add_trace(_predicted_line(minutes, answers[target], name, column == 1), row, column)
            words = ": ".join(part for part in (label(name), (notes or {}).get((name, target), "")) if part)
            panels.add_annotation(**_corner(words, row, column, columns))
    look.time_axis(panels, minutes, last_row=rows)
    panels.update_xaxes(**_six_hours(minutes))
    panels.update_yaxes(**look.WATTS, nticks=4, tickfont_size=11)
    for column, (target, true_w) in enumerate(truth_w.items(), start=1):
        panels.update_yaxes(
            range=[0, _top_w(true_w, [predicted[target] for predicted in predicted_w.values()])], col=column
        )
    figure = look.figure_of(panels, title, 164 + _ROW_PX * rows)
    return figure.update_layout(legend_y=-50 / (_ROW_PX * rows), legend_yanchor="top", margin_b=94)


def strength_figure(
    ours: Mapping[str, Mapping[str, float]],
    papers: Mapping[str, Mapping[str, float]],
    floors: Sequence[str],
    title: str = "",
) -> go.Figure:
    """Draw a panel for each metric: a bar for each attacker beside the paper's, baselines as lines.

    `ours` and `papers` are metric -> attacker -> score.
    """
    shown = [metric for metric in METRICS if ours.get(metric)]
    panels = make_subplots(1, len(shown), subplot_titles=[f"<b>{METRICS[m]}</b>" for m in shown])
    for column, metric in enumerate(shown, start=1):
        scores = {name: ours[metric][name] for name in _in_order(ours[metric]) if name not in floors}
        panels.add_trace(_bars("measured", scores, look.METER, column == 1), 1, column)
        printed = {name: papers.get(metric, {})[name] for name in scores if name in papers.get(metric, {})}
        if printed:
            panels.add_trace(_bars("paper", printed, _PAPER, column == 1), 1, column)
        blind = {name: ours[metric][name] for name in floors if name in ours[metric]}
        for name, value in blind.items():
            panels.add_hline(value, row=1, col=column, **_floor(name, column == 1))
    panels.update_annotations(font_size=13)
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickangle=-40)
    figure = look.figure_of(panels, title, 460)
    return figure.update_layout(
        barmode="group", bargap=0.3, legend_y=-0.3, legend_yanchor="top", margin_b=130, hovermode="closest"
    )


def label(name: str) -> str:
    """Return the name of an attacker as its authors write it."""
    return LABELS.get(name, look.readable(name))


def colour(name: str) -> str:
    """Return the colour of an attacker."""
    return COLOURS.get(name, look.METER)


def _true_area(minutes: pd.DatetimeIndex, watts: FloatArray, is_first: bool) -> go.Scatter:
    return go.Scatter(
        **look.minutes_of(minutes.tz_localize(None)),
        y=look.whole(np.nan_to_num(watts)),
        name="true",
        legendgroup="true",
        showlegend=is_first,
        mode="lines",
        line={"color": _TRUTH, "width": 0.5, "shape": "hv"},
        fill="tozeroy",
        fillcolor=_TRUTH,
        hovertemplate="%{y:,.0f} W",
    )


def _predicted_line(minutes: pd.DatetimeIndex, watts: FloatArray, name: str, is_first: bool) -> go.Scatter:
    return go.Scatter(
        **look.minutes_of(minutes.tz_localize(None)),
        y=look.whole(watts),
        name=label(name),
        legendgroup=name,
        showlegend=is_first,
        mode="lines",
        line={"color": colour(name), "width": 1.2, "shape": "hv"},
        hovertemplate="%{y:,.0f} W",
    )


def _six_hours(minutes: pd.DatetimeIndex) -> dict[str, Any]:
    x, _ = look.clock(minutes)
    step = np.timedelta64(6, "h")
    return {"tickvals": np.arange(x[0], x[-1] + step, step), "tickformat": "%H h", "ticktext": None}


def _top_w(true_w: FloatArray, predicted_w: Sequence[FloatArray]) -> float:
    """Leave space for the text; a very high prediction is cut rather than flattening the truth."""
    true, predicted = float(np.nanmax(true_w)), max(float(np.nanmax(watts)) for watts in predicted_w)
    return 1.45 * max(min(predicted, 1.6 * true), true, 1.0)


def _corner(words: str, row: int, column: int, columns: int) -> dict[str, Any]:
    number = (row - 1) * columns + column
    axis = "" if number == 1 else str(number)
    return {
        "text": words,
        "xref": f"x{axis} domain",
        "yref": f"y{axis} domain",
        "x": 0.01,
        "y": 1.02,
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "font": {"size": 11},
    }


def _in_order(names: Iterable[str]) -> list[str]:
    """Sort attackers in the order of the paper's tables, others last."""
    places = {name: place for place, name in enumerate(LABELS)}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def _bars(kind: str, scores: Mapping[str, float], fill: str, is_first: bool) -> go.Bar:
    return go.Bar(
        x=[label(name) for name in scores],
        y=list(scores.values()),
        name=kind,
        legendgroup=kind,
        showlegend=is_first,
        marker_color=fill,
        text=[_short(value) for value in scores.values()],
        textposition="outside",
        textfont_size=9,
        cliponaxis=False,
        hovertemplate="%{x}: %{y:.3g}<extra>" + kind + "</extra>",
    )


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1.5 else f"{value:.0f}"


def _floor(floor: str, is_first: bool) -> dict[str, Any]:
    return {
        "name": f"{label(floor)} (never looks)",
        "legendgroup": floor,
        "showlegend": is_first,
        "line": {"color": look.INK, "width": 1.4, "dash": _DASHES.get(floor, "longdash")},
    }
