"""Page and JSON file of an audit: appliances, every day, habits, one day in detail, and the method."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from meterveil import __version__
from meterveil.audit import sentences
from meterveil.audit.findings import Audit
from meterveil.audit.model import SHAPES, Model, Use
from meterveil.audit.presence import Quiet
from meterveil.audit.submeters import Trained
from meterveil.core.arrays import FloatArray
from meterveil.data import outputs
from meterveil.plots.audit import agreement_figure, audited_day_figure, days_at_a_glance_figure, habits_figure
from meterveil.plots.html import Section, page

FILES = ("audit.html", "audit.json")
SLOT_MINUTES = 5
SHOWN_APPLIANCES = ("dishwasher", "washing_machine", "microwave", "kettle")
"""Appliances in the picture of all days; the fridge would cover the others."""


def write_audit(
    findings: Audit, model: Model, trained: Trained | None, folder: Path, day: date | None
) -> Path:
    """Write the page and the JSON file; return the path of the page."""
    outputs.folder(folder, FILES)
    document = json.dumps(values(findings, trained), indent=1) + "\n"
    texts = dict(zip(FILES, (audit_page(findings, model, trained, day), document), strict=True))
    outputs.write_all({folder / name: outputs.text_writer(text) for name, text in texts.items()})
    return folder / "audit.html"


def audit_page(findings: Audit, model: Model, trained: Trained | None, day: date | None = None) -> str:
    """Render the findings as one HTML page that needs no network."""
    chosen = day or telling_day(findings)
    sections = [_what(findings), _days(findings), _habits(findings), _day(findings, chosen)]
    if trained:
        sections.append(_learned(findings, trained))
    sections.append(_how(findings, model))
    return page(f"What the meter of {findings.household.name} tells", sections, sentences.headline(findings))


def telling_day(findings: Audit) -> date:
    """Choose the day to show: well covered, with the most kinds of sure uses."""

    def rank(day: date) -> tuple[bool, int, float]:
        known = float(np.mean(~np.isnan(findings.household.day(day).aggregate_w)))
        sure = {use.appliance for use in findings.uses_on(day) if use.is_sure}
        return known > 0.95, len(sure), known

    return max(findings.household.days(), key=rank)


def values(findings: Audit, trained: Trained | None) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    stamps, reading = findings.household.minutes, findings.reading

    def when(part: Use | Quiet) -> dict[str, Any]:
        return {"start": stamps[part.start].isoformat(), "minutes": part.end - part.start}

    return {
        "format": "meterveil-audit-report-1",
        "version": __version__,
        "household": findings.household.name,
        "timezone": findings.household.timezone,
        "days": [str(day) for day in findings.household.days()],
        "interval_minutes": findings.interval_minutes,
        "base_w": round(findings.base_w, 1),
        "uses": [
            {"appliance": use.appliance, **when(use), "probability": round(use.probability, 3)}
            for use in (reading.uses if reading else ())
        ],
        "quiet": [{"state": part.state, **when(part), "likely": part.sure} for part in findings.quiet],
        "scores": [
            {"attacker": name, "appliance": target, **_plain(score._asdict())}
            for (name, target), score in (trained.scores.items() if trained else ())
        ],
    }


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    return {key: None if np.isnan(value) else round(value, 4) for key, value in numbers.items()}


def _what(findings: Audit) -> Section:
    if findings.is_coarse:
        return Section("Too coarse for appliances", sentences.coarse_warning(findings))
    words = (
        "Read by the shipped model, which was trained on two homes of UK-DALE. “Sure of” counts the uses "
        "that it calls likely or almost certain. The end of this page shows its accuracy in several homes."
    )
    return Section("Appliances", words, sentences.use_rows(findings))


def _days(findings: Audit) -> Section:
    names = ["awake", "asleep", "empty", *(SHOWN_APPLIANCES if not findings.is_coarse else ())]
    words = f"A row is a day, from midnight to midnight ({findings.household.timezone}). White is unknown."
    figure = days_at_a_glance_figure(findings.household.days(), glance(findings, names), names)
    return Section("Every day", words, (), figure)


def glance(findings: Audit, names: list[str]) -> FloatArray:
    """Return the position in `names` of the state or sure use in each slot, (day, slot); NaN where unknown.

    A day on which the clocks change is cut or padded at its end.
    """
    layer = np.where(np.isnan(findings.household.aggregate_w), np.nan, 0.0)
    for number, name in enumerate(names):
        if name in ("asleep", "empty"):
            layer[findings.state_minutes(name) == 1] = number
        for use in findings.uses(name):
            if use.is_sure:
                layer[use.start : use.end] = number
    rows = []
    for day in findings.household.days():
        low, high = findings.day_bounds(day)
        part = np.pad(layer[low:high], (0, max(1440 - (high - low), 0)), constant_values=np.nan)[:1440]
        slots = part.reshape(-1, SLOT_MINUTES)
        rows.append(np.where(np.isnan(slots), -1.0, slots).max(axis=1))
    shown = np.stack(rows)
    return np.where(shown < 0, np.nan, shown)


def _habits(findings: Audit) -> Section:
    panels = {"power": ("kW", findings.by_hour_and_weekday(findings.household.aggregate_w / 1000.0))}
    for name in () if findings.is_coarse else [name for name in SHAPES if name != "fridge"]:
        panels[name] = ("uses an hour", findings.by_hour_and_weekday(findings.beginnings(name)) * 60.0)
    for state in ("asleep", "empty"):
        panels[state] = ("of the time", findings.by_hour_and_weekday(findings.state_minutes(state)))
    words = "By hour and weekday. Darker means more; each map has its own scale."
    return Section("Habits", words, (), habits_figure(panels))


def _day(findings: Audit, day: date) -> Section:
    low, high = findings.day_bounds(day)
    home = findings.household
    probability = findings.reading.probability if findings.reading else {}
    likely = {name: part[low:high] for name, part in probability.items()}
    quiet = [(part.state, part.start - low, part.end - low) for part in findings.quiet_on(day)]
    figure = audited_day_figure(home.minutes[low:high], home.aggregate_w[low:high], likely, quiet)
    words = "The lower curves show the probability that each appliance was on." if likely else ""
    rows = sentences.day_rows(findings, day)
    return Section(f"{day:%A %d %B %Y}", words, rows if len(rows) > 1 else (), figure)


def _learned(findings: Audit, trained: Trained) -> Section:
    last = findings.household.day(trained.test[-1])
    panels = {target: {"true": trained.truth[target]} for _, target in trained.scores}
    for name, target in trained.scores:
        panels[target][name] = trained.last_day[name, target]
    words = (
        f"Attackers learned from {len(trained.training)} days of this home's sub-meters and read "
        f"{len(trained.test)} later days, as did the shipped model. The picture shows the last day, true "
        "uses in black. F1 is 1 for a perfect reading and 0 for none."
    )
    figure = agreement_figure(last.minutes, panels)
    return Section("Learned from this home", words, sentences.score_rows(trained), figure)


def _how(findings: Audit, model: Model) -> Section:
    if findings.is_coarse:
        return Section("How it was read", sentences.quiet_rule())
    words = (
        f"{sentences.quiet_rule()} Appliances: a small network that ships with meterveil. "
        f"{model.card.get('attribution', '')} The table shows its F1 of uses on held-out days of the two "
        "homes that it learned from and on homes that it never saw: 1 is perfect, 0 means nothing right."
    )
    return Section("How it was read", words, sentences.accuracy_rows(model.card))
