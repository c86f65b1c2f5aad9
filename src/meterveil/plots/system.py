"""The system in one drawing: who adds to the meter, who reads it, and what teaches the defender."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from meterveil.plots import look

_HALF_WIDTH, _HALF_HEIGHT = 0.85, 0.32
_BOXES: dict[str, tuple[float, float, str]] = {
    "household<br>load": (1.0, 3.0, look.LOAD),
    "smart meter<br>the sum": (3.2, 3.0, look.METER),
    "attacker<br>(NILM)": (5.4, 3.0, look.BUDGET),
    "battery<br>in its limits": (3.2, 1.7, look.SOC),
    "defender<br>when, which": (1.0, 1.7, look.DECOY),
    "signatures<br>to replay": (1.0, 0.4, look.HIDDEN),
    "probe<br>teaches only": (5.4, 1.7, "#5f6368"),
}
"""Words -> centre and colour."""

_ARROWS: tuple[tuple[float, float, float, float], ...] = (
    (1.85, 3.0, 2.35, 3.0),
    (4.05, 3.0, 4.55, 3.0),
    (3.2, 2.02, 3.2, 2.68),
    (1.85, 1.7, 2.35, 1.7),
    (1.0, 2.68, 1.0, 2.02),
    (1.0, 0.72, 1.0, 1.38),
    (4.05, 2.75, 4.75, 2.02),
)
"""From x, y to x, y."""


def system_figure() -> go.Figure:
    """Draw how a defended meter comes about; the lowest arrow bends back to the defender as its reward."""
    figure = go.Figure()
    for words, (x, y, colour) in _BOXES.items():
        figure.add_shape(**_box(x, y, colour))
        figure.add_annotation(x=x, y=y, text=words, showarrow=False, font_size=12)
    for x0, y0, x1, y1 in _ARROWS:
        figure.add_annotation(**_arrow(x0, y0, x1, y1))
    figure.add_shape(
        type="path", path="M 5.4,1.38 L 5.4,0.9 L 1.6,0.9", line={"color": "#5f6368", "dash": "dot"}
    )
    figure.add_annotation(**_arrow(1.6, 0.9, 1.6, 1.38))
    figure.add_annotation(
        x=3.9, y=0.9, text="reward, while training", yshift=10, showarrow=False, font_size=12
    )
    hidden = {"visible": False, "fixedrange": True}
    figure.update_xaxes(range=[0.05, 6.35], **hidden).update_yaxes(range=[0, 3.4], **hidden)
    return look.figure_of(figure, "The system", 330).update_layout(margin={"l": 4, "r": 4, "b": 4})


def _box(x: float, y: float, colour: str) -> dict[str, Any]:
    edges = {"x0": x - _HALF_WIDTH, "x1": x + _HALF_WIDTH, "y0": y - _HALF_HEIGHT, "y1": y + _HALF_HEIGHT}
    return {"type": "rect", **edges, "line": {"color": colour, "width": 2}, "fillcolor": "white"}


def _arrow(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    ends = {"ax": x0, "ay": y0, "x": x1, "y": y1, "axref": "x", "ayref": "y", "xref": "x", "yref": "y"}
    return {**ends, "text": "", "showarrow": True, "arrowhead": 2, "arrowwidth": 1.5, "arrowcolor": look.INK}
