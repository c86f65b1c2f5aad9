"""Figures of an evaluation: attackers without and with a defence, and defences by energy moved."""

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
    "fixed": ("with it, fixed", look.METER),
    "adaptive": ("with it, adaptive", look.DECOY),
}
_LEVELS = {"raw": ("without a defence", "dash"), "prior": ("prior (never looks)", "dashdot")}
"""Level -> its name and the dashes of its line."""

_SIDES = {
    "top right": np.array([0.1, 0.04]),
    "bottom right": np.array([0.1, -0.04]),
    "top left": np.array([-0.1, 0.04]),
    "bottom left": np.array([-0.1, -0.04]),
}
"""Side of a point -> offset of the middle of its label, as a share of the figure."""
_TEXT_SHARE = 0.35
"""Share of a phone's width that a long label takes."""


class Point(NamedTuple):
    """Defence in the scatter: energy moved a day, and F1 of the strongest attacker."""

    name: str
    throughput_kwh: float
    f1: float
    f1_low: float = float("nan")
    f1_high: float = float("nan")


def reading_figure(
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]], prior: Mapping[str, float], title: str = ""
) -> go.Figure:
    """Draw a panel for each metric: bars of every attacker without and with the defence.

    `scores` is metric -> raw, fixed or adaptive -> attacker -> mean over appliances, with its spread over
    seeds; `prior` is metric -> score of guessing from routine.
    """
    shown = [metric for metric in METRICS if scores.get(metric)]
    heads = [f"<b>{METRICS[metric]}</b>" for metric in shown]
    panels = make_subplots(len(shown), 1, shared_xaxes=True, subplot_titles=heads, vertical_spacing=0.09)
    for row, metric in enumerate(shown, start=1):
        for kind, (words, fill) in _KINDS.items():
            bars = scores[metric].get(kind, {})
            if bars:
                panels.add_trace(_bars(bars, words, fill, row == 1), row, 1)
        if metric in prior:
            panels.add_hline(prior[metric], row=row, col=1, **_level_line("prior"), showlegend=row == 1)
    look.head_panels(panels)
    panels.update_yaxes(rangemode="tozero")
    figure = look.figure_of(panels, title, 150 * len(shown) + 170)
    return figure.update_layout(
        barmode="group", bargap=0.25, legend_y=-0.09, legend_yanchor="top", margin_b=120, hovermode="closest"
    )


def defences_figure(
    points: Sequence[Point], prior: float, raw: float, threat: str, title: str = ""
) -> go.Figure:
    """Draw every defence by the energy it moves and by F1 of the strongest attacker.

    Down and left is better. The lines are the attacker without a defence and guessing from routine.
    """
    widest_kwh = 1.2 * max(point.throughput_kwh for point in points) + 0.5
    top = 1.12 * max(raw, prior, *(np.nanmax([point.f1, point.f1_high]) for point in points))
    figure = go.Figure(
        go.Scatter(
            x=[point.throughput_kwh for point in points],
            y=[point.f1 for point in points],
            error_y=_bounds(points),
            text=[point.name for point in points],
            mode="markers+text",
            textposition=_sides(points, (raw, prior), top, widest_kwh),
            marker={"size": 11, "color": look.METER},
            hovertemplate="%{text}: %{x:.1f} kWh a day, F1 %{y:.2f}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    )
    for kind, level in {"raw": raw, "prior": prior}.items():
        figure.add_hline(level, **_level_line(kind), showlegend=True)
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


def _level_line(kind: str) -> dict[str, Any]:
    """Return a level line, named in the legend: a label on the line would cover those of points."""
    words, dash = _LEVELS[kind]
    return {"name": words, "legendgroup": kind, "line": {"color": look.INK, "width": 1.4, "dash": dash}}


def _bounds(points: Sequence[Point]) -> dict[str, Any] | None:
    if all(np.isnan(point.f1_low) for point in points):
        return None
    above = [point.f1_high - point.f1 for point in points]
    below = [point.f1 - point.f1_low for point in points]
    return {"array": above, "arrayminus": below, "symmetric": False, "thickness": 1, "width": 4}


def _sides(points: Sequence[Point], levels_f1: Sequence[float], top: float, widest_kwh: float) -> list[str]:
    """Put each label on the side of its point that is farthest from other points, labels and lines.

    Three rounds: a label may have to move for one that was placed after it.
    """
    marks = [np.array([point.throughput_kwh / widest_kwh, point.f1 / top]) for point in points]
    lines = [level / top for level in levels_f1]
    chosen: dict[int, str] = {}
    for number, mark in [*enumerate(marks)] * 3:
        names = [marks[other] + _SIDES[side] for other, side in chosen.items() if other != number]
        others = [*marks[:number], *marks[number + 1 :], *names]
        room = {side: _room(mark + _SIDES[side], others, lines) for side in _sides_inside(mark)}
        chosen[number] = max(room, key=room.__getitem__)
    return [chosen[number] for number in range(len(points))]


def _sides_inside(mark: FloatArray) -> list[str]:
    """List the sides on which a label stays inside a narrow figure."""
    is_free = _TEXT_SHARE < mark[0] < 1 - _TEXT_SHARE
    return [side for side in _SIDES if is_free or side.endswith("right") == (mark[0] < 0.5)]


def _room(place: FloatArray, others: Sequence[FloatArray], lines: Sequence[float]) -> float:
    """Return the distance of a label from the nearest point, label or line."""
    return min(*(_gap(place, other) for other in others), *(abs(float(place[1]) - line) for line in lines))


def _gap(first: FloatArray, second: FloatArray) -> float:
    """Return a distance that counts horizontal gaps less, since text is wide."""
    across, up = np.abs(first - second)
    return float(np.hypot(across / 4, up))
