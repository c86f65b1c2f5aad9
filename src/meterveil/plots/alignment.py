"""Pictures of Condition A1: where attackers' gradients point beside the probe's, as a manager learns.

A mark is filled where its interval keeps clear of the black line, and hollow where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look

COMPARISONS = {
    "risk": "loss over the day, the probe's and theirs (A1)",
    "reward": "loss as the manager is paid, the probe's and theirs",
    "training": "what the manager is paid, and their loss over the day",
}
"""Kind of cosine -> heading, from top to bottom."""

RISKS = {"paid": "what a day's decisions are paid", "hours": "mean loss of an hour, over the day"}
"""Kind of risk -> heading, from top to bottom."""

_SPREAD = 0.09
"""Share of the way between two snapshots that neighbouring readers are moved apart."""

_DRAWN_APART = {"all six": look.INK, "probe": look.LOAD}
"""Readers that are no attackers -> their colours."""

_KEY = "filled: the 95 % interval keeps clear of the line"


class Point(NamedTuple):
    """A figure with its interval after so many updates."""

    update: int
    value: float
    low: float
    high: float


Curves = dict[str, dict[str, dict[str, list[Point]]]]
"""Kind of figure -> house -> reader -> points along the training."""


def alignment_figure(curves: Curves) -> go.Figure:
    """Draw cosines along trainings, a row for each comparison."""
    figure = _figure(curves, COMPARISONS, "Does the probe point where the attackers hurt?")
    figure.update_yaxes(range=[-1.05, 1.05])
    return figure.update_yaxes(title="cosine", col=1)


def risk_figure(curves: Curves) -> go.Figure:
    """Draw the risks themselves along trainings, as shares of what each was at the first snapshot."""
    figure = _figure(
        curves, RISKS, "What a training climbs, and what attackers lose meanwhile", relative=True
    )
    figure.update_yaxes(tickformat=".0%")
    return figure.update_yaxes(title="of the beginning", col=1)


def _figure(curves: Curves, headings: dict[str, str], title: str, *, relative: bool = False) -> go.Figure:
    """Draw a row of panels for each kind of figure and a column for each house."""
    shown = [name for name in headings if name in curves]
    houses = sorted({house for panels in curves.values() for house in panels})
    named = {name for kind in shown for one in curves[kind].values() for name in one}
    readers = sorted(named, key=lambda name: (name not in _DRAWN_APART, name))
    titles = [f"<b>{house}</b>: {headings[name]}" for name in shown for house in houses]
    spacing = {"vertical_spacing": 0.3 / len(shown) ** 1.1, "horizontal_spacing": 0.05}
    panels = make_subplots(len(shown), len(houses), subplot_titles=titles, shared_yaxes=True, **spacing)
    for row, kind in enumerate(shown, start=1):
        for column, house in enumerate(houses, start=1):
            _fill(panels, (row, column), curves[kind].get(house, {}), readers, relative=relative)
    for reader in readers:
        next(panels.select_traces({"legendgroup": reader})).showlegend = True
    panels.update_xaxes(title="updates of the manager", row=len(shown))
    height = 300 * len(shown)
    titled = f'{title}  <span style="font-size:12px">{_KEY}</span>'
    figure = look.figure_of(panels, titled, height + 170).update_annotations(font_size=12)
    return figure.update_layout(
        margin={"t": 115, "b": 55, "l": 85}, legend_y=1 + 25 / height, hovermode="closest"
    )


def _fill(
    panels: go.Figure,
    place: tuple[int, int],
    drawn: Mapping[str, Sequence[Point]],
    readers: Sequence[str],
    *,
    relative: bool,
) -> None:
    """Draw all readers of a panel, the line that they are held to, and a tick wherever one looked."""
    row, column = place
    for reader, points in drawn.items():
        line = _line(reader, points, readers, level=points[0].value if relative else None)
        panels.add_trace(line, row, column)
    looked = sorted({point.update for points in drawn.values() for point in points})
    panels.update_xaxes(tickvals=looked, row=row, col=column)
    panels.add_hline(y=float(relative), line_color=look.INK, line_width=1, row=row, col=column)


def _line(reader: str, points: Sequence[Point], readers: Sequence[str], level: float | None) -> go.Scatter:
    """Draw one reader, moved a little aside so that intervals do not hide each other.

    Where a level is given, figures are drawn as shares of it and joined; a line through cosines would show
    mostly noise.
    """
    place, is_apart = readers.index(reader), reader in _DRAWN_APART
    step = (points[-1].update - points[0].update) / max(len(points) - 1, 1) or 1.0
    aside, unit = (place - (len(readers) - 1) / 2) * _SPREAD * step, level or 1.0
    above = [(one.high - one.value) / unit for one in points]
    below = [(one.value - one.low) / unit for one in points]
    colour = _DRAWN_APART.get(reader, look.CYCLE[place % len(look.CYCLE)])
    clear = [not one.low <= (level or 0.0) <= one.high for one in points]
    return go.Scatter(
        x=[point.update + aside for point in points],
        y=[point.value / unit for point in points],
        error_y={"array": above, "arrayminus": below, "thickness": 1, "width": 3, "color": colour},
        name=look.readable(reader),
        legendgroup=reader,
        legendrank=place,
        showlegend=False,
        mode="markers" if level is None else "lines+markers",
        line={"color": colour, "width": 3 if is_apart else 1},
        marker={
            "size": 10 if is_apart else 7,
            "color": [colour if one else "white" for one in clear],
            "line": {"color": colour, "width": 1.5},
        },
    )
