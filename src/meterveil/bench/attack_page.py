"""Pages and pictures of attacks: attacker strength, a day as it is read, and adaptive curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from meterveil.attackers.registry import FLOORS
from meterveil.bench.attack_tables import (
    BASELINES,
    PRIOR,
    STEPS,
    CurveTable,
    curve_rows,
    heading,
    mean_over_appliances,
    notes_of,
    number_text,
    shortfall_rows,
    with_papers,
)
from meterveil.bench.cases import score_predictions
from meterveil.bench.metrics import seen
from meterveil.data import outputs
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.plots.attack import METRICS, Score, adaptive_figure, predictions_figure, strength_figure
from meterveil.plots.html import Section, page

if TYPE_CHECKING:
    from meterveil.bench.attack import Readings

FILES = ("attack.html",)
CURVE_FILES = ("adaptive.html",)

_BASELINE_WORDS = (
    "Attackers that do not beat both baselines, “mean” and “always off”, on an appliance. F1 is the better "
    "one of those from power and from the on/off head."
)
_CURVE_WORDS = (
    "Mean over the appliances of masked test days. With 0 copies the attacker never saw the defence. Where a "
    "curve still rises, the attackers need more training."
)


def write_attack(
    attacks: Sequence[pd.DataFrame],
    folder: Path,
    readings: Sequence[Readings] = (),
    curves: Sequence[CurveTable] = (),
) -> Path:
    """Write the page of attacks, with a day as the attackers read it where there are readings."""
    outputs.folder(folder, FILES)
    sections: list[Section] = []
    for number, table in enumerate(attacks):
        sections += _strength_sections(table)
        if readings:
            sections.append(Section("One day", "", (), day_picture(readings[number])))
    sections += map(_curve_section, curves)
    words = "Attackers estimate appliances from the meter, without a defence."
    return outputs.write_text(folder / FILES[0], page("What attackers read", sections, words))


def write_curve(curve: CurveTable, folder: Path) -> Path:
    """Write the page of an adaptive curve."""
    outputs.folder(folder, CURVE_FILES)
    text = page("Adaptive attackers", [_curve_section(curve)])
    return outputs.write_text(folder / CURVE_FILES[0], text)


def strength_chart(table: pd.DataFrame) -> go.Figure:
    """Draw the strength of the attackers beside the paper's and the baselines."""
    printed = with_papers(table)
    ours = {metric: mean_over_appliances(table, metric) for metric in METRICS}
    papers = {metric: mean_over_appliances(printed, metric, "paper") for metric in METRICS}
    return strength_figure(ours, papers, FLOORS, f"{heading(table)}: mean over appliances")


def curve_chart(curve: CurveTable) -> go.Figure:
    """Draw an adaptive curve, with the scores without a defence and those of guessing from routine."""
    lines: dict[str, dict[str, dict[int, Score]]] = {metric: {} for metric in METRICS}
    for step, part in curve.points.groupby(curve.steps):
        for metric, by_attacker in lines.items():
            spreads = mean_over_appliances(part, metric, "spread")
            for name, value in mean_over_appliances(part, metric).items():
                by_attacker.setdefault(name, {})[int(float(str(step)))] = Score(value, spreads.get(name, 0.0))
    clean = {metric: mean_over_appliances(curve.clean, metric) for metric in METRICS}
    prior = {metric: scores[PRIOR] for metric, scores in clean.items() if PRIOR in scores}
    return adaptive_figure(STEPS[curve.steps], lines, clean, prior, heading(curve.points))


def day_picture(readings: Readings) -> go.Figure:
    """Draw the predictions for one test day, the one on which most appliances were used."""
    number = max(range(len(readings.days)), key=lambda n: _used(readings.days[n]))
    day, targets = readings.days[number], readings.trial.targets
    shown = [name for name in readings.predictions if name not in BASELINES] or list(readings.predictions)
    watts, notes = {}, {}
    for name in shown:
        prediction = readings.predictions[name][number]
        watts[name] = {target: seen(prediction.watts[target][0], day.aggregate_w) for target in targets}
        scores = score_predictions([prediction], [day], targets)
        for target in targets:
            rmse, f1 = (number_text(float(scores[target, metric][0]), metric) for metric in ("rmse", "f1"))
            notes[name, target] = f"RMSE {rmse} W, F1 {f1 or 'undefined'}"
    truth = {target: day.appliances_w[target] for target in targets}
    title = f"{day.name}, {day.minutes[0]:%d %B %Y}: predicted in colour, true in grey"
    return predictions_figure(day.minutes, truth, watts, notes, title)


def _strength_sections(table: pd.DataFrame) -> list[Section]:
    rows = shortfall_rows(table)
    words = _BASELINE_WORDS if len(rows) > 1 else "Every attacker beats both baselines on every appliance."
    has_baselines = set(BASELINES) & set(table["attacker"])
    return [
        Section(heading(table), "", (), strength_chart(table)),
        *[Section("No better than the baselines", words, rows if len(rows) > 1 else ())]
        * bool(has_baselines),
    ]


def _curve_section(curve: CurveTable) -> Section:
    rows = curve_rows(curve)
    words = " ".join([_CURVE_WORDS, *notes_of(rows)])
    return Section(heading(curve.points), words, rows, curve_chart(curve))


def _used(day: Household) -> tuple[int, float]:
    on = [np.any(watts >= on_threshold_w(name)) for name, watts in day.appliances_w.items()]
    return sum(map(int, on)), float(np.mean(~np.isnan(day.aggregate_w)))
