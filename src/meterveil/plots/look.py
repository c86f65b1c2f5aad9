"""Common look of all figures: colours for colour-blind readers, axes with units, traces of minutes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray

LOAD, METER, SOC, BUDGET, GAP = "#9aa0a6", "#0072B2", "#009E73", "#D55E00", "#F0E442"
DECOY, HIDDEN, INK, GRID = "#E69F00", "#56B4E9", "#202124", "#e8eaed"

CYCLE = ("#E69F00", "#56B4E9", "#CC79A7", "#009E73", "#D55E00", "#0072B2", "#7F3C8D", "#8C6D1F")
"""Palette of Okabe and Ito without its yellow, which is hard to see on white, and two more colours."""

TEMPLATE = go.layout.Template(
    layout={
        "font": {"family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "colorway": list(CYCLE),
        "margin": {"l": 56, "r": 16, "t": 70, "b": 40},
        "hovermode": "x unified",
        "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 17}},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"},
        "xaxis": {"gridcolor": GRID, "linecolor": GRID, "zeroline": False, "ticklabelstandoff": 5},
        "yaxis": {"gridcolor": GRID, "zerolinecolor": "#bdc1c6", "automargin": True},
        "annotationdefaults": {"font": {"size": 13}},
        "bargap": 0,
    }
)

WATTS = {"tickformat": "~s", "ticksuffix": "W"}
"""Settings of a power axis: 500W, 2kW."""

MINUTE_MS = 60_000


def figure_of(panels: go.Figure, title: str, height: int) -> go.Figure:
    """Apply the common look, a title and a height; the width follows the screen."""
    return panels.update_layout(template=TEMPLATE, title_text=title, height=height)


def stacked(headings: Sequence[str], spacing: float, **options: Any) -> go.Figure:
    """Make panels below each other, with headings at their left edge in a size that fits a phone."""
    panels = make_subplots(len(headings), 1, subplot_titles=headings, vertical_spacing=spacing, **options)
    return panels.update_annotations(x=0, xanchor="left", font_size=13)


def bold(names: Iterable[str]) -> list[str]:
    """Write names as headings."""
    return [f"<b>{readable(name)}</b>" for name in names]


def colours_of(names: list[str]) -> dict[str, str]:
    """Give each name a colour, in order of the names."""
    return {name: CYCLE[number % len(CYCLE)] for number, name in enumerate(names)}


def readable(name: str) -> str:
    """Write a channel's name for people."""
    return name.replace("_", " ")


def sentences(notes: Iterable[str]) -> str:
    """Write notes for a page: each once, with a capital and a full stop."""
    return " ".join(f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in dict.fromkeys(notes))


def clock(minutes: pd.DatetimeIndex) -> tuple[Any, dict[str, Any]]:
    """Return the positions of minutes and the settings of their axis.

    Where the clocks change, positions stay evenly spaced and the labels show local time.
    """
    wall = minutes.tz_localize(None)
    even = np.asarray(wall[0].to_datetime64() + np.arange(len(wall)) * np.timedelta64(1, "m"))
    axis: dict[str, Any] = {"type": "date", "hoverformat": "%H:%M", "range": [even[0], even[-1]]}
    if np.array_equal(even, wall.to_numpy()):
        return even, {**axis, "tickformat": "%H:%M"}
    marks = np.flatnonzero((wall.minute == 0) & (wall.hour % 3 == 0))
    return even, {**axis, "tickvals": even[marks], "ticktext": wall[marks].strftime("%H:%M").tolist()}


def time_axis(figure: go.Figure, minutes: pd.DatetimeIndex, last_row: int | None = None) -> Any:
    """Give all panels an axis of local time, named in the last row; return the positions of minutes."""
    x, axis = clock(minutes)
    figure.update_xaxes(**axis)
    title = {"text": f"local time, {minutes.tz}", "font": {"size": 11}, "standoff": 4}
    figure.update_xaxes(title=title, **({"row": last_row} if last_row else {}))
    return x


def milliseconds(x: Any) -> FloatArray:
    """Write times as plotly's date axes read them; as text they would take three times the space."""
    return np.asarray(x).astype("datetime64[ms]").astype(np.float64)


def whole(values: FloatArray) -> npt.NDArray[Any]:
    """Round to whole watts or percents, in as few bytes as hold them."""
    rounded = np.round(values)
    is_small = bool(np.all(np.abs(rounded) < np.iinfo(np.int16).max))  # and known: NaN is not
    return rounded.astype(np.int16 if is_small else np.float32)


def minutes_of(x: Any) -> dict[str, Any]:
    """Place values at every minute from the first of `x` on, without a time stamp for each."""
    return {"x0": str(x[0]), "dx": MINUTE_MS}


def area(x: Any, watts: FloatArray, name: str, colour: str) -> tuple[go.Scatter, go.Scatter]:
    """Draw power as a filled line that breaks at gaps: a fill alone would bridge them."""
    fill = line(x, np.nan_to_num(watts), name, colour)
    fill.update(line_width=0, fill="tozeroy", hoverinfo="skip", hovertemplate=None, legendgroup=name)
    return fill, line(x, watts, name, colour).update(legendgroup=name, showlegend=False)


def line(x: Any, watts: FloatArray, name: str, colour: str) -> go.Scatter:
    """Draw power as steps: every value is the mean over the minute that begins there."""
    return go.Scatter(
        **minutes_of(x),
        y=whole(watts),
        name=name,
        mode="lines",
        line={"color": colour, "width": 1.3, "shape": "hv"},
        hovertemplate="%{y:,.0f} W",
    )


def strips(rows: Sequence[str], edges: Any, values: FloatArray, colours: Mapping[float, str], hover: str) -> go.Bar:
    """Draw a coloured strip for each row, as a heat map would; neighbouring cells of equal value are one bar.

    `values` is (row, cell), NaN left out; `edges` is (cell + 1,), numbers or times; `colours` is value ->
    colour, mixed in between. In `hover` the value is %{customdata}, the start of the bar %{base}.
    """
    left = milliseconds(edges) if np.asarray(edges).dtype.kind == "M" else np.asarray(edges, dtype=np.float64)
    names: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    shown: list[float] = []
    for name, row in zip(rows, values, strict=True):
        filled = np.where(np.isnan(row), -np.inf, row)
        begin = np.flatnonzero(np.append(True, filled[1:] != filled[:-1]))
        keep = np.isfinite(filled[begin])
        names += [name] * int(keep.sum())
        starts += begin[keep].tolist()
        ends += np.append(begin[1:], len(row))[keep].tolist()
        shown += filled[begin[keep]].tolist()
    return go.Bar(
        orientation="h",
        y=names,
        base=left[starts],
        x=left[ends] - left[starts],
        width=0.9,
        customdata=shown,
        marker={"color": [mixed(value, colours) for value in shown], "line": {"width": 0}},
        hovertemplate=hover,
        showlegend=False,
    )


def mixed(value: float, colours: Mapping[float, str]) -> str:
    """Mix the colour of a value from its neighbours; outside the known values it is that of the nearest."""
    parts = zip(*(bytes.fromhex(colour[1:]) for colour in colours.values()), strict=True)
    mixed = (round(float(np.interp(value, [*colours], part))) for part in parts)
    return "#" + bytes(mixed).hex()


def strip_axis(rows: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the vertical axis of strips: the first row on top, rows without a bar too."""
    return {
        "categoryorder": "array",
        "categoryarray": list(rows),
        "range": [len(rows) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
    }
