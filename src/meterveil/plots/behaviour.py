"""Picture of what defences do with their day: charge, budget and disturbance by the hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look


class Hours(NamedTuple):
    """What a battery does in each hour of a day, (24,) each, mean over days; and the sums of a day."""

    soc: FloatArray
    budget_left: FloatArray  # share of the day's throughput
    rms_w: FloatArray
    spent_hour: float  # when the budget is used up, median; 24 where it is not
    net_kwh: float  # charged more than discharged
    soc_end: float


def hours_figure(defences: Mapping[str, Hours], title: str) -> go.Figure:
    """Draw a line for each defence in three panels."""
    panels = make_subplots(
        3,
        1,
        shared_xaxes=True,
        vertical_spacing=0.09,
        subplot_titles=("<b>Battery charge</b>", "<b>Budget left</b>", "<b>RMS power of the battery</b>"),
    )
    colours = look.colours_of(list(defences))
    for name, hours in defences.items():
        for row, values in enumerate((hours.soc, hours.budget_left, hours.rms_w), start=1):
            drawn = go.Scatter(
                x=list(range(25)), y=[*values, values[-1]], name=name, legendgroup=name, mode="lines"
            )
            drawn.update(showlegend=row == 1, line={"color": colours[name], "width": 2, "shape": "hv"})
            panels.add_trace(drawn, row, 1)
    panels.update_yaxes(tickformat=".0%", range=[0, 1], row=1)
    panels.update_yaxes(tickformat=".0%", range=[0, 1], row=2)
    panels.update_yaxes(**look.WATTS, rangemode="tozero", row=3)
    panels.update_xaxes(
        range=[0, 24], tickvals=list(range(0, 25, 3)), ticktext=[f"{hour:02d}:00" for hour in range(0, 25, 3)]
    )
    look.head_panels(panels)
    figure = look.figure_of(panels, title, 760)
    return figure.update_layout(margin_t=120, legend_y=1.06)
