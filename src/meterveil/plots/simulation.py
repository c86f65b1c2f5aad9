"""Figures of a simulation: load, meter, battery and charge of a day, many days, and the signatures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import BoolArray, FloatArray, runs
from meterveil.core.decoys import Library
from meterveil.data.simulation import Run, figures
from meterveil.plots import look

_COLUMNS = 2
_ROW_PX = 165
_GAP_PX = 60
"""Space between rows of panels, for headings of two lines."""
_WIDTH_MIN = 35
"""Width of a panel; the paper pads every signature to this length."""


def day_figure(run: Run) -> go.Figure:
    """Draw a day: load and meter, battery power by decoy, state of charge and budget."""
    titles = (
        "<b>What the meter shows</b>",
        "<b>Battery power</b> (up charges, down discharges)",
        "<b>State of charge</b>, and budget left today",
    )
    panels = look.stacked(titles, 0.085, shared_xaxes=True, row_heights=[0.42, 0.33, 0.25])
    x = look.time_axis(panels, run.minutes, last_row=3)
    for trace in load_and_meter(run, x):
        panels.add_trace(trace, 1, 1)
    for trace in _battery_bars(run, x):
        panels.add_trace(trace, 2, 1)
    for trace in _charge_lines(run, x):
        panels.add_trace(trace, 3, 1)
    _mark_gaps(panels, run, x)
    panels.update_yaxes(**look.WATTS)
    panels.update_yaxes(tickformat="", ticksuffix=" %", range=[-3, 103], row=3)
    figure = look.figure_of(panels, f"{run.household}, {run.minutes[0]:%d %B %Y}: {run.defence}", 860)
    return figure.update_layout(legend_y=-0.09, legend_yanchor="top", margin_b=160)


def days_figure(run: Run) -> go.Figure:
    """Draw the energy moved on each day, and the state of charge at midnight."""
    days = run.days()
    rows = [figures(run.day(day)) for day in days]
    titles = ("<b>Energy moved</b> (in and out)", "<b>State of charge</b> at midnight")
    panels = look.stacked(titles, 0.14, shared_xaxes=True)
    moved = go.Bar(x=days, y=[row.throughput_kwh for row in rows], marker_color=look.METER, name="moved")
    soc = go.Scatter(
        x=days, y=[row.soc_end * 100 for row in rows], name="charge", mode="lines+markers", line_color=look.SOC
    )
    panels.add_trace(moved, 1, 1)
    panels.add_trace(soc, 2, 1)
    panels.update_yaxes(ticksuffix=" kWh", row=1)
    panels.update_yaxes(ticksuffix=" %", range=[0, 100], row=2)
    panels.update_xaxes(type="date", tickformat="%d %b\n%Y")
    figure = look.figure_of(panels, f"{run.household}: {run.defence}, {len(days)} days", 460)
    return figure.update_layout(showlegend=False, bargap=0.15)


def load_and_meter(run: Run, x: Any) -> tuple[go.Scatter, go.Scatter, go.Scatter]:
    """Draw the load as a grey area with its outline, and the meter as a line."""
    load = look.area(x, run.load_w, "load", look.LOAD)
    return (*load, look.line(x, run.meter_w, "meter", look.METER))


def _battery_bars(run: Run, x: Any) -> list[go.Bar]:
    """Draw battery power in the colour of the replayed signature; other power in grey."""
    names = np.array([*run.setup.library.names, ""])[run.decoy]
    colours = look.colours_of(list(dict.fromkeys(run.setup.library.names)))
    moving = run.battery_w != 0
    groups = {f"decoy: {look.readable(name)}": (names == name, colour) for name, colour in colours.items()}
    groups["holding the meter"] = (names == "", "#5f6368")
    return [
        _bars(run, x, label, mask & moving, colour) for label, (mask, colour) in groups.items() if np.any(mask & moving)
    ]


def _bars(run: Run, x: Any, label: str, mask: BoolArray, colour: str) -> go.Bar:
    return go.Bar(
        x=look.milliseconds(x[mask]),
        y=look.whole(run.battery_w[mask]),
        name=label,
        width=look.MINUTE_MS,
        offset=0,
        marker={"color": colour, "line": {"width": 0.5, "color": colour}},
        hovertemplate="%{y:,.0f} W",
    )


def _charge_lines(run: Run, x: Any) -> list[go.Scatter]:
    battery = run.setup.battery
    lines = [_percent(x, run.soc, "state of charge", look.SOC, "solid")]
    if np.isfinite(battery.budget_kwh):
        left = run.budget_left_kwh() / battery.budget_kwh
        lines.append(_percent(x, left, f"budget left of {battery.budget_kwh:g} kWh", look.BUDGET, "dot"))
    for bound in (battery.soc_min, battery.soc_max):
        limit = _percent(x, np.full(2, float(bound)), "limits of charge", "#9aa0a6", "dash")
        limit.update(dx=(len(x) - 1) * look.MINUTE_MS, line_width=1)
        lines.append(limit.update(showlegend=False, hoverinfo="skip", hovertemplate=None))
    return lines


def _percent(x: Any, share: FloatArray, name: str, colour: str, dash: str) -> go.Scatter:
    return go.Scatter(
        **look.minutes_of(x),
        y=np.round(share * 100, 2).astype(np.float32),
        name=name,
        mode="lines",
        line={"color": colour, "width": 2, "dash": dash},
        hovertemplate="%{y:.0f} %",
    )


def _mark_gaps(panels: go.Figure, run: Run, x: Any) -> None:
    """Shade minutes without a reading, in which the battery idles."""
    for number, (start, end) in enumerate(zip(*runs(np.isnan(run.load_w)), strict=True)):
        for row in (1, 2, 3):
            panels.add_vrect(
                x0=x[start],
                x1=x[end - 1] + np.timedelta64(1, "m"),
                fillcolor=look.GAP,
                opacity=0.35,
                line_width=0,
                layer="below",
                row=row,
                col=1,
                name="no reading: battery idles",
                showlegend=number == 0 and row == 1,
            )


def library_figure(library: Library, origins: Sequence[str] = ()) -> go.Figure:
    """Draw every signature on axes of the same scale, coloured by appliance.

    `origins` names the place where each signature was recorded.
    """
    signatures = library.signatures()
    rows = math.ceil(len(signatures) / _COLUMNS)
    panels = make_subplots(
        rows,
        _COLUMNS,
        shared_xaxes="all",
        shared_yaxes="all",
        subplot_titles=_headings(signatures, origins),
        vertical_spacing=_GAP_PX / (_ROW_PX * rows),
        horizontal_spacing=0.06,
    )
    colours = look.colours_of(list(dict.fromkeys(library.names)))
    for number, (name, watts) in enumerate(signatures):
        bars = go.Bar(
            x=np.arange(len(watts)) + 0.5,
            y=watts,
            marker={"color": colours[name], "line": {"width": 0}},
            hovertemplate="minute %{x:.0f}: %{y:,.0f} W<extra></extra>",
        )
        panels.add_trace(bars, number // _COLUMNS + 1, number % _COLUMNS + 1)
    panels.update_yaxes(**look.WATTS, range=[0, 1.05 * float(library.watts.max())])
    panels.update_annotations(font_size=12)
    panels.update_xaxes(title_text="minutes", row=rows)
    panels.update_xaxes(range=[0, max(_WIDTH_MIN, int(library.lengths.max()))])
    figure = look.figure_of(panels, f"Signature library ({library.source})", 100 + _ROW_PX * rows)
    return figure.update_layout(showlegend=False, hovermode="closest", margin_t=90)


def _headings(signatures: Sequence[tuple[str, FloatArray]], origins: Sequence[str]) -> list[str]:
    """Write the heading of each panel in two lines that fit half a phone."""
    heads = []
    for number, (name, watts) in enumerate(signatures):
        origin = f", {origins[number]}" if number < len(origins) and origins[number] else ""
        extent = f"{len(watts)} min, median {np.median(watts):,.0f} W"
        heads.append(f"<b>{look.readable(name)}</b>{origin}<br>{extent}")
    return heads
