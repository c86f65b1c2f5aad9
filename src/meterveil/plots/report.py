"""Pictures of the report: the paper's figures beside measured ones, from numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look
from meterveil.plots.attack import label

PAPER = "#bdc1c6"
_ROW_PX = 210
_CASE_PX = 130
_CLOSE = 0.05
"""Share of the width within which points are named together: their names would cover each other."""

_UNMEASURED = "not measured here"
_HEADROOM = 1.4
"""How much higher than its bars a panel is in which words stand above them."""


class Pair(NamedTuple):
    """A figure of the paper and ours; None where either is missing."""

    paper: float | None
    ours: float | None


class Reading(NamedTuple):
    """What an attacker reads of a target without a defence and behind it, and behind the paper's."""

    raw: float | None
    masked: float | None
    paper: float | None


class Price(NamedTuple):
    """What a weight of privacy in the reward costs and gives."""

    name: str
    cost: float
    rmse_increase: float
    f1_reduction: float


def bars_figure(panels: Mapping[str, Mapping[str, Pair]], title: str = "") -> go.Figure:
    """Draw a panel for each metric: a bar for each row, the paper's beside it.

    `panels` is the metric in words -> row -> figures.
    """
    figure = make_subplots(
        len(panels), 1, shared_xaxes=True, vertical_spacing=0.14, subplot_titles=_bold(panels)
    )
    for row, pairs in enumerate(panels.values(), start=1):
        names = [_broken(look.readable(name)) for name in pairs]
        for words, colour, values in (
            ("paper", PAPER, [pair.paper for pair in pairs.values()]),
            ("measured", look.METER, [pair.ours for pair in pairs.values()]),
        ):
            if any(value is not None for value in values):
                bar = go.Bar(x=names, y=values, name=words, legendgroup=words, showlegend=row == 1)
                figure.add_trace(bar.update(marker_color=colour, hovertemplate="%{x}: %{y:.1f}"), row, 1)
    look.head_panels(figure)
    figure.update_xaxes(type="category", automargin=True, autotickangles=[0, 90])
    figure.update_yaxes(ticksuffix=" %")
    figure = look.figure_of(figure, title, 110 + _ROW_PX * len(panels))
    corner = {"x": 1, "xanchor": "right", "y": 1.01}
    return figure.update_layout(barmode="group", bargap=0.3, legend=corner, hovermode="closest")


def sensitivity_figure(
    panels: Mapping[str, Mapping[str, Mapping[float, Pair]]], title: str = ""
) -> go.Figure:
    """Draw a panel for each property of the battery: curves of every metric, the paper's dashed.

    `panels` is the property with its unit -> metric in words -> its value -> figures.
    """
    figure = make_subplots(len(panels), 1, vertical_spacing=0.1, subplot_titles=_bold(panels))
    for row, curves in enumerate(panels.values(), start=1):
        for colour, (metric, points) in zip((look.METER, look.BUDGET), curves.items(), strict=False):
            for words, dash, place in ((f"{metric}, measured", "solid", 1), (f"{metric}, paper", "dot", 0)):
                known = {x: y for x, pair in sorted(points.items()) if (y := pair[place]) is not None}
                if known:
                    figure.add_trace(_curve(known, words, colour, dash, row == 1), row, 1)
        figure.update_xaxes(tickvals=sorted(next(iter(curves.values()))), row=row, col=1)
    look.head_panels(figure)
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    return _below(look.figure_of(figure, title, 140 + _ROW_PX * len(panels)))


def pareto_figure(points: Sequence[Price], title: str = "") -> go.Figure:
    """Draw what each weight of privacy gives against what it costs; up and left is better."""
    figure = make_subplots(
        2, 1, shared_xaxes=True, vertical_spacing=0.12, subplot_titles=_bold(["RMSE Inc.", "F1 Red."])
    )
    ordered = sorted(points, key=lambda point: point.cost)
    for row, values in enumerate(
        ([point.rmse_increase for point in ordered], [point.f1_reduction for point in ordered]), start=1
    ):
        line = go.Scatter(
            x=[point.cost for point in ordered],
            y=values,
            text=_joint_names(ordered),
            customdata=[point.name for point in ordered],
            mode="lines+markers+text",
            textposition=["top right" if point is ordered[0] else "top left" for point in ordered],
            cliponaxis=False,
            marker={"size": 9, "color": look.METER},
            line={"color": look.METER, "width": 1.2, "dash": "dot"},
            hovertemplate="%{customdata}: %{y:.1f} at a cost of %{x:.3f}<extra></extra>",
            showlegend=False,
        )
        figure.add_trace(line, row, 1)
    look.head_panels(figure)
    figure.update_yaxes(ticksuffix=" %")
    figure.update_xaxes(title_text="neutral cost of a day", row=2, col=1)
    return look.figure_of(figure, title, 520).update_layout(hovermode="closest", margin_b=60)


def _joint_names(ordered: Sequence[Price]) -> list[str]:
    """Name each group of points that cost much the same at its first one, and the others not."""
    width = (ordered[-1].cost - ordered[0].cost) or 1.0
    groups: list[list[Price]] = []
    for point in ordered:
        is_near = bool(groups) and point.cost - groups[-1][0].cost < _CLOSE * width
        groups[-1:] = [[*groups[-1], point]] if is_near else [*groups[-1:], [point]]
    return [name for group in groups for name in (_together(group), *[""] * (len(group) - 1))]


def _together(group: Sequence[Price]) -> str:
    kind = group[0].name.rpartition(" ")[0]
    return f"{kind} {', '.join(sorted(point.name.rpartition(' ')[2] for point in group))}".strip()


def cases_figure(panels: Mapping[str, Mapping[str, Mapping[str, Reading]]], title: str = "") -> go.Figure:
    """Draw a row of panels for each target, a column for each metric: raw, masked, and the paper's masked.

    `panels` is the target -> metric in words -> attacker -> what it reads.
    """
    metrics = list(dict.fromkeys(metric for columns in panels.values() for metric in columns))
    figure = make_subplots(
        len(panels),
        len(metrics),
        subplot_titles=_case_titles(panels, metrics),
        shared_xaxes=True,
        vertical_spacing=0.28 / len(panels),
        horizontal_spacing=0.1,
    )
    shown: set[str] = set()
    for row, columns in enumerate(panels.values(), start=1):
        for column, metric in enumerate(metrics, start=1):
            readings = columns.get(metric, {})
            for bar in _case_bars(readings):
                figure.add_trace(bar.update(showlegend=bar.name not in shown), row, column)
                shown.add(bar.name)
            _say_unmeasured(figure, readings, row, column)
    figure.update_annotations(font_size=12)
    figure.update_xaxes(tickangle=-60, tickfont_size=11)
    figure.update_yaxes(rangemode="tozero", nticks=4, tickfont_size=11)
    figure = look.figure_of(figure, title, _CASE_PX * (1 + len(panels)))
    return _below(figure).update_layout(margin_b=120, legend_y=-100 / (_CASE_PX * len(panels)))


def _case_titles(panels: Mapping[str, Mapping[str, object]], metrics: Sequence[str]) -> list[str]:
    """Name each panel by its metric, the first of a row by its target too, and an empty one not at all."""
    first = metrics[0]
    heads = {(target, first): f"<b>{look.readable(target)}</b>, {first}" for target in panels}
    return [
        heads.get((target, metric), metric) if metric in columns else ""
        for target, columns in panels.items()
        for metric in metrics
    ]


def _say_unmeasured(figure: go.Figure, readings: Mapping[str, Reading], row: int, column: int) -> None:
    """Say above the paper's bars that there are none of ours, where none was measured."""
    papers = [one.paper for one in readings.values() if one.paper is not None]
    if not papers or any(one.raw is not None or one.masked is not None for one in readings.values()):
        return
    place = {"xref": "x domain", "yref": "y domain", "x": 0.5, "y": 1, "yanchor": "top"}
    figure.add_annotation(text=_UNMEASURED, showarrow=False, row=row, col=column, **place)
    figure.update_yaxes(range=[0, _HEADROOM * max(papers)], row=row, col=column)


def _case_bars(readings: Mapping[str, Reading]) -> list[go.Bar]:
    """Draw all three kinds, measured or not: bars keep their place and width from panel to panel."""
    if not readings:
        return []
    kinds = (
        ("without a defence", look.LOAD, [one.raw for one in readings.values()]),
        ("behind ours", look.METER, [one.masked for one in readings.values()]),
        ("behind the paper's", look.HIDDEN, [one.paper for one in readings.values()]),
    )
    names = [label(name) for name in readings]
    return [
        go.Bar(x=names, y=values, name=words, legendgroup=words, marker_color=colour)
        for words, colour, values in kinds
    ]


def _curve(points: Mapping[float, float], words: str, colour: str, dash: str, is_first: bool) -> go.Scatter:
    return go.Scatter(
        x=list(points),
        y=list(points.values()),
        name=words,
        legendgroup=words,
        showlegend=is_first,
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": dash},
        hovertemplate="%{y:.1f}",
    )


def _broken(name: str) -> str:
    """Break a long name into two lines where it can be broken."""
    return name.replace(" house", "<br>house").replace(" (", "<br>(")


def _bold(words: Sequence[str] | Mapping[str, object]) -> list[str]:
    return [f"<b>{one}</b>" for one in words]


def _below(figure: go.Figure) -> go.Figure:
    """Put the legend under the panels: above them it would cover their headings on a phone."""
    place = -70 / (figure.layout.height - 140)
    return figure.update_layout(
        barmode="group", bargap=0.3, legend_y=place, legend_yanchor="top", margin_b=110, hovermode="closest"
    )
