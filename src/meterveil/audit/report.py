"""The page of an audit: what the meter tells, every day, habits, one day in detail, and how it was read."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from meterveil import __version__
from meterveil.audit import sentences
from meterveil.audit.audit import Audit, beginnings, hour_by_weekday
from meterveil.audit.features import FloatArray
from meterveil.audit.model import Model
from meterveil.audit.trained import Trained
from meterveil.audit.uses import SHAPES, word_of
from meterveil.data import outputs
from meterveil.plots.audit import (
    agreement_figure,
    audited_day_figure,
    days_at_a_glance_figure,
    habits_figure,
)
from meterveil.plots.html import Section, page

FILES = ("audit.html", "audit.json")
SLOT_MINUTES = 5
SHOWN_APPLIANCES = ("dishwasher", "washing_machine", "microwave", "kettle")
"""In a picture of days the fridge would cover all."""


def write_audit(found: Audit, model: Model, trained: Trained | None, folder: Path, day: date | None) -> Path:
    """Write the page and the same findings for machines; return the page."""
    outputs.folder(folder, FILES)
    document = json.dumps(values(found, trained), indent=1) + "\n"
    outputs.write_all(
        {
            folder / "audit.json": outputs.text_writer(document),
            folder / "audit.html": outputs.text_writer(audit_page(found, model, trained, day)),
        }
    )
    return folder / "audit.html"


def audit_page(found: Audit, model: Model, trained: Trained | None, day: date | None = None) -> str:
    """Put the findings on a page that needs no network."""
    chosen = day or telling_day(found)
    sections = [_what(found), _days(found), _habits(found), _day(found, chosen)]
    if trained:
        sections.append(_learned(found, trained))
    sections.append(_how(found, model))
    return page(f"What the meter of {found.household.name} tells", sections, sentences.headline(found))


def telling_day(found: Audit) -> date:
    """Choose the day to show: well known, and with the most uses that are not in doubt."""

    def rank(day: date) -> tuple[bool, int, float]:
        known = float(np.mean(~np.isnan(found.household.day(day).aggregate_w)))
        sure = {use.appliance for use in found.uses_on(day) if word_of(use.probability) != "unsure"}
        return known > 0.95, len(sure), known

    return max(found.days(), key=rank)


def values(found: Audit, trained: Trained | None) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    stamps = found.household.minutes
    return {
        "format": "meterveil-audit-report-1",
        "version": __version__,
        "household": found.household.name,
        "timezone": found.household.timezone,
        "days": [str(day) for day in found.days()],
        "interval_minutes": found.interval_minutes,
        "base_w": round(found.base_w, 1),
        "uses": [
            {
                "appliance": use.appliance,
                "start": stamps[use.start].isoformat(),
                "minutes": use.end - use.start,
                "probability": round(use.probability, 3),
            }
            for use in (found.reading.uses if found.reading else ())
        ],
        "quiet": [
            {
                "state": part.state,
                "start": stamps[part.start].isoformat(),
                "minutes": part.end - part.start,
                "likely": part.sure,
            }
            for part in found.quiet
        ],
        "scores": [
            {"attacker": name, "appliance": target, **_plain(made._asdict())}
            for (name, target), made in (trained.scores.items() if trained else ())
        ],
    }


def _plain(numbers: dict[str, float]) -> dict[str, float | None]:
    return {key: None if np.isnan(value) else round(value, 4) for key, value in numbers.items()}


def _what(found: Audit) -> Section:
    if found.is_coarse:
        return Section("Too coarse for appliances", sentences.coarse_warning(found))
    words = (
        "Read by a model that was not made for this home. “Sure of” counts the uses that it calls likely or "
        "almost certain. Kettles, fridges and dishwashers carry over from home to home; microwaves and "
        "washing machines less so, see the end of this page."
    )
    return Section("Appliances", words, sentences.use_rows(found))


def _days(found: Audit) -> Section:
    names = ["awake", "asleep", "empty", *(SHOWN_APPLIANCES if not found.is_coarse else ())]
    words = "A row is a day, from midnight to midnight. White is unknown."
    return Section("Every day", words, (), days_at_a_glance_figure(found.days(), glance(found, names), names))


def glance(found: Audit, names: list[str]) -> FloatArray:
    """Lay states and sure uses over each other, (day, slot); NaN where unknown.

    A day on which the clocks change is cut or filled up at its end.
    """
    layer = np.where(np.isnan(found.household.aggregate_w), np.nan, 0.0)
    for number, name in enumerate(names):
        if name in ("asleep", "empty"):
            layer[found.state_minutes(name) == 1] = number
        for use in found.uses(name):
            if word_of(use.probability) != "unsure":
                layer[use.start : use.end] = number
    rows = []
    for day in found.days():
        low, high = found.day_bounds(day)
        part = np.pad(layer[low:high], (0, max(1440 - (high - low), 0)), constant_values=np.nan)[:1440]
        slots = part.reshape(-1, SLOT_MINUTES)
        rows.append(np.where(np.isnan(slots), -1.0, slots).max(axis=1))
    shown = np.stack(rows)
    return np.where(shown < 0, np.nan, shown)


def _habits(found: Audit) -> Section:
    stamps, home = found.household.minutes, found.household
    panels = {"power": ("kW", hour_by_weekday(stamps, home.aggregate_w / 1000.0))}
    for name in () if found.is_coarse else [name for name in SHAPES if name != "fridge"]:
        panels[name] = ("uses an hour", hour_by_weekday(stamps, beginnings(found, name)) * 60.0)
    for state in ("asleep", "empty"):
        panels[state] = ("of the time", hour_by_weekday(stamps, found.state_minutes(state)))
    words = "By hour and weekday; darker is more, each map on its own scale."
    return Section("Habits", words, (), habits_figure(panels))


def _day(found: Audit, day: date) -> Section:
    low, high = found.day_bounds(day)
    home = found.household
    likely = (
        {name: part[low:high] for name, part in found.reading.probability.items()} if found.reading else {}
    )
    quiet = [
        (part.state, max(part.start, low) - low, min(part.end, high) - low)
        for part in found.quiet
        if part.start < high and part.end > low
    ]
    figure = audited_day_figure(home.minutes[low:high], home.aggregate_w[low:high], likely, quiet)
    words = "The lower curves are the probability that each appliance was on." if likely else ""
    rows = sentences.day_rows(found, day)
    return Section(f"{day:%A %d %B %Y}", words, rows if len(rows) > 1 else (), figure)


def _learned(found: Audit, trained: Trained) -> Section:
    last = found.household.day(trained.test[-1])
    targets = list(dict.fromkeys(target for _, target in trained.scores))
    names = list(dict.fromkeys(name for name, _ in trained.scores))
    panels = {
        target: {
            "true": trained.truth[target],
            **{name: trained.said[name, target] for name in names if (name, target) in trained.said},
        }
        for target in targets
    }
    words = (
        f"Attackers that learned this home from {len(trained.training)} days of its sub-meters read "
        f"{len(trained.test)} later days, the shipped model beside them; below, the last day with its true "
        "uses in black. F1 is 1 for a perfect reading and 0 for none."
    )
    return Section(
        "Learned from this home", words, sentences.score_rows(trained), agreement_figure(last.minutes, panels)
    )


def _how(found: Audit, model: Model) -> Section:
    if found.is_coarse:
        return Section("How it was read", sentences.quiet_rule())
    words = (
        f"{sentences.quiet_rule()} Appliances: a small network that ships with meterveil. "
        f"{model.card.get('attribution', '')} The table says how well it reads homes whose appliances are "
        "known: days held back of the two homes that it learned from, and homes that it never saw. "
        "1 is perfect, 0 is nothing right."
    )
    return Section("How it was read", words, sentences.accuracy_rows(model.card))
