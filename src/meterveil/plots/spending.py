"""Picture of where the time of a reproduction goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look

_BAR_PX, _HEAD_PX, _EDGE_PX = 22, 50, 180


class Minutes(NamedTuple):
    """Processor time of tasks of one sort."""

    measured: float
    foretold: float  # of those that have no record, at the mean of the others


def time_figure(panels: Mapping[str, Mapping[str, Minutes]], title: str = "") -> go.Figure:
    """Draw a panel for each part of a reproduction, a bar for each sort of task.

    `panels` is the part in words -> sort -> minutes; the longest stand on top.
    """
    counts = [len(bars) for bars in panels.values()]
    inner_px = _BAR_PX * sum(counts) + _HEAD_PX * (len(panels) - 1)
    figure = make_subplots(
        len(panels),
        1,
        row_heights=counts,
        vertical_spacing=_HEAD_PX / inner_px if len(panels) > 1 else 0,
        subplot_titles=[f"<b>{words}</b>" for words in panels],
    )
    for row, bars in enumerate(panels.values(), start=1):
        ordered = dict(sorted(bars.items(), key=lambda item: sum(item[1])))
        for place, (words, colour) in enumerate((("measured", look.METER), ("foretold", look.HIDDEN))):
            bar = go.Bar(
                y=list(ordered),
                x=[minutes[place] for minutes in ordered.values()],
                orientation="h",
                name=words,
                legendgroup=words,
                showlegend=row == 1,
                marker_color=colour,
                hovertemplate=f"%{{y}}: %{{x:.1f}} min {words}<extra></extra>",
            )
            figure.add_trace(bar, row, 1)
    look.head_panels(figure)
    figure.update_yaxes(automargin=True)
    figure.update_xaxes(rangemode="tozero", nticks=6, matches="x")
    figure.update_xaxes(title={"text": "minutes of one core", "standoff": 6}, row=len(panels), col=1)
    figure = look.figure_of(figure, title, inner_px + _EDGE_PX)
    below = {"y": -70 / inner_px, "yanchor": "top"}
    return figure.update_layout(
        barmode="stack", bargap=0.25, legend=below, hovermode="closest", margin_b=100, margin_t=80
    )
