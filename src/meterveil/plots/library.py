"""Figure of the signatures that a battery can replay."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.core.decoys import Library
from meterveil.plots import look

_COLUMNS = 2
_ROW_PX = 165
_GAP_PX = 60
"""Space between rows of panels, for headings of two lines."""
_WIDTH_MIN = 35
"""Width of a panel; the paper pads every signature to this length."""


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
