"""The page of an attack: how strong each attacker is, which is no better than blind, and one day as read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from meterveil.attackers.registry import FLOORS
from meterveil.bench.cards import Card
from meterveil.bench.curves import FLOOR, is_reference, lines
from meterveil.bench.floors import mean_over_appliances, shortfall_rows
from meterveil.bench.headings import DATASETS, days_read, heading
from meterveil.bench.metrics import seen
from meterveil.bench.scoring import score_said
from meterveil.data import outputs
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.plots.adaptive import adaptive_figure
from meterveil.plots.attack import METRICS, Score, predictions_figure, strength_figure
from meterveil.plots.html import Section, page

if TYPE_CHECKING:
    from meterveil.bench.strength import Readings

FILES = ("attack.html",)
CURVE_FILES = ("adaptive.html",)

_BLIND = (
    "An attacker that reads an appliance no better than always saying its mean, or always “off”, has learned "
    "nothing of it. F1 is the better one of those from power and from the on/off head."
)


def write_attack(attacks: Sequence[tuple[Readings, Sequence[Card]]], folder: Path) -> Path:
    """Write the page of one or more trials; return it."""
    outputs.folder(folder, FILES)
    sections = [section for readings, cards in attacks for section in _sections(readings, cards)]
    words = "What attackers read out of the bare meter; nothing defends it."
    return outputs.write_text(folder / FILES[0], page("What the attackers read", sections, words))


def write_recorded(cards: Sequence[Card], folder: Path) -> Path:
    """Write the page of recorded cards, table by table, without fitting anything; return it."""
    outputs.folder(folder, FILES)
    sections = [section for several in by_table(cards) for section in _recorded(several)]
    return outputs.write_text(folder / FILES[0], page("What the attackers read", sections))


def write_curve(cards: Sequence[Card], steps: str, folder: Path) -> Path:
    """Write the page of an adaptive curve; return it."""
    outputs.folder(folder, CURVE_FILES)
    words = (
        "Mean over the appliances of masked test days whose dice no attacker has seen. With 0 copies the "
        "attacker never saw the defence. Where a curve still rises, the defence is not yet measured."
    )
    section = Section(heading(cards), words, (), curve_chart(cards, steps))
    return outputs.write_text(folder / CURVE_FILES[0], page("How far adaptive attackers get", [section]))


def by_table(cards: Sequence[Card]) -> list[list[Card]]:
    """Sort cards into tables, each of one data set."""
    tables: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        tables.setdefault((card.table, card.dataset), []).append(card)
    return list(tables.values())


def along(cards: Sequence[Card]) -> dict[str, list[Card]]:
    """Cut a table into curves along copies and epochs, each with the bare meter; none without a defence."""
    if "defence" not in cards[0].settings:
        return {}
    bare = [card for card in cards if is_reference(card)]
    points = [card for card in cards if not is_reference(card)]
    measured = {
        steps: [card for card in points if (card.settings.get("epochs") is not None) == (steps == "epochs")]
        for steps in _STEPS
    }
    return {steps: [*bare, *found] for steps, found in measured.items() if found}


def strength_chart(cards: Sequence[Card]) -> go.Figure:
    """Draw the strength of the attackers, from the cards of one table and data set alone."""
    ours = {metric: mean_over_appliances(cards, metric) for metric in METRICS}
    papers = {metric: mean_over_appliances(cards, metric, reported=True) for metric in METRICS}
    title = f"{DATASETS[cards[0].dataset]}: mean over appliances, {days_read(cards)}"
    return strength_figure(ours, papers, FLOORS, title)


def day_picture(readings: Readings) -> go.Figure:
    """Draw what was said of one test day, the one on which most appliances were used."""
    number = max(range(len(readings.days)), key=lambda n: _used(readings.days[n]))
    day = readings.days[number]
    shown = [name for name in readings.said if name not in ("mean", "off")] or list(readings.said)
    targets = readings.trial.targets
    said = {name: readings.said[name][number] for name in shown}
    watts = {
        name: {target: seen(one.watts[target][0], day.aggregate_w) for target in targets}
        for name, one in said.items()
    }
    notes = {}
    for name, one in said.items():
        scores = score_said([one], [day], targets)
        for target in targets:
            notes[name, target] = f"RMSE {scores[target, 'rmse'][0]:.0f} W, F1 {_f1(scores[target, 'f1'][0])}"
    truth = {target: day.appliances_w[target] for target in targets}
    title = f"{day.name}, {day.minutes[0]:%d %B %Y}: said in colour, true in grey"
    return predictions_figure(day.minutes, truth, watts, notes, title)


def curve_chart(cards: Sequence[Card], steps: str) -> go.Figure:
    """Draw an adaptive curve along `steps`, copies or epochs, from its cards alone."""
    bare = [card for card in cards if is_reference(card)]
    curves = {
        metric: {
            name: {step: Score(*score) for step, score in line.items()}
            for name, line in lines(cards, metric, steps).items()
        }
        for metric in METRICS
    }
    clean = {metric: mean_over_appliances(bare, metric) for metric in METRICS}
    prior = {metric: scores[FLOOR] for metric, scores in clean.items() if FLOOR in scores}
    return adaptive_figure(_STEPS[steps], curves, clean, prior, heading(cards))


_STEPS: Mapping[str, str] = {
    "copies": "masked copies of the training days",
    "epochs": "epochs of training at most",
}


def _sections(readings: Readings, cards: Sequence[Card]) -> list[Section]:
    return [*_strength(cards), Section("As read", "", (), day_picture(readings))]


def _strength(cards: Sequence[Card]) -> list[Section]:
    rows = shortfall_rows(cards)
    words = _BLIND if len(rows) > 1 else f"{_BLIND} Here every attacker beats both on every appliance."
    return [
        Section(heading(cards), "", (), strength_chart(cards)),
        Section("No better than blind", words, rows if len(rows) > 1 else ()),
    ]


def _recorded(cards: Sequence[Card]) -> list[Section]:
    """Show one table of one data set: a curve where it is of a defence, the strength otherwise."""
    curves = along(cards)
    return [
        Section(heading(curve), _STEPS[steps], (), curve_chart(curve, steps))
        for steps, curve in curves.items()
    ] or _strength(cards)


def _used(day: Household) -> tuple[int, float]:
    on = [np.any(watts >= on_threshold_w(name)) for name, watts in day.appliances_w.items()]
    return sum(map(int, on)), float(np.mean(~np.isnan(day.aggregate_w)))


def _f1(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.2f}"
