"""A picture of the signatures that a battery can replay."""

from __future__ import annotations

import math

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.decoys import Library
from meterveil.plots import look

_COLUMNS = 2
_ROW_PX = 150


def library_figure(library: Library) -> go.Figure:
    """Draw every signature on axes of the same scale, coloured by appliance."""
    signatures = library.signatures()
    rows = math.ceil(len(signatures) / _COLUMNS)
    titles = [f"<b>{look.readable(name)}</b>" for name, _ in signatures]
    panels = make_subplots(
        rows,
        _COLUMNS,
        shared_xaxes="all",
        shared_yaxes="all",
        subplot_titles=titles,
        vertical_spacing=0.36 / rows,
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
    panels.update_yaxes(**look.WATTS)
    panels.update_annotations(font_size=13)
    panels.update_xaxes(title_text="minutes", row=rows)
    figure = look.figure_of(panels, f"Signature library ({library.source})", 100 + _ROW_PX * rows)
    return figure.update_layout(showlegend=False, hovermode="closest")
