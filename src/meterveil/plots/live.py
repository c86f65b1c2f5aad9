"""Figures of live control."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from meterveil.plots import look

_ROW_PX = 62
_CELL_PX = 50


def plants_figure(readers_s: Sequence[int], rows: Sequence[tuple[str, Sequence[float]]]) -> go.Figure:
    """Draw the share of load edges that a reader finds, plant by reader, as shaded cells with numbers."""
    cells = [
        (name, reader, share)
        for name, shares in reversed(rows)
        for reader, share in zip(readers_s, shares, strict=True)
    ]
    figure = go.Figure(
        go.Scatter(
            x=[f"{reader} s" if reader < 900 else f"{reader // 60} min" for _, reader, _ in cells],
            y=[name.replace(", ", ",<br>", 1) for name, _, _ in cells],
            text=[f"{100.0 * share:.0f} %" for _, _, share in cells],
            mode="markers+text",
            marker={
                "symbol": "square",
                "size": _CELL_PX,
                "color": [share for _, _, share in cells],
                "colorscale": [[0.0, "#e8f3ee"], [1.0, look.METER]],
                "cmin": 0.0,
                "cmax": 1.0,
            },
            hovertemplate="%{y}, reader of %{x}: %{text}<extra></extra>",
        )
    )
    figure.update_xaxes(title="time between two readings", side="bottom")
    figure.update_yaxes(automargin=True)
    return look.figure_of(figure, "Edges of 500 W and more that a reader still finds", 130 + _ROW_PX * len(rows))
