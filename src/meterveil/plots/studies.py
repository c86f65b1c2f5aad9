"""Figures of the studies in `experiments`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

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


def curves_figure(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    axis: str,
    title: str = "",
    logarithmic: Sequence[str] = (),
) -> go.Figure:
    """Draw panel -> line -> points (x, y); panels that are named `logarithmic` have such an axis."""
    figure = look.stacked(look.bold(panels), 0.07, shared_xaxes=True)
    colours = look.colours_of(list(dict.fromkeys(name for lines in panels.values() for name in lines)))
    for row, (panel, lines) in enumerate(panels.items(), start=1):
        for name, points in lines.items():
            x, y = zip(*sorted(points), strict=True)
            trace = go.Scatter(x=x, y=y, name=name, legendgroup=name, showlegend=row == 1, mode="lines+markers")
            figure.add_trace(trace.update(line_color=colours[name]), row, 1)
        if panel in logarithmic:
            figure.update_yaxes(type="log", row=row, col=1)
    figure.update_xaxes(title_text=axis, row=len(panels), col=1)
    return look.figure_of(figure, title, 160 * len(panels) + 140).update_layout(
        margin_b=60, margin_t=110, legend_y=1.05
    )


def sides_figure(
    houses: Mapping[str, Mapping[str, Mapping[str, float]]], digits: Mapping[str, int], title: str = ""
) -> go.Figure:
    """Draw house -> metric -> side -> figure: a column of panels for each house, in each panel a bar for each side.

    `digits` is the metrics in their order, with the digits of their numbers; an unknown figure has no bar.
    """
    sides = list(dict.fromkeys(side for metrics in houses.values() for bars in metrics.values() for side in bars))
    colours = dict(zip(sides, (look.LOAD, look.DECOY, look.METER), strict=False))
    heads = [f"<b>{house}</b>" for house in houses] + [""] * len(houses) * (len(digits) - 1)
    figure = make_subplots(len(digits), len(houses), vertical_spacing=0.06, subplot_titles=heads)
    for row, (metric, places) in enumerate(digits.items(), start=1):
        for column, metrics in enumerate(houses.values(), start=1):
            bars = {side: value for side, value in metrics.get(metric, {}).items() if not math.isnan(value)}
            trace = go.Bar(
                x=list(bars),
                y=list(bars.values()),
                text=[f"{value:.{places}f}" for value in bars.values()],
                textposition="outside",
                cliponaxis=False,
                marker_color=[colours[side] for side in bars],
                hovertemplate="%{x}: %{text}<extra></extra>",
                showlegend=False,
            )
            figure.add_trace(trace, row, column)
        figure.update_yaxes(title_text=metric, row=row, col=1)
    figure.update_xaxes(categoryorder="array", categoryarray=sides, range=[-0.6, len(sides) - 0.4], tickangle=0)
    look.figure_of(figure, title, 120 + 190 * len(digits))
    return figure.update_layout(bargap=0.25, hovermode="closest")


def trade_off_figure(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float, str]]]], axis: str, title: str
) -> go.Figure:
    """Draw panel -> line -> points (cost, bits, label), cost to the right and bits upwards: the best is low and left.

    Bits have a logarithmic axis. A ring marks the points that no other point of their line beats in both.
    """
    figure = look.stacked(look.bold(panels), 0.06, shared_xaxes=True)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours, sides = look.colours_of(names), ("top left", "top right", "bottom right")
    unseen = set(names)
    for row, lines in enumerate(panels.values(), start=1):
        for name, points in lines.items():
            cost, bits, label = zip(*points, strict=True)
            best = [not any(_beats(other[:2], point[:2]) for other in points) for point in points]
            trace = go.Scatter(
                x=cost,
                y=bits,
                text=label,
                name=name,
                legendgroup=name,
                showlegend=name in unseen,
                mode="lines+markers+text",
                textposition=sides[names.index(name) % len(sides)],
                textfont={"size": 11, "color": colours[name]},
                marker={
                    "color": colours[name],
                    "size": 9,
                    "line": {"color": look.INK, "width": [1.8 * ok for ok in best]},
                },
                line={"color": colours[name], "width": 1.2},
                cliponaxis=False,
                hovertemplate="%{text}: %{x:.3f} a day, %{y:,.0f} bits<extra></extra>",
            )
            figure.add_trace(trace, row, 1)
            unseen.discard(name)
        every = [math.log10(bits) for points in lines.values() for _, bits, _ in points]
        figure.update_yaxes(
            type="log", dtick=1, range=[min(every) - 0.4, max(every) + 0.5], title_text="bits a day", row=row, col=1
        )
    figure.update_xaxes(title_text=axis, row=len(panels), col=1)
    return look.figure_of(figure, title, 210 * len(panels) + 150).update_layout(
        margin_b=60, margin_t=110, legend_y=1.03, hovermode="closest"
    )


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]
