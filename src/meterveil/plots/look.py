"""The common look: colours that colour-blind readers tell apart, units on axes, room on a phone."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from meterveil.core.arrays import FloatArray
from meterveil.data.outputs import write_text, write_whole
from meterveil.errors import InputError
from meterveil.extras import how_to_install
from meterveil.plots.page import Section, page

LOAD, METER, SOC, BUDGET, GAP = "#9aa0a6", "#0072B2", "#009E73", "#D55E00", "#F0E442"
DECOY, HIDDEN, INK, GRID = "#E69F00", "#56B4E9", "#202124", "#e8eaed"

CYCLE = ("#E69F00", "#56B4E9", "#CC79A7", "#009E73", "#D55E00", "#0072B2", "#7F3C8D", "#8C6D1F")
"""Okabe and Ito's palette, without the yellow that is lost on white, and two more for long lists."""

TEMPLATE = go.layout.Template(
    layout={
        "font": {
            "family": "system-ui, -apple-system, Segoe UI, Roboto, sans-serif",
            "size": 13,
            "color": INK,
        },
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
"""Settings of an axis of power: 500W, 2kW."""

SCALE = 2
"""Pictures are drawn twice as dense as they are laid out, for sharp text on modern screens."""


def figure_of(panels: go.Figure, title: str, height: int) -> go.Figure:
    """Give a figure the common look, a title and a height; its width follows the screen."""
    return panels.update_layout(template=TEMPLATE, title_text=title, height=height)


def head_panels(panels: go.Figure) -> None:
    """Put the headings of panels at their left edge, small enough for a phone."""
    panels.update_annotations(x=0, xanchor="left", font_size=13)


def colours_of(names: list[str]) -> dict[str, str]:
    """Give each name a colour, in order of the names."""
    return {name: CYCLE[number % len(CYCLE)] for number, name in enumerate(names)}


def readable(name: str) -> str:
    """Write a channel's name for people."""
    return name.replace("_", " ")


def clock(minutes: pd.DatetimeIndex) -> tuple[Any, dict[str, Any]]:
    """Return the horizontal positions of minutes and the settings of their axis, in local time.

    Where the clocks change, positions go on evenly and the labels say what the clock on the wall showed.
    """
    wall = minutes.tz_localize(None)
    even = np.asarray(wall[0].to_datetime64() + np.arange(len(wall)) * np.timedelta64(1, "m"))
    axis: dict[str, Any] = {"type": "date", "hoverformat": "%H:%M", "range": [even[0], even[-1]]}
    if np.array_equal(even, wall.to_numpy()):
        return even, {**axis, "tickformat": "%H:%M"}
    marks = np.flatnonzero((wall.minute == 0) & (wall.hour % 3 == 0))
    return even, {**axis, "tickvals": even[marks], "ticktext": wall[marks].strftime("%H:%M").tolist()}


def area(x: Any, watts: FloatArray, name: str, colour: str) -> tuple[go.Scatter, go.Scatter]:
    """Draw power as a filled line that breaks at gaps: a fill alone would bridge them."""
    fill = go.Scatter(
        x=x,
        y=np.round(np.nan_to_num(watts), 1),
        name=name,
        legendgroup=name,
        mode="lines",
        line={"color": colour, "width": 0, "shape": "hv"},
        fill="tozeroy",
        hoverinfo="skip",
    )
    return fill, line(x, watts, name, colour).update(legendgroup=name, showlegend=False)


def line(x: Any, watts: FloatArray, name: str, colour: str) -> go.Scatter:
    """Draw power as steps: every value is the mean over the minute that begins there."""
    return go.Scatter(
        x=x,
        y=np.round(watts, 1),
        name=name,
        mode="lines",
        line={"color": colour, "width": 1.3, "shape": "hv"},
        hovertemplate="%{y:,.0f} W",
    )


def check_picture(path: Path) -> Path:
    """Refuse a picture that cannot be saved under this name, before any work is done for it."""
    kind = path.suffix.lower()
    if kind not in (".html", ".png", ".svg"):
        raise InputError(f"a picture cannot be saved as {path.name}; use a name in .html, .png or .svg")
    if kind != ".html" and find_spec("kaleido") is None:
        raise InputError(f"saving {kind} needs kaleido; get it with {how_to_install('pictures')}")
    return path


def save(figure: go.Figure, path: Path, width: int = 1200) -> Path:
    """Write a figure as a self-contained .html page, or as a .png or .svg picture."""
    kind = check_picture(path).suffix.lower()
    if kind == ".html":
        return write_text(path, page(figure.layout.title.text or path.stem, [Section(figure=figure)]))
    try:
        return write_whole(
            path,
            lambda temporary: figure.write_image(temporary, format=kind[1:], width=width, scale=SCALE),
        )
    except RuntimeError as error:
        raise InputError(
            f"saving {kind} needs Chrome or Chromium; install one, or save as .html "
            f"({str(error).strip().splitlines()[0]})"
        ) from error
