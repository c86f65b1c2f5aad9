"""Figures of an audit: all days, habits by hour and weekday, one day, and predictions beside the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
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
"""State or appliance -> colour; of several at the same time, the last in this order is shown."""

_HABIT_COLUMNS = 2
_HOUR_AXIS = {
    "range": [0, 24],
    "tickvals": [0, 6, 12, 18],
    "ticktext": ["0\u00a0h", "6", "12", "18"],
    "showgrid": False,
}
_TOP_PX, _HOURS_PX, _FOOT_PX = 30, 52, 122
"""Space above a figure, for its hours, and for hours and legend together."""
_OFF, _TRUTH, _GUESS = "#f1f3f4", "#202124", "#D55E00"


def days_at_a_glance_figure(days: Sequence[date], shown: FloatArray, names: Sequence[str]) -> go.Figure:
    """Draw a row for each day, midnight to midnight; `shown` is (day, slot) of positions in `names`."""
    colours = [COLOURS[name] for name in names]
    labels = [f"{day:%a %d %b}" for day in days]
    edges = np.linspace(0.0, 24.0, shown.shape[1] + 1)
    grid = look.strips(labels, edges, shown, dict(enumerate(colours)), "%{y}: %{text}<extra></extra>")
    grid.update(text=[look.readable(names[int(place)]) for place in grid.customdata], textposition="none")
    keys = [_key(look.readable(name), colour) for name, colour in zip(names, colours, strict=True)]
    figure = look.figure_of(go.Figure([grid, *keys]), "Every day", 150 + 16 * len(days))
    figure.update_yaxes(**look.strip_axis(labels), nticks=max(len(days) // 2, 4))
    figure.update_xaxes(**_HOUR_AXIS)
    return _legend_below(figure.update_layout(hovermode="closest"))


def habits_figure(panels: Mapping[str, tuple[str, FloatArray]]) -> go.Figure:
    """Draw a map by hour and weekday for each name -> (unit, (7, 24) means)."""
    rows = math.ceil(len(panels) / _HABIT_COLUMNS)
    spacing = {"horizontal_spacing": 0.05, "vertical_spacing": 0.3 / rows}
    figure = make_subplots(rows, _HABIT_COLUMNS, subplot_titles=look.bold(panels), shared_yaxes=True, **spacing)
    weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    for number, (name, (unit, means)) in enumerate(panels.items()):
        top = float(np.nanmax(means)) if np.any(np.nan_to_num(means) > 0) else 1.0
        scale = {0.0: "#f7f8f9", top: COLOURS.get(name, look.METER)}
        hover = f"%{{y}} from %{{base}} h: %{{customdata:.2f}} {unit}<extra>{look.readable(name)}</extra>"
        cells = look.strips(weekdays, np.arange(25), np.round(means, 3), scale, hover)
        figure.add_trace(cells, number // _HABIT_COLUMNS + 1, number % _HABIT_COLUMNS + 1)
    figure.update_annotations(font_size=13)
    figure.update_xaxes(**_HOUR_AXIS)
    figure.update_yaxes(**look.strip_axis(weekdays))
    return look.figure_of(figure, "Habits", 70 + 200 * rows).update_layout(hovermode="closest")


def audited_day_figure(
    minutes: pd.DatetimeIndex,
    reading_w: FloatArray,
    probability: Mapping[str, FloatArray],
    quiet: Sequence[tuple[str, int, int]],
) -> go.Figure:
    """Draw one day: the meter, with sleep and absence shaded, and the probability of each appliance."""
    height, sizes = 300 + 84 * len(probability), [2.6, *[0.7] * len(probability)]
    headings = look.bold(["What the meter shows", *probability])
    panels = look.stacked(headings, 30 / height, shared_xaxes=True, row_heights=sizes)
    x = look.time_axis(panels, minutes, last_row=len(headings))
    panels.add_traces(look.area(x, reading_w, "meter", "#5f6368"), 1, 1)
    for row, (name, likely) in enumerate(probability.items(), start=2):
        panels.add_trace(_likely(x, likely, name), row, 1)
        panels.update_yaxes(range=[0, 105], tickvals=[0, 100], ticktext=["0", "100 %"], row=row)
    shade = {"opacity": 0.55, "line_width": 0, "layer": "below", "row": 1, "col": 1}
    for state, start, end in quiet:
        panels.add_vrect(x0=x[start], x1=x[min(end, len(x) - 1)], fillcolor=COLOURS[state], **shade)
    for state in dict.fromkeys(state for state, _, _ in quiet):
        panels.add_trace(_key(f"seems {state}", COLOURS[state]), 1, 1)
    panels.update_yaxes(**look.WATTS, row=1)
    figure = look.figure_of(panels, f"{minutes[0]:%A %d %B %Y}", height)
    figure.for_each_trace(lambda trace: trace.update(showlegend=bool(trace.name.startswith("seems"))))
    return _legend_below(figure)


def agreement_figure(minutes: pd.DatetimeIndex, panels: Mapping[str, Mapping[str, FloatArray]]) -> go.Figure:
    """Draw for each appliance when it was on (first lane), and when by each attacker."""
    rows = len(panels)
    figure = look.stacked(look.bold(panels), 0.3 / rows, shared_xaxes=True)
    x = look.time_axis(figure, minutes, last_row=rows)
    edges = np.append(x, x[-1] + np.timedelta64(1, "m"))
    scale, hover = {0.0: _OFF, 1.0: _TRUTH, 2.0: _GUESS}, "%{base|%H:%M} %{y}<extra></extra>"
    for row, lanes in enumerate(panels.values(), start=1):
        on = np.nan_to_num(np.stack(list(lanes.values()))) >= 0.5
        marks = np.where(on, 2.0, 0.0)
        marks[0] /= 2.0  # the truth
        figure.add_trace(look.strips(list(lanes), edges, marks, scale, hover), row, 1)
        figure.update_yaxes(**look.strip_axis(list(lanes)), row=row)
    lanes_each = max(len(lanes) for lanes in panels.values())
    height = 76 + rows * (40 + 20 * lanes_each)
    return look.figure_of(figure, "True and read", height).update_layout(hovermode="closest", margin_b=56)


def _legend_below(figure: go.Figure) -> go.Figure:
    """Put the legend below the axis, where a narrow screen has room for several rows."""
    plot_px = figure.layout.height - _TOP_PX - _FOOT_PX
    return figure.update_layout(legend_y=-_HOURS_PX / plot_px, legend_yanchor="top", margin_b=_FOOT_PX)


def _likely(x: Any, probability: FloatArray, name: str) -> go.Scatter:
    line = look.line(x, probability * 100, look.readable(name), COLOURS.get(name, look.METER))
    return line.update(line_width=1, fill="tozeroy", hovertemplate="%{y:.0f} %")


def _key(name: str, colour: str) -> go.Scatter:
    """Return an entry of the legend without data."""
    marker = {"color": colour, "size": 11, "symbol": "square"}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=name, hoverinfo="skip")
