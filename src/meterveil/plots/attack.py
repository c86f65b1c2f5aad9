"""Figures of attackers: predictions beside the truth, strength, and scores without and with defences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from meterveil.core.arrays import FloatArray
from meterveil.plots import look

COLOURS = {
    "co": "#8C6D1F",
    "fhmm": "#7F3C8D",
    "dae": "#E69F00",
    "seq2point": "#0072B2",
    "electricity": "#009E73",
    "bert4nilm": "#D55E00",
    "nilmformer": "#CC79A7",
    "prior": "#5f6368",
}
"""Attacker -> its colour in every picture."""

LABELS = {
    "co": "CO",
    "fhmm": "FHMM",
    "dae": "DAE",
    "seq2point": "Seq2Point",
    "electricity": "ELECTRIcity",
    "bert4nilm": "BERT4NILM",
    "nilmformer": "NILMFormer",
    "mean": "mean",
    "off": "always off",
    "prior": "prior",
}
METRICS = {"rmse": "RMSE in W (lower reads more)", "f1": "F1 from power", "f1_head": "F1 from on/off head"}
EVALUATED = {"rmse": METRICS["rmse"], "f1": METRICS["f1"], "f1_best": "F1 from power or on/off head"}
"""Metrics of attackers by themselves, and those of an evaluation -> their names for readers."""
_TRUTH, _PAPER, _ROW_PX = "#c3c7cb", "#bdc1c6", 104
_BLIND = "(never looks)"
_CORNER = {
    "xref": "x domain",
    "yref": "y domain",
    "x": 0.01,
    "y": 1.02,
    "xanchor": "left",
    "yanchor": "top",
    "showarrow": False,
    "font": {"size": 11},
}
"""Place of a text in the upper left corner of a panel."""
_DASHES = {"mean": "dot", "off": "dash", "prior": "dashdot", "raw": "dash"}
_KINDS = {
    "raw": ("without the defence", _PAPER),
    "fixed": ("with it, fixed", look.METER),
    "adaptive": ("with it, adaptive", look.DECOY),
}
_SIDES = {
    "top right": np.array([0.1, 0.04]),
    "bottom right": np.array([0.1, -0.04]),
    "top left": np.array([-0.1, 0.04]),
    "bottom left": np.array([-0.1, -0.04]),
}
"""Side of a point -> offset of the middle of its label, as a share of the figure."""
_TEXT_SHARE = 0.35
"""Share of a phone's width that a long label takes."""


class Score(NamedTuple):
    """Mean and standard deviation."""

    value: float
    spread: float = 0.0


class Point(NamedTuple):
    """Defence in the scatter: energy moved a day, and F1 of the strongest attacker."""

    name: str
    throughput_kwh: float
    f1: float
    f1_low: float = float("nan")
    f1_high: float = float("nan")


def predictions_figure(
    minutes: pd.DatetimeIndex,
    truth_w: Mapping[str, FloatArray],
    predicted_w: Mapping[str, Mapping[str, FloatArray]],
    notes: Mapping[tuple[str, str], str] | None = None,
    title: str = "",
) -> go.Figure:
    """Draw a panel for each attacker (rows) and appliance (columns): predicted in colour, true in grey.

    `notes` is (attacker, appliance) -> text in a corner of the panel, such as its scores.
    """
    rows, columns = len(predicted_w), len(truth_w)
    panels = make_subplots(
        rows,
        columns,
        shared_xaxes=True,
        shared_yaxes="columns",
        horizontal_spacing=0.035,
        vertical_spacing=24 / (_ROW_PX * rows + 60),
        column_titles=look.bold(truth_w),
    )
    for row, (name, answers) in enumerate(predicted_w.items(), start=1):
        for column, (target, true_w) in enumerate(truth_w.items(), start=1):
            first = row == 1 and column == 1
            panels.add_trace(_true_area(minutes, true_w, first), row, column)
            panels.add_trace(_predicted_line(minutes, answers[target], name, column == 1), row, column)
            words = ": ".join(part for part in (label(name), (notes or {}).get((name, target), "")) if part)
            panels.add_annotation(text=words, row=row, col=column, **_CORNER)
    look.time_axis(panels, minutes, last_row=rows)
    panels.update_xaxes(**_six_hours(minutes))
    panels.update_yaxes(**look.WATTS, nticks=4, tickfont_size=11)
    for column, (target, true_w) in enumerate(truth_w.items(), start=1):
        panels.update_yaxes(
            range=[0, _top_w(true_w, [predicted[target] for predicted in predicted_w.values()])], col=column
        )
    figure = look.figure_of(panels, title, 164 + _ROW_PX * rows)
    return figure.update_layout(legend_y=-50 / (_ROW_PX * rows), legend_yanchor="top", margin_b=94)


def strength_figure(
    ours: Mapping[str, Mapping[str, float]],
    papers: Mapping[str, Mapping[str, float]],
    floors: Sequence[str],
    title: str = "",
) -> go.Figure:
    """Draw a panel for each metric: a bar for each attacker beside the paper's, baselines as lines.

    `ours` and `papers` are metric -> attacker -> score.
    """
    shown = [metric for metric in METRICS if ours.get(metric)]
    panels = make_subplots(1, len(shown), subplot_titles=look.bold(METRICS[metric] for metric in shown))
    for column, metric in enumerate(shown, start=1):
        scores = {name: ours[metric][name] for name in in_order(ours[metric]) if name not in floors}
        panels.add_trace(_strength_bars(scores, "measured", look.METER, column == 1), 1, column)
        printed = {name: papers.get(metric, {})[name] for name in scores if name in papers.get(metric, {})}
        if printed:
            panels.add_trace(_strength_bars(printed, "paper", _PAPER, column == 1), 1, column)
        blind = {name: ours[metric][name] for name in floors if name in ours[metric]}
        for name, value in blind.items():
            words = f"{label(name)} {_BLIND}"
            panels.add_hline(value, row=1, col=column, **_level(name, words, column == 1))
    panels.update_annotations(font_size=13)
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickangle=-40)
    figure = look.figure_of(panels, title, 460)
    return figure.update_layout(
        barmode="group", bargap=0.3, legend_y=-0.3, legend_yanchor="top", margin_b=130, hovermode="closest"
    )


def reading_figure(
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]], prior: Mapping[str, float], title: str = ""
) -> go.Figure:
    """Draw a panel for each metric: bars of every attacker without and with the defence.

    `scores` is metric -> raw, fixed or adaptive -> attacker -> mean over appliances, with its spread over
    seeds; `prior` is metric -> score of guessing from routine.
    """
    shown = [metric for metric in EVALUATED if scores.get(metric)]
    panels = look.stacked(look.bold(EVALUATED[metric] for metric in shown), 0.09, shared_xaxes=True)
    for row, metric in enumerate(shown, start=1):
        for kind, (words, fill) in _KINDS.items():
            bars = scores[metric].get(kind, {})
            if bars:
                means = {name: score.value for name, score in bars.items()}
                bar = _bars(means, words, fill, row == 1, error_y=_spreads(bars))
                panels.add_trace(bar, row, 1)
        if metric in prior:
            panels.add_hline(prior[metric], row=row, col=1, **_level("prior", f"prior {_BLIND}", row == 1))
    panels.update_yaxes(rangemode="tozero")
    panels.update_xaxes(tickangle=-40, row=len(shown))  # below the names, which slant on a phone, is the legend
    figure = look.figure_of(panels, title, 150 * len(shown) + 210)
    return figure.update_layout(
        barmode="group", bargap=0.25, legend_y=-0.17, legend_yanchor="top", margin_b=160, hovermode="closest"
    )


def defences_figure(points: Sequence[Point], prior: float, raw: float, threat: str, title: str = "") -> go.Figure:
    """Draw every defence by the energy it moves and by F1 of the strongest attacker.

    Down and left is better. The lines are the attacker without a defence and guessing from routine.
    """
    widest_kwh = 1.2 * max(point.throughput_kwh for point in points) + 0.5
    top = 1.12 * max(raw, prior, *(np.nanmax([point.f1, point.f1_high]) for point in points))
    figure = go.Figure(
        go.Scatter(
            x=[point.throughput_kwh for point in points],
            y=[point.f1 for point in points],
            error_y=_bounds(points),
            text=[point.name for point in points],
            mode="markers+text",
            textposition=_sides(points, (raw, prior), top, widest_kwh),
            marker={"size": 11, "color": look.METER},
            hovertemplate="%{text}: %{x:.1f} kWh a day, F1 %{y:.2f}<extra></extra>",
            cliponaxis=False,
            showlegend=False,
        )
    )
    figure.add_hline(raw, **_level("raw", "without a defence"))
    figure.add_hline(prior, **_level("prior", f"prior {_BLIND}"))
    figure.update_xaxes(title_text="energy moved in a day, in and out", ticksuffix=" kWh")
    figure.update_xaxes(range=[-0.09 * widest_kwh, widest_kwh])
    figure.update_yaxes(title_text=f"F1 of the strongest {threat} attacker", range=[0, top])
    return look.figure_of(figure, title, 480).update_layout(hovermode="closest", margin_b=60)


def label(name: str) -> str:
    """Return the name of an attacker as its authors write it."""
    return LABELS.get(name, look.readable(name))


def colour(name: str) -> str:
    """Return the colour of an attacker."""
    return COLOURS.get(name, look.METER)


def _true_area(minutes: pd.DatetimeIndex, watts: FloatArray, is_first: bool) -> go.Scatter:
    area = look.line(minutes.tz_localize(None), np.nan_to_num(watts), "true", _TRUTH)
    return area.update(line_width=0.5, fill="tozeroy", fillcolor=_TRUTH, legendgroup="true", showlegend=is_first)


def _predicted_line(minutes: pd.DatetimeIndex, watts: FloatArray, name: str, is_first: bool) -> go.Scatter:
    line = look.line(minutes.tz_localize(None), watts, label(name), colour(name))
    return line.update(line_width=1.2, legendgroup=name, showlegend=is_first)


def _six_hours(minutes: pd.DatetimeIndex) -> dict[str, Any]:
    x, _ = look.clock(minutes)
    step = np.timedelta64(6, "h")
    return {"tickvals": np.arange(x[0], x[-1] + step, step), "tickformat": "%H h", "ticktext": None}


def _top_w(true_w: FloatArray, predicted_w: Sequence[FloatArray]) -> float:
    """Leave space for the text; a very high prediction is cut rather than flattening the truth."""
    true, predicted = float(np.nanmax(true_w)), max(float(np.nanmax(watts)) for watts in predicted_w)
    return 1.45 * max(min(predicted, 1.6 * true), true, 1.0)


def in_order(names: Iterable[str]) -> list[str]:
    """Sort attackers in the order of the paper's tables, others last."""
    places = {name: place for place, name in enumerate(LABELS)}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def _short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1.5 else f"{value:.0f}"


def _bars(scores: Mapping[str, float], words: str, fill: str, is_first: bool, **options: Any) -> go.Bar:
    return go.Bar(
        x=[label(name) for name in scores],
        y=list(scores.values()),
        name=words,
        legendgroup=words,
        showlegend=is_first,
        marker_color=fill,
        hovertemplate="%{x}: %{y:.3g}<extra>" + words + "</extra>",
        **options,
    )


def _strength_bars(scores: Mapping[str, float], words: str, fill: str, is_first: bool) -> go.Bar:
    text = {"text": [_short(value) for value in scores.values()], "textposition": "outside"}
    return _bars(scores, words, fill, is_first, **text, textfont_size=9, cliponaxis=False)


def _level(name: str, words: str, is_first: bool = True) -> dict[str, Any]:
    """Return a level line, named in the legend: a label on the line would cover those of points."""
    line = {"color": look.INK, "width": 1.4, "dash": _DASHES.get(name, "longdash")}
    return {"name": words, "legendgroup": name, "showlegend": is_first, "line": line}


def _spreads(scores: Mapping[str, Score]) -> dict[str, Any] | None:
    if not any(score.spread for score in scores.values()):
        return None
    return {"array": [score.spread for score in scores.values()], "thickness": 1, "width": 3}


def _bounds(points: Sequence[Point]) -> dict[str, Any] | None:
    if all(np.isnan(point.f1_low) for point in points):
        return None
    above = [point.f1_high - point.f1 for point in points]
    below = [point.f1 - point.f1_low for point in points]
    return {"array": above, "arrayminus": below, "symmetric": False, "thickness": 1, "width": 4}


def _sides(points: Sequence[Point], levels_f1: Sequence[float], top: float, widest_kwh: float) -> list[str]:
    """Put each label on the side of its point that is farthest from other points, labels and lines.

    Three rounds: a label may have to move for one that was placed after it.
    """
    marks = [np.array([point.throughput_kwh / widest_kwh, point.f1 / top]) for point in points]
    lines = [level / top for level in levels_f1]
    chosen: dict[int, str] = {}
    for number, mark in [*enumerate(marks)] * 3:
        names = [marks[other] + _SIDES[side] for other, side in chosen.items() if other != number]
        others = [*marks[:number], *marks[number + 1 :], *names]
        room = {side: _room(mark + _SIDES[side], others, lines) for side in _sides_inside(mark)}
        chosen[number] = max(room, key=room.__getitem__)
    return [chosen[number] for number in range(len(points))]


def _sides_inside(mark: FloatArray) -> list[str]:
    is_free = _TEXT_SHARE < mark[0] < 1 - _TEXT_SHARE
    return [side for side in _SIDES if is_free or side.endswith("right") == (mark[0] < 0.5)]


def _room(place: FloatArray, others: Sequence[FloatArray], lines: Sequence[float]) -> float:
    """Return the distance of a label from the nearest point, label or line."""
    return min(*(_gap(place, other) for other in others), *(abs(float(place[1]) - line) for line in lines))


def _gap(first: FloatArray, second: FloatArray) -> float:
    """Return a distance that counts horizontal gaps less, since text is wide."""
    across, up = np.abs(first - second)
    return float(np.hypot(across / 4, up))
