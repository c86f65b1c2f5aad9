"""Figure of answers to questions about a household: a panel for each question, a row for each meter or defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go

from meterveil.plots import look

_ROW_PX, _PANEL_PX = 30, 78
_USUAL = "habits alone"


class Answer(NamedTuple):
    """One figure with its 95 % interval over days."""

    question: str
    row: str
    series: str
    value: float
    low: float
    high: float


def answers_figure(
    answers: Sequence[Answer], usual: Mapping[str, float], axes: Mapping[str, Mapping[str, object]], title: str
) -> go.Figure:
    """Draw answers as points with intervals, and what habits alone tell as a line in each panel.

    `usual` and `axes` (settings of the horizontal axis) are by question, in the order of the panels.
    """
    rows = list(dict.fromkeys(answer.row for answer in answers))
    series = list(dict.fromkeys(answer.series for answer in answers))
    colours = look.colours_of(series)
    height = len(axes) * (_PANEL_PX + _ROW_PX * len(rows)) + 90
    panels = look.stacked(look.bold(axes), 62 / height)
    for number, (question, axis) in enumerate(axes.items(), start=1):
        for place, name in enumerate(series):
            part = [answer for answer in answers if (answer.question, answer.series) == (question, name)]
            shift = 0.5 * ((place + 0.5) / len(series) - 0.5)
            panels.add_trace(
                go.Scatter(
                    x=[answer.value for answer in part],
                    y=[rows.index(answer.row) + shift for answer in part],
                    error_x={
                        "array": [answer.high - answer.value for answer in part],
                        "arrayminus": [answer.value - answer.low for answer in part],
                        "thickness": 1.3,
                        "width": 3,
                    },
                    mode="markers",
                    marker={"color": colours[name], "size": 9},
                    name=name,
                    legendgroup=name,
                    showlegend=number == 1 and len(series) > 1,
                    hovertemplate="%{x:.2f}",
                ),
                number,
                1,
            )
        if question in usual:
            ends = [-0.5, len(rows) - 0.5]
            line = go.Scatter(x=[usual[question]] * 2, y=ends, name=_USUAL, legendgroup=_USUAL, mode="lines")
            line.update(line={"color": look.LOAD, "dash": "dash", "width": 1.5}, showlegend=number == 1)
            panels.add_trace(line, number, 1)
        panels.update_xaxes(**axis, row=number)
    ticks = {"tickvals": list(range(len(rows))), "ticktext": [f"{row} " for row in rows]}
    panels.update_yaxes(**ticks, range=[len(rows) - 0.5, -0.5], showgrid=False, zeroline=False)
    return look.figure_of(panels, title, height).update_layout(
        margin_t=120, legend_y=1 + 30 / height, hovermode="closest"
    )
