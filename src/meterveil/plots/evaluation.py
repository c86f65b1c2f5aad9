"""Pictures of measured defences: what attackers read before and behind them, and what protection costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look
from meterveil.plots.attack import Score, label

METRICS = {
    "rmse": "RMSE in W (lower reads more)",
    "f1": "F1 from power",
    "f1_best": "F1 from power or on/off head",
}
_KINDS = {
    "raw": ("without the defence", "#bdc1c6"),
    "fixed": ("behind it, fixed", look.METER),
    "adaptive": ("behind it, adaptive", look.DECOY),
}
_SIDES = {
    "top right": np.array([0.045, 0.04]),
    "bottom right": np.array([0.045, -0.04]),
    "top left": np.array([-0.045, 0.04]),
    "bottom left": np.array([-0.045, -0.04]),
}
"""Side of a point -> where the middle of its name lies, as a share of the picture."""


class Point(NamedTuple):
    """A defence in the scatter: what it moves in a day, and what is still read behind it."""

    name: str
    throughput_kwh: float
    f1: float
    f1_low: float = float("nan")
    f1_high: float = float("nan")


def reading_figure(
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]], prior: Mapping[str, float], title: str = ""
) -> go.Figure:
    """Draw a panel for each metric: bars of every attacker without the defence, and behind it.

    `scores` is metric -> raw, fixed or adaptive -> attacker -> mean over appliances, with its spread over
    seeds; `prior` is metric -> what the attacker scores that never looks.
    """
    shown = [metric for metric in METRICS if scores.get(metric)]
    panels = make_subplots(1, len(shown), subplot_titles=[f"<b>{METRICS[metric]}</b>" for metric in shown])
    for column, metric in enumerate(shown, start=1):
        for kind, (words, fill) in _KINDS.items():
            bars = scores[metric].get(kind, {})
            if bars:
                panels.add_trace(_bars(bars, words, fill, column == 1), 1, column)
        if metric in prior:
            panels.add_hline(prior[metric], row=1, col=column, **_prior_line(column == 1))
    panels.update_annotations(font_size=13)
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickangle=-40)
    figure = look.figure_of(panels, title, 440)
    return figure.update_layout(
        barmode="group", bargap=0.25, legend_y=-0.3, legend_yanchor="top", margin_b=130, hovermode="closest"
    )


def defences_figure(
    points: Sequence[Point], prior: float, raw: float, threat: str, title: str = ""
) -> go.Figure:
    """Draw every defence by the energy it moves and by what the strongest attacker still reads.

    Down and left is better; between the lines lies all that a meter can tell beyond habits.
    """
    widest_kwh = 1.2 * max(point.throughput_kwh for point in points) + 0.5
    top = 1.12 * max(raw, prior, *(np.nanmax([point.f1, point.f1_high]) for point in points))
    figure = go.Figure(
        go.Scatter(
            x=[point.throughput_kwh for point in points],
            y=[point.f1 for point in points],
            error_y=_bounds(points),
            text=[look.readable(point.name) for point in points],
            mode="markers+text",
            textposition=_sides(points, top, widest_kwh),
            marker={"size": 11, "color": look.METER},
            hovertemplate="%{text}: %{x:.1f} kWh a day, F1 %{y:.2f}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    )
    levels = {"without a defence": (raw, "top right"), "prior: never looks": (prior, "bottom right")}
    for words, (level, side) in levels.items():
        line = {"color": look.INK, "width": 1.2, "dash": "dash"}
        figure.add_hline(level, line=line, annotation_text=words, annotation_position=side)
    figure.update_xaxes(title_text="energy moved in a day, in and out", ticksuffix=" kWh")
    figure.update_xaxes(range=[-0.09 * widest_kwh, widest_kwh])
    figure.update_yaxes(title_text=f"F1 of the strongest {threat} attacker", range=[0, top])
    return look.figure_of(figure, title, 480).update_layout(hovermode="closest", margin_b=60)


def _bars(scores: Mapping[str, Score], words: str, fill: str, is_first: bool) -> go.Bar:
    return go.Bar(
        x=[label(name) for name in scores],
        y=[score.value for score in scores.values()],
        error_y=_spreads(scores),
        name=words,
        legendgroup=words,
        showlegend=is_first,
        marker_color=fill,
        hovertemplate="%{x}: %{y:.3g}<extra>" + words + "</extra>",
    )


def _spreads(scores: Mapping[str, Score]) -> dict[str, Any] | None:
    if not any(score.spread for score in scores.values()):
        return None
    return {"array": [score.spread for score in scores.values()], "thickness": 1, "width": 3}


def _prior_line(is_first: bool) -> dict[str, Any]:
    return {
        "name": "prior (never looks)",
        "legendgroup": "prior",
        "showlegend": is_first,
        "line": {"color": look.INK, "width": 1.4, "dash": "dashdot"},
    }


def _bounds(points: Sequence[Point]) -> dict[str, Any] | None:
    if all(np.isnan(point.f1_low) for point in points):
        return None
    above = [point.f1_high - point.f1 for point in points]
    below = [point.f1 - point.f1_low for point in points]
    return {"array": above, "arrayminus": below, "symmetric": False, "thickness": 1, "width": 4}


def _sides(points: Sequence[Point], top: float, widest_kwh: float) -> list[str]:
    """Put each name on the side of its point that is farthest from other points and names."""
    scale = np.array([widest_kwh, top])
    marks = [np.array([point.throughput_kwh, point.f1]) / scale for point in points]
    chosen: list[str] = []
    taken = list(marks)
    for number, mark in enumerate(marks):
        others = [*taken[:number], *taken[number + 1 :]]
        room = {
            side: min((_gap(mark + offset, other) for other in others), default=0.0)
            for side, offset in _SIDES.items()
        }
        chosen.append(max(room, key=room.__getitem__))
        taken.append(mark + _SIDES[chosen[-1]])
    return chosen


def _gap(first: FloatArray, second: FloatArray) -> float:
    """Measure how far two places are apart; text is wide, so what lies beside it is nearer."""
    across, up = np.abs(first - second)
    return float(np.hypot(across / 2, up))
