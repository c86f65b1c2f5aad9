"""Figures for a buyer: what batteries of many sizes hide, and one day of a veiled meter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from meterveil.core.arrays import FloatArray
from meterveil.plots import look

_ROW_PX = 40
_PANEL_PX = 80
_COLOURS = {0.9: "#56B4E9", 1.7: "#b9dff5", 2.4: "#fdf3d8", 3.2: "#f3c06b", 4.2: "#D55E00"}
"""Decimal logarithm of the bits of a day -> colour."""
_YOURS, _ENOUGH = "#202124", "#009E73"


class Cell(NamedTuple):
    """One battery in the chart."""

    capacity_kwh: float
    power_kw: float
    bits: float
    missed_minutes: float
    mark: str = ""
    """`yours`, `enough` or nothing."""


def battery_figure(panels: Mapping[str, Sequence[Cell]], title: str = "") -> go.Figure:
    """Draw capacity against power, one panel for each title: colour and bold figure are bits, then minutes missed."""
    capacities = sorted({cell.capacity_kwh for cells in panels.values() for cell in cells})
    powers = sorted({cell.power_kw for cells in panels.values() for cell in cells})
    height = _ROW_PX * len(capacities)
    figure = look.stacked(look.bold(panels), _PANEL_PX / ((height + _PANEL_PX) * len(panels)))
    for row, cells in enumerate(panels.values(), start=1):
        ordered = sorted(cells, key=lambda cell: bool(cell.mark))  # a marked border lies above its neighbours
        figure.add_trace(_cells(ordered, capacities, powers), row, 1)
    kwh, kw = ([f"{part:g}\u00a0{unit}" for part in parts] for parts, unit in ((capacities, "kWh"), (powers, "kW")))
    figure.update_yaxes(tickvals=[*range(len(kwh))], ticktext=kwh, range=[-0.6, len(kwh) - 0.4], showgrid=False)
    figure.update_xaxes(tickvals=[*range(len(kw))], ticktext=kw, range=[-0.6, len(kw) - 0.4], showgrid=False)
    figure.update_yaxes(zeroline=False)
    whole = look.figure_of(figure, title, (height + _PANEL_PX) * len(panels) + 60)
    return whole.update_layout(showlegend=False, hovermode="closest", bargap=0, margin_t=80 if title else 40)


def _cells(cells: Sequence[Cell], capacities: Sequence[float], powers: Sequence[float]) -> go.Bar:
    colours = {"yours": _YOURS, "enough": _ENOUGH, "": "white"}
    return go.Bar(
        orientation="h",
        y=[capacities.index(cell.capacity_kwh) for cell in cells],
        base=[powers.index(cell.power_kw) - 0.47 for cell in cells],
        x=[0.94] * len(cells),
        width=0.9,
        marker={
            "color": [look.mixed(float(np.log10(max(cell.bits, 1.0))), _COLOURS) for cell in cells],
            "line": {
                "width": [3.5 if cell.mark else 0 for cell in cells],
                "color": [colours[cell.mark] for cell in cells],
            },
        },
        text=[f"<b>{cell.bits:,.0f}</b><br>{_minutes(cell.missed_minutes)}" for cell in cells],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": 11, "color": look.INK},
        constraintext="none",
        customdata=[[f"{cell.capacity_kwh:g} kWh, {cell.power_kw:g} kW"] for cell in cells],
        hovertemplate="%{customdata[0]}: bits a day, minutes missed<br>%{text}<extra></extra>",
    )


def _minutes(minutes: float) -> str:
    return f"{minutes:.1f} min" if 0.05 <= minutes < 9.95 else f"{minutes:,.0f} min"


def veiled_day_figure(minutes: pd.DatetimeIndex, load_w: FloatArray, meter_w: FloatArray, title: str) -> go.Figure:
    """Draw one day: what the meter shows today, and what it would show with the battery."""
    figure = go.Figure()
    x = look.time_axis(figure, minutes)
    figure.add_traces(
        [*look.area(x, load_w, "today", look.LOAD), look.line(x, meter_w, "with the battery", look.METER)]
    )
    figure.update_yaxes(**look.WATTS)
    return look.figure_of(figure, title, 340)
