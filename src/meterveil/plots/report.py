"""Figures of the report: the paper's figures beside measured ones, and leaderboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.plots import look
from meterveil.plots.attack import label

PAPER = "#bdc1c6"
_ROW_PX, _CASE_PX, _BAR_PX = 210, 130, 34
_CLOSE = 0.12
"""Share of the width within which points are named together, since their names would overlap."""

_HEADROOM = 1.4
"""Height of a panel with words above its bars, as a multiple of the highest bar."""


class Ranking(NamedTuple):
    """F1 of the strongest attacker for each defence, and the levels to compare it with."""

    title: str
    scores: pd.DataFrame
    """`name`, `adaptive`, `fixed`; the best first."""
    undefended: float
    prior: float


def ranking_figure(rankings: Sequence[Ranking]) -> go.Figure:
    """Draw a panel for each ranking: bars of the strongest adaptive and fixed attacker of each defence."""
    sizes = [len(ranking.scores) for ranking in rankings]
    headings = look.bold(ranking.title for ranking in rankings)
    figure = look.stacked(headings, 60 / (_BAR_PX * sum(sizes) + 100), row_heights=sizes)
    figure.update_annotations(x=1, xanchor="right")  # names of defences leave a narrow panel on a phone
    shown: set[str] = set()
    for row, ranking in enumerate(rankings, start=1):
        scores = ranking.scores.iloc[::-1]
        star = " (* undertrained)" if scores["name"].str.endswith("*").any() else ""
        for column, colour in (("fixed", PAPER), ("adaptive", look.METER)):
            if scores[column].isna().all():
                continue
            bar = go.Bar(
                x=scores[column],
                y=scores["name"],
                name=f"{column} attacker" + star * (column == "adaptive"),
                orientation="h",
                marker_color=colour,
                legendgroup=column,
                showlegend=column not in shown,
                hovertemplate="%{y}: F1 %{x:.2f}",
            )
            shown.add(column)
            figure.add_trace(bar, row, 1)
        for words, level, dash in (
            ("without a defence", ranking.undefended, "dash"),
            ("from routine alone", ranking.prior, "dot"),
        ):
            line = {"color": look.INK, "width": 1.4, "dash": dash}
            figure.add_vline(level, line=line, name=words, legendgroup=words, showlegend=row == 1, row=row, col=1)
    figure.update_xaxes(range=[0, 1])
    figure.update_xaxes(title_text="F1", row=len(rankings), col=1)
    figure.update_yaxes(automargin=True, tickfont_size=12)
    height = 130 + 40 * len(rankings) + _BAR_PX * sum(sizes)
    figure = look.figure_of(figure, "", height).update_layout(barmode="group", bargap=0.25)
    below = {"y": -70 / (height - 130), "yanchor": "top", "traceorder": "normal"}
    return figure.update_layout(hovermode="closest", legend=below, margin_b=120)


def bars_figure(panels: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Draw a panel for each metric: bars of the paper's figures and of ours.

    `panels` is the metric's name -> `name`, `paper` and `ours` of each row.
    """
    figure = look.stacked(look.bold(panels), 0.14, shared_xaxes=True)
    for row, table in enumerate(panels.values(), start=1):
        for column, words, colour in (("paper", "paper", PAPER), ("ours", "measured", look.METER)):
            if table[column].notna().any():
                axes = {"x": table["name"], "y": table[column], "hovertemplate": "%{x}: %{y:.1f}"}
                figure.add_trace(_bar(words, colour, row == 1, **axes), row, 1)
    figure.update_xaxes(type="category", automargin=True, autotickangles=[0, 90])
    figure.update_yaxes(ticksuffix=" %")
    corner = {"x": 1, "xanchor": "right", "y": 1.01}
    figure = look.figure_of(figure, "", 110 + _ROW_PX * len(panels))
    return figure.update_layout(barmode="group", bargap=0.3, legend=corner, hovermode="closest")


def pareto_figure(points: pd.DataFrame) -> go.Figure:
    """Draw RMSE Inc. and F1 Red. against the cost of each weight of privacy; up and left is better.

    `points` has `name`, `cost`, `rmse` and `f1`.
    """
    figure = look.stacked(look.bold(["RMSE Inc.", "F1 Red."]), 0.12, shared_xaxes=True)
    ordered = points.sort_values("cost")
    sides = ["top right"] + ["top left"] * (len(ordered) - 1)
    for row, column in enumerate(("rmse", "f1"), start=1):
        line = go.Scatter(
            x=ordered["cost"],
            y=ordered[column],
            text=_joint_names(ordered),
            customdata=ordered["name"],
            mode="lines+markers+text",
            textposition=sides,
            cliponaxis=False,
            marker={"size": 9, "color": look.METER},
            line={"color": look.METER, "width": 1.2, "dash": "dot"},
            hovertemplate="%{customdata}: %{y:.1f} at a cost of %{x:.3f}<extra></extra>",
            showlegend=False,
        )
        figure.add_trace(line, row, 1)
    figure.update_yaxes(ticksuffix=" %")
    figure.update_xaxes(title_text="SoC-neutral cost of a day", row=2, col=1)
    return look.figure_of(figure, "", 520).update_layout(hovermode="closest", margin_b=60)


def cases_figure(cases: pd.DataFrame, metrics: Mapping[str, str]) -> go.Figure:
    """Draw a row of panels for each appliance and a column for each metric, as in the paper's main figure.

    `cases` has `appliance`, `attacker`, `metric` and the score without a defence (`raw`), with ours (`ours`)
    and with the paper's (`paper`).
    """
    appliances = list(dict.fromkeys(cases["appliance"]))
    keys = [(appliance, metric) for appliance in appliances for metric in metrics]
    panels = {key: cases[(cases["appliance"] == key[0]) & (cases["metric"] == key[1])] for key in keys}
    first = next(iter(metrics))
    heads = [
        f"<b>{look.readable(name)}</b>, " * (metric == first) + metrics[metric] if len(panel) else ""
        for (name, metric), panel in panels.items()
    ]
    figure = make_subplots(
        len(appliances),
        len(metrics),
        subplot_titles=heads,
        shared_xaxes=True,
        vertical_spacing=0.28 / len(appliances),
        horizontal_spacing=0.1,
    )
    for number, panel in enumerate(panels.values()):
        if panel.empty:
            continue
        row, column = number // len(metrics) + 1, number % len(metrics) + 1
        for kind, words, colour in (
            ("raw", "without a defence", look.LOAD),
            ("ours", "with ours", look.METER),
            ("paper", "with the paper's", look.HIDDEN),
        ):
            axes = {"x": panel["attacker"].map(label), "y": panel[kind].round(3)}
            figure.add_trace(_bar(words, colour, number == 0, **axes), row, column)
        if panel["ours"].isna().all():
            place = {"xref": "x domain", "yref": "y domain", "x": 0.5, "y": 1, "yanchor": "top"}
            figure.add_annotation(text="not measured here", showarrow=False, row=row, col=column, **place)
            figure.update_yaxes(range=[0, _HEADROOM * panel["paper"].max()], row=row, col=column)
    figure.update_annotations(font_size=12)
    figure.update_xaxes(tickangle=-60, tickfont_size=11)
    figure.update_yaxes(rangemode="tozero", nticks=4, tickfont_size=11)
    figure = look.figure_of(figure, "", _CASE_PX * (1 + len(appliances)))
    legend = {"y": -100 / (_CASE_PX * len(appliances)), "yanchor": "top"}
    return figure.update_layout(barmode="group", bargap=0.3, legend=legend, margin_b=120, hovermode="closest")


def _bar(name: str, colour: str, in_legend: bool, **axes: Any) -> go.Bar:
    """Make bars that share one entry of the legend over all panels."""
    return go.Bar(name=name, legendgroup=name, marker_color=colour, showlegend=in_legend, **axes)


def _joint_names(ordered: pd.DataFrame) -> list[str]:
    """Name points of nearly the same cost together, at the first of them."""
    costs = ordered["cost"].astype(float).tolist()
    width = (costs[-1] - costs[0]) or 1.0
    names: list[str] = []
    group, start = 0, float("-inf")
    for number, (name, cost) in enumerate(zip(ordered["name"], costs, strict=True)):
        if cost - start < _CLOSE * width:
            names[group] += f", {name.rpartition(' ')[2]}"
            names.append("")
        else:
            group, start = number, cost
            names.append(name)
    return names
