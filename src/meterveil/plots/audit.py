"""Pictures of what a stranger reads out of a meter: every day at a glance, habits, and one day in detail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look

ASLEEP, EMPTY, AWAKE = "#9DB7D5", "#F3DFA2", "#eceff1"
COLOURS = {
    "awake": AWAKE,
    "asleep": ASLEEP,
    "empty": EMPTY,
    "dishwasher": "#009E73",
    "washing_machine": "#CC79A7",
    "microwave": "#D55E00",
    "kettle": "#7F1D1D",
    "fridge": "#0072B2",
}
"""What is shown -> its colour; in a picture of days, the later lies over the earlier."""

_HOURS = [0, 6, 12, 18]
_HABIT_COLUMNS = 2
_TOP_PX, _HOURS_PX, _FOOT_PX = 30, 40, 110
"""Room above a picture, for the hours below it, and for hours and legend together."""
_TRUTH, _GUESS = "#202124", "#D55E00"


def days_at_a_glance_figure(days: Sequence[date], shown: FloatArray, names: Sequence[str]) -> go.Figure:
    """Draw a row for each day, midnight to midnight; `shown` is (day, slot) of positions in `names`."""
    colours = [COLOURS[name] for name in names]
    edges = np.repeat(np.linspace(0.0, 1.0, len(names) + 1), 2)[1:-1]
    scale = [[float(edge), colours[n // 2]] for n, edge in enumerate(edges)]
    labels = [f"{day:%a %d %b}" for day in days]
    grid = go.Heatmap(
        x=(np.arange(shown.shape[1]) + 0.5) * 24 / shown.shape[1],
        y=labels,
        z=shown,
        zmin=-0.5,
        zmax=len(names) - 0.5,
        colorscale=scale,
        showscale=False,
        ygap=1,
        customdata=_words(shown, names),
        hovertemplate="%{y}: %{customdata}<extra></extra>",
    )
    keys = [_key(look.readable(name), colour) for name, colour in zip(names, colours, strict=True)]
    height = 150 + 16 * len(days)
    figure = look.figure_of(go.Figure([grid, *keys]), "Every day", height)
    figure.update_yaxes(autorange="reversed", showgrid=False, nticks=max(len(days) // 2, 4))
    figure.update_xaxes(**_hour_axis())
    return _legend_below(figure.update_layout(hovermode="closest"))


def habits_figure(panels: Mapping[str, tuple[str, FloatArray]]) -> go.Figure:
    """Draw an hour-by-weekday map for each name; its value is (unit of the figures, (7, 24) means)."""
    rows = math.ceil(len(panels) / _HABIT_COLUMNS)
    titles = [f"<b>{look.readable(name)}</b>" for name in panels]
    figure = make_subplots(
        rows,
        _HABIT_COLUMNS,
        subplot_titles=titles,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.3 / rows,
    )
    weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    for number, (name, (unit, means)) in enumerate(panels.items()):
        top = float(np.nanmax(means)) if np.any(np.nan_to_num(means) > 0) else 1.0
        cells = go.Heatmap(
            x=np.arange(24) + 0.5,
            y=weekdays,
            z=np.round(means, 3),
            zmin=0.0,
            zmax=top,
            colorscale=[[0, "#f7f8f9"], [1, COLOURS.get(name, look.METER)]],
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="%{y} %{x:.0f} h: %{z:.2f} " + unit + f"<extra>{look.readable(name)}</extra>",
        )
        figure.add_trace(cells, number // _HABIT_COLUMNS + 1, number % _HABIT_COLUMNS + 1)
    figure.update_annotations(font_size=13)
    figure.update_xaxes(**_hour_axis())
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return look.figure_of(figure, "Habits", 70 + 200 * rows).update_layout(hovermode="closest")


def audited_day_figure(
    minutes: pd.DatetimeIndex,
    reading_w: FloatArray,
    probability: Mapping[str, FloatArray],
    quiet: Sequence[tuple[str, int, int]],
) -> go.Figure:
    """Draw one day: the meter with sleep and absence behind it, and how likely each appliance was on."""
    titles = ["<b>What the meter shows</b>", *(f"<b>{look.readable(name)}</b>" for name in probability)]
    rows = len(titles)
    heights = [2.6, *[0.7] * (rows - 1)]
    height = 300 + 84 * (rows - 1)
    panels = make_subplots(
        rows,
        1,
        shared_xaxes=True,
        subplot_titles=titles,
        row_heights=heights,
        vertical_spacing=30 / height,
    )
    x, axis = look.clock(minutes)
    panels.add_traces(look.area(x, reading_w, "meter", "#5f6368"), 1, 1)
    for row, (name, likely) in enumerate(probability.items(), start=2):
        panels.add_trace(_likely(x, likely, name), row, 1)
        panels.update_yaxes(range=[0, 105], tickvals=[0, 100], ticktext=["0", "100 %"], row=row)
    for state, start, end in quiet:
        panels.add_vrect(
            x0=x[start],
            x1=x[min(end, len(x) - 1)],
            fillcolor=COLOURS[state],
            opacity=0.55,
            line_width=0,
            layer="below",
            row=1,
            col=1,
        )
    for state in dict.fromkeys(state for state, _, _ in quiet):
        panels.add_trace(_key(f"seems {state}", COLOURS[state]), 1, 1)
    look.head_panels(panels)
    panels.update_xaxes(**axis)
    panels.update_yaxes(**look.WATTS, row=1)
    figure = look.figure_of(panels, f"{minutes[0]:%A %d %B %Y}", height)
    figure.for_each_trace(lambda trace: trace.update(showlegend=bool(trace.name.startswith("seems"))))
    return _legend_below(figure)


def agreement_figure(minutes: pd.DatetimeIndex, panels: Mapping[str, Mapping[str, FloatArray]]) -> go.Figure:
    """Draw, for each appliance, when it was truly on (first row) and when each attacker says so."""
    rows = len(panels)
    figure = make_subplots(
        rows,
        1,
        shared_xaxes=True,
        vertical_spacing=0.3 / rows,
        subplot_titles=[f"<b>{look.readable(name)}</b>" for name in panels],
    )
    x, axis = look.clock(minutes)
    for row, lanes in enumerate(panels.values(), start=1):
        marks = np.stack(
            [np.where(np.nan_to_num(said) >= 0.5, 1 + (n > 0), 0) for n, said in enumerate(lanes.values())]
        )
        cells = go.Heatmap(
            x=x,
            y=list(lanes),
            z=marks,
            zmin=0,
            zmax=2,
            ygap=2,
            showscale=False,
            colorscale=[[0, "#f1f3f4"], [0.5, _TRUTH], [1, _GUESS]],
            hovertemplate="%{x|%H:%M} %{y}<extra></extra>",
        )
        figure.add_trace(cells, row, 1)
    look.head_panels(figure)
    figure.update_xaxes(**axis)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    lanes_each = max(len(lanes) for lanes in panels.values())
    height = 60 + rows * (40 + 20 * lanes_each)
    return look.figure_of(figure, "True and read", height).update_layout(hovermode="closest")


def _legend_below(figure: go.Figure) -> go.Figure:
    """Put the legend under the hours of the axis, where a narrow screen has room for its rows."""
    plot_px = figure.layout.height - _TOP_PX - _FOOT_PX
    return figure.update_layout(legend_y=-_HOURS_PX / plot_px, legend_yanchor="top", margin_b=_FOOT_PX)


def _likely(x: Any, probability: FloatArray, name: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=np.round(probability * 100),
        name=look.readable(name),
        mode="lines",
        line={"color": COLOURS.get(name, look.METER), "width": 1, "shape": "hv"},
        fill="tozeroy",
        hovertemplate="%{y:.0f} %",
    )


def _key(name: str, colour: str) -> go.Scatter:
    """Make an entry of the legend without a line of its own."""
    marker = {"color": colour, "size": 11, "symbol": "square"}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, hoverinfo="skip")


def _words(shown: FloatArray, names: Sequence[str]) -> npt.NDArray[Any]:
    words = np.array([*(look.readable(name) for name in names), "unknown"], dtype=object)
    return np.asarray(words[np.where(np.isnan(shown), len(names), shown).astype(int)])


def _hour_axis() -> dict[str, Any]:
    return {
        "range": [0, 24],
        "tickvals": _HOURS,
        "ticktext": ["0\u00a0h", "6", "12", "18"],
        "showgrid": False,
    }
