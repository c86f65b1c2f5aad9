"""Figures over a setting: one panel for each measure, one line for each house."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look


def curves_figure(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    axis: str,
    title: str = "",
    logarithmic: Sequence[str] = (),
) -> go.Figure:
    """Draw panel -> line -> points (x, y); panels that are named `logarithmic` have such an axis."""
    figure = make_subplots(
        len(panels), 1, shared_xaxes=True, vertical_spacing=0.07, subplot_titles=[f"<b>{name}</b>" for name in panels]
    )
    colours = look.colours_of(list(dict.fromkeys(name for lines in panels.values() for name in lines)))
    for row, (panel, lines) in enumerate(panels.items(), start=1):
        for name, points in lines.items():
            x, y = zip(*sorted(points), strict=True)
            trace = go.Scatter(x=x, y=y, name=name, legendgroup=name, showlegend=row == 1, mode="lines+markers")
            figure.add_trace(trace.update(line_color=colours[name]), row, 1)
        if panel in logarithmic:
            figure.update_yaxes(type="log", row=row, col=1)
    look.head_panels(figure)
    figure.update_xaxes(title_text=axis, row=len(panels), col=1)
    return look.figure_of(figure, title, 160 * len(panels) + 140).update_layout(
        margin_b=60, margin_t=110, legend_y=1.05
    )
