"""The picture of Condition A1: where attackers' gradients point beside the probe's, as a manager learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look

HEADINGS = {
    "risk": "Condition A1: the probe's loss over the day, and theirs",
    "reward": "Both as the manager is paid: hours that end with a replay",
    "training": "What the manager climbs, and what they lose over the day",
}
"""Comparison -> heading, from top to bottom."""

_SPREAD = 0.07
"""Share of the way between two snapshots that neighbouring readers are moved apart."""


class Point(NamedTuple):
    """A cosine with its interval after so many updates."""

    update: int
    cosine: float
    low: float
    high: float


def alignment_figure(curves: Mapping[str, Mapping[str, Mapping[str, Sequence[Point]]]]) -> go.Figure:
    """Draw cosines along trainings: comparison -> house -> reader -> points; a row for each comparison."""
    shown = [name for name in HEADINGS if name in curves]
    houses = sorted({house for panels in curves.values() for house in panels})
    readers = list(
        dict.fromkeys(name for panels in curves.values() for one in panels.values() for name in one)
    )
    titles = [f"<b>{house}</b>: {HEADINGS[name]}" for name in shown for house in houses]
    panels = make_subplots(
        len(shown),
        len(houses),
        subplot_titles=titles,
        shared_yaxes=True,
        vertical_spacing=0.1,
        horizontal_spacing=0.04,
    )
    known: set[str] = set()
    for row, comparison in enumerate(shown, start=1):
        for column, house in enumerate(houses, start=1):
            for reader, points in curves[comparison].get(house, {}).items():
                line = _line(reader, points, readers).update(showlegend=reader not in known)
                panels.add_trace(line, row, column)
                known.add(reader)
            panels.add_hline(y=0.0, line_color=look.INK, line_width=1, row=row, col=column)
    panels.update_yaxes(range=[-1.05, 1.05])
    panels.update_yaxes(title="cosine", col=1)
    panels.update_xaxes(title="updates of the manager", row=len(shown))
    title = "Does the probe point where the attackers hurt?"
    figure = look.figure_of(panels, title, 130 + 320 * len(shown))
    return figure.update_layout(margin_t=130, legend_y=1.05, hovermode="closest")


def _line(reader: str, points: Sequence[Point], readers: Sequence[str]) -> go.Scatter:
    """Draw one reader, moved a little aside so that intervals do not hide each other."""
    step = (points[-1].update - points[0].update) / max(len(points) - 1, 1)
    aside = (readers.index(reader) - (len(readers) - 1) / 2) * _SPREAD * step
    cosines = [point.cosine for point in points]
    error = {
        "array": [point.high - point.cosine for point in points],
        "arrayminus": [point.cosine - point.low for point in points],
        "thickness": 1,
        "width": 3,
    }
    colour = look.CYCLE[readers.index(reader) % len(look.CYCLE)]
    return go.Scatter(
        x=[point.update + aside for point in points],
        y=cosines,
        error_y=error,
        name=look.readable(reader),
        legendgroup=reader,
        mode="lines+markers",
        line={"color": colour, "width": 1.5},
        marker={"size": 6},
    )
