"""Pictures of how a defence learned: what the probe adds, what the reward favours, what a rate learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look

_POINTS = 600
"""More points than this hide each other."""


class ProbeErrors(NamedTuple):
    """What a probe made of disturbed hours."""

    rms_w: FloatArray  # battery power of each hour
    error_w: FloatArray  # of the probe
    correlation: float


class Habit(NamedTuple):
    """What a manager does on a day."""

    replays: float
    minutes: float  # of a replay
    reward: float  # of the day
    hourly_error_w: float  # RMS battery power of an hour, mean over all hours of the day


def probe_figure(houses: Mapping[str, Mapping[str, ProbeErrors]]) -> go.Figure:
    """Draw every probe's error against the battery's RMS power, a row of panels for each house."""
    kinds = list(next(iter(houses.values())))
    titles = [
        f"<b>{house}, {kind}</b>: correlation {errors.correlation:.4f}"
        for house, probes in houses.items()
        for kind, errors in probes.items()
    ]
    panels = make_subplots(
        len(houses), len(kinds), subplot_titles=titles, horizontal_spacing=0.05, vertical_spacing=0.14
    )
    for row, probes in enumerate(houses.values(), start=1):
        for column, errors in enumerate(probes.values(), start=1):
            some = np.linspace(0, len(errors.rms_w) - 1, min(_POINTS, len(errors.rms_w))).astype(np.int64)
            top_w = float(errors.rms_w.max())
            line = {"color": look.GRID, "width": 2}
            panels.add_trace(go.Scatter(x=[0, top_w], y=[0, top_w], mode="lines", line=line), row, column)
            points = go.Scatter(
                x=errors.rms_w[some],
                y=errors.error_w[some],
                mode="markers",
                marker={"color": look.METER, "size": 4, "opacity": 0.5},
            )
            panels.add_trace(points, row, column)
    panels.update_xaxes(**look.WATTS)
    panels.update_xaxes(title="RMS power of the battery in the hour", row=len(houses))
    panels.update_yaxes(**look.WATTS)
    panels.update_yaxes(title="RMS error of the probe", col=1)
    figure = look.figure_of(panels, "A probe's error is the battery's RMS power", 90 + 330 * len(houses))
    return figure.update_layout(showlegend=False)


def length_figure(
    by_length: Mapping[str, Sequence[tuple[int, float, float]]], habits: Mapping[str, Mapping[str, Habit]]
) -> go.Figure:
    """Draw what replays of each length earn, a decision and a minute, and what a learner makes of that.

    `by_length` has (minutes, reward a decision, reward a minute) for each house.
    """
    titles = (
        "<b>Reward a decision</b>",
        "<b>Reward a minute</b>",
        "<b>Replays a day</b>",
        "<b>Error of an hour</b>, mean of the day",
    )
    panels = make_subplots(2, 2, subplot_titles=titles, vertical_spacing=0.2, horizontal_spacing=0.1)
    for number, (house, rows) in enumerate(by_length.items()):
        minutes, decision, minute = zip(*rows, strict=True)
        for column, values in enumerate((decision, minute), start=1):
            line = go.Scatter(x=minutes, y=values, name=house, legendgroup=house, mode="lines+markers")
            line.update(showlegend=column == 1, line_color=look.CYCLE[number])
            panels.add_trace(line, 1, column)
    for number, (house, managers) in enumerate(habits.items()):
        for column, field in enumerate(("replays", "hourly_error_w"), start=1):
            bars = go.Bar(x=list(managers), y=[getattr(habit, field) for habit in managers.values()])
            bars.update(name=house, legendgroup=house, showlegend=False, marker_color=look.CYCLE[number])
            panels.add_trace(bars, 2, column)
    panels.update_xaxes(title="minutes that a replay lasted", row=1)
    panels.update_yaxes(rangemode="tozero")
    panels.update_yaxes(ticksuffix=" W", row=2, col=2)
    figure = look.figure_of(panels, "A reward per decision is paid for many short replays", 720)
    return figure.update_layout(bargap=0.3, margin_t=100, legend_y=1.04)


def curve_figure(
    houses: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]], budgets: Mapping[str, int]
) -> go.Figure:
    """Draw the reward of a day as it is learned; `budgets` is where the paper's minutes are used up."""
    titles = [f"<b>{house}</b>" for house in houses]
    panels = make_subplots(1, len(houses), subplot_titles=titles, horizontal_spacing=0.08)
    names = list(next(iter(houses.values())))
    for column, (house, curves) in enumerate(houses.items(), start=1):
        for name, curve in curves.items():
            decisions, reward = zip(*curve, strict=True)
            line = go.Scatter(x=decisions, y=reward, name=name, legendgroup=name, mode="lines")
            line.update(showlegend=column == 1, line_color=look.CYCLE[names.index(name)])
            panels.add_trace(line, 1, column)
        panels.add_vline(x=budgets[house], line_dash="dot", line_color=look.INK, row=1, col=column)
    panels.update_xaxes(title="decisions (dotted: the paper's 300 days)", tickformat="~s")
    panels.update_yaxes(title="reward of a day", col=1)
    panels.update_yaxes(rangemode="tozero")
    figure = look.figure_of(panels, "What a learning rate of 2e-5 learns", 460)
    return figure.update_layout(margin_t=110, legend_y=1.1)
