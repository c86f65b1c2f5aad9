"""Page, tables and figures of a record: a day with every appliance, and the share of known minutes."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.data import outputs
from meterveil.data.coverage import (
    LITTLE_KNOWN,
    Channel,
    all_channels,
    by_day,
    channels,
    general_notes,
    longest_gaps,
    silent_channels,
)
from meterveil.data.household import FloatArray, Household
from meterveil.plots import look
from meterveil.plots.html import Section, page

_PANEL_PX = 104
_LEAST_RANGE_W = 10.0
"""Smallest range of an axis, so that standby noise looks like zero."""
_KNOWN_COLOURS = {0.0: "#f1f3f4", 0.01: "#D55E00", 50.0: "#F5C09A", 90.0: "#A9CFE6", 100.0: look.METER}
"""Percent of known minutes -> colour: grey for none, orange for few, and a step between most and all."""


def write_household(household: Household, day: date | None, folder: Path) -> Path:
    """Write the page; without a day, as in a record that holds no whole one, it shows the whole record."""
    part = household.day(day) if day else household
    first, last = part.minutes[0], part.minutes[-1]
    words = "".join(letter if letter.isalnum() else "-" for letter in household.name.lower())
    name = f"{words}-{first.date()}.html"
    outputs.folder(folder, [name])
    silent = ", ".join(silent_channels(part)).replace("_", " ")
    missing = f"No reading: {silent}." if silent else ""
    heading = f"{first:%A %d %B %Y}" if day else f"{first:%d %B %Y %H:%M} to {last:%d %B %Y %H:%M}"
    sections = [
        Section(heading, missing, (), household_figure(part, heading)),
        Section("Known minutes of every day", "", channel_rows(household), coverage_figure(household)),
    ]
    intro = look.sentences([f"Times are local, {household.timezone}", *general_notes(household)])
    return outputs.write_text(folder / name, page(household.name, sections, intro))


def channel_rows(household: Household) -> list[list[str]]:
    """Describe every channel, the head of the table first."""
    rows = [["channel", "known", "unit", "energy/day", "notes"]]
    for channel in channels(household):
        notes = "; ".join(channel.notes)
        rows.append([channel.name, f"{channel.coverage:.1%}", channel.unit, _energy(channel), notes])
    return rows


def gap_rows(household: Household) -> list[list[str]]:
    """List the longest gaps, the head of the table first."""
    rows = [["channels", "from", "minutes"]]
    total = len(household.appliances_w) + 1
    for gap in longest_gaps(household):
        first, others = gap.channels[0], len(gap.channels) - 1
        who = "all" if others + 1 == total > 1 else f"{first} and {others} more" if others else first
        rows.append([who, f"{gap.start:%Y-%m-%d %H:%M}", f"{gap.minutes:,}"])
    return rows


def household_figure(part: Household, when: str) -> go.Figure:
    """Draw a day: the aggregate on top, below it every appliance with a reading."""
    known = {name: watts for name, watts in all_channels(part).items() if not np.all(np.isnan(watts))}
    titles = [_panel_title(part, name, watts) for name, watts in known.items()]
    rows = max(len(known), 1)
    gap = 34 / (_PANEL_PX * rows)
    panels = look.stacked(titles or [""], min(gap, 0.9 / rows), shared_xaxes=True)
    x = look.time_axis(panels, part.minutes, last_row=rows)
    colours = look.colours_of(list(part.appliances_w))
    for row, (name, watts) in enumerate(known.items(), start=1):
        colour = colours.get(name, "#5f6368")
        panels.add_traces(look.area(x, watts, look.readable(name), colour), row, 1)
        panels.update_yaxes(range=_range_w(watts), ticksuffix=part.units.get(name, "W"), row=row)
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
    figure = look.figure_of(go.Figure([strips, key]), f"{household.name}: known minutes", 130 + 24 * len(names))
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


def _energy(channel: Channel) -> str:
    """Write the energy per day, or the energy of the known days where these are few."""
    unit = f"k{channel.unit}h"
    if channel.known_days == 0:
        return ""
    if channel.coverage >= LITTLE_KNOWN:
        return f"{channel.energy_kwh_per_day:.2f}\u00a0{unit}"
    energy_kwh = channel.energy_kwh_per_day * channel.known_days
    return f"{energy_kwh:.2f}\u00a0{unit} in {channel.known_days:.1f}\u00a0days".replace(" ", "\u00a0")
