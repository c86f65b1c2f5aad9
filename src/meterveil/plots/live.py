"""Figures of live control."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from meterveil.plots import look

_ROW_PX = 62


def plants_figure(readers_s: Sequence[int], rows: Sequence[tuple[str, Sequence[float]]]) -> go.Figure:
    """Draw the share of load edges that a reader finds, plant by reader, as shaded cells with numbers."""
    names = [name for name, _ in rows][::-1]
    shares = [[100.0 * share for share in values] for _, values in rows][::-1]
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=[f"{reader} s" if reader < 900 else f"{reader // 60} min" for reader in readers_s],
            y=[name.replace(", ", ",<br>", 1) for name in names],
            text=[[f"{share:.0f} %" for share in row] for row in shares],
            texttemplate="%{text}",
            colorscale=[[0.0, "#e8f3ee"], [1.0, look.METER]],
            zmin=0.0,
            zmax=100.0,
            showscale=False,
            xgap=3,
            ygap=3,
            hovertemplate="%{y}, reader of %{x}: %{z:.0f} %<extra></extra>",
        )
    )
    figure.update_xaxes(title="time between two readings", side="bottom")
    figure.update_yaxes(automargin=True)
    return look.figure_of(figure, "Edges of 500 W and more that a reader still finds", 130 + _ROW_PX * len(rows))
