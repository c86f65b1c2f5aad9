"""How attackers adapt to a defence: their score against how much they learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look
from meterveil.plots.attack import COLOURS, METRICS, Score, colour, label


def adaptive_figure(
    steps: str,
    curves: Mapping[str, Mapping[str, Mapping[int, Score]]],
    clean: Mapping[str, Mapping[str, float]],
    prior: Mapping[str, float],
    title: str = "",
) -> go.Figure:
    """Draw a panel for each metric: every attacker's score against the copies or epochs it learned from.

    `curves` is metric -> attacker -> steps -> score. Dotted is the same attacker on the bare meter, grey is
    the prior, under which no defence can push an adaptive attacker.
    """
    shown = [metric for metric in METRICS if curves.get(metric)]
    panels = make_subplots(1, len(shown), subplot_titles=[f"<b>{METRICS[m]}</b>" for m in shown])
    ticks = sorted({step for lines in curves.values() for line in lines.values() for step in line})
    for column, metric in enumerate(shown, start=1):
        for name, line in curves[metric].items():
            panels.add_trace(_curve(name, line, ticks, column == 1), 1, column)
            if name in clean.get(metric, {}):
                bare = _level(f"{label(name)} without defence", clean[metric][name], ticks, "dot")
                panels.add_trace(bare.update(line_color=colour(name), showlegend=column == 1), 1, column)
        if metric in prior:
            floor = _level("prior (never looks)", prior[metric], ticks, "dash")
            panels.add_trace(floor.update(line_color=COLOURS["prior"], showlegend=column == 1), 1, column)
    panels.update_annotations(font_size=13)
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickvals=list(range(len(ticks))), ticktext=[str(step) for step in ticks])
    panels.update_xaxes(title={"text": steps, "font": {"size": 13}, "standoff": 6})
    figure = look.figure_of(panels, title, 440)
    return figure.update_layout(legend_y=-0.24, legend_yanchor="top", margin_b=130, hovermode="closest")


def _curve(name: str, line: Mapping[int, Score], ticks: Sequence[int], is_first: bool) -> go.Scatter:
    return go.Scatter(
        x=[ticks.index(step) for step in sorted(line)],
        y=[line[step].value for step in sorted(line)],
        error_y={"array": [line[step].spread for step in sorted(line)], "thickness": 1, "width": 3},
        name=label(name),
        legendgroup=name,
        showlegend=is_first,
        mode="lines+markers",
        line={"color": colour(name), "width": 2},
        hovertemplate="%{y:.3g}",
    )


def _level(name: str, value: float, ticks: Sequence[int], dash: str) -> go.Scatter:
    return go.Scatter(
        x=[-0.25, len(ticks) - 0.75],
        y=[value] * 2,
        name=name,
        legendgroup=name,
        mode="lines",
        line={"width": 1.5, "dash": dash},
        hovertemplate="%{y:.3g}",
    )
