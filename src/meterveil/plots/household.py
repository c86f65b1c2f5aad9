"""Figures of a record: a day with every appliance, and the share of known minutes."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.data.coverage import all_channels, by_day
from meterveil.data.household import FloatArray, Household
from meterveil.plots import look

_PANEL_PX = 104
_LEAST_RANGE_W = 10.0
"""Smallest range of an axis, so that standby noise looks like zero."""
_KNOWN_COLOURS = {0.0: "#f1f3f4", 0.01: "#D55E00", 50.0: "#F5C09A", 90.0: "#A9CFE6", 100.0: look.METER}
"""Percent of known minutes -> colour: grey for none, orange for few, and a step between most and all."""


def household_figure(part: Household, when: str) -> go.Figure:
    """Draw a day: the aggregate on top, below it every appliance with a reading."""
    known = {name: watts for name, watts in all_channels(part).items() if not np.all(np.isnan(watts))}
    titles = [_panel_title(part, name, watts) for name, watts in known.items()]
    rows = max(len(known), 1)
    gap = 34 / (_PANEL_PX * rows)
    panels = make_subplots(
        rows, 1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=min(gap, 0.9 / rows)
    )
    x = look.time_axis(panels, part.minutes, last_row=rows)
    colours = look.colours_of(list(part.appliances_w))
    for row, (name, watts) in enumerate(known.items(), start=1):
        colour = colours.get(name, "#5f6368")
        panels.add_traces(look.area(x, watts, look.readable(name), colour), row, 1)
        panels.update_yaxes(range=_range_w(watts), ticksuffix=part.units.get(name, "W"), row=row)
    look.head_panels(panels)
    panels.update_yaxes(nticks=4, tickformat=look.WATTS["tickformat"])
    figure = look.figure_of(panels, f"{part.name}, {when}", 106 + _PANEL_PX * rows)
    return figure.update_layout(showlegend=False, hovermode="x", margin_b=56)


def coverage_figure(household: Household) -> go.Figure:
    """Draw the share of known minutes of each day, one row per channel."""
    days, known = by_day(household)
    names = [look.readable(name) for name in all_channels(household)]
    edges = np.array([*days, days[-1] + timedelta(days=1)], dtype="datetime64[D]")
    hover = "%{y}<br>from %{base|%a %d %b %Y}: %{customdata:.1f} % known<extra></extra>"
    strips = look.strips(names, edges, np.round(known * 100, 1), _KNOWN_COLOURS, hover)
    scale = [[share / 100, colour] for share, colour in _KNOWN_COLOURS.items()]
    bar = {"ticksuffix": " %", "thickness": 8, "len": 1.0, "nticks": 4}
    marker = {"color": [0], "cmin": 0, "cmax": 100, "colorscale": scale, "showscale": True, "colorbar": bar}
    key = go.Scatter(x=[None], y=[None], mode="markers", marker=marker, showlegend=False)
    figure = look.figure_of(
        go.Figure([strips, key]), f"{household.name}: known minutes", 130 + 24 * len(names)
    )
    figure.update_yaxes(**look.strip_axis(names))
    figure.update_xaxes(type="date", range=[edges[0], edges[-1]], tickangle=0, nticks=4, showgrid=False)
    figure.update_xaxes(tickformat="%b\n%Y" if len(days) > 60 else "%d %b\n%Y")
    return figure.update_layout(hovermode="closest", margin_b=60)


def _panel_title(part: Household, name: str, watts: FloatArray) -> str:
    unit = part.units.get(name, "W")
    energy_kwh = float(np.nansum(watts)) * KWH_PER_W_MINUTE
    return f"<b>{look.readable(name)}</b> ({unit}), {energy_kwh:.2f} k{unit}h"


def _range_w(watts: FloatArray) -> list[float]:
    low, high = float(np.nanmin(watts)), float(np.nanmax(watts))
    return [min(low * 1.05, 0.0), max(high * 1.08, _LEAST_RANGE_W)]
