"""Sentences and tables of an audit, and the page and JSON file that contain them."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from meterveil import __version__
from meterveil.audit.findings import EVENT_W, MARGIN_W, Audit, Quiet
from meterveil.audit.model import SHAPES, Model, Use
from meterveil.audit.submeters import SHIPPED, Trained
from meterveil.core.arrays import FloatArray
from meterveil.data import outputs
from meterveil.plots.audit import agreement_figure, audited_day_figure, days_at_a_glance_figure, habits_figure
from meterveil.plots.html import Section, page
from meterveil.plots.look import readable

FILES = ("audit.html", "audit.json")
SLOT_MINUTES = 5
NOON_MINUTE = 720
SHOWN_APPLIANCES = ("dishwasher", "washing_machine", "microwave", "kettle")
"""Appliances in the picture of all days; the fridge would cover the others."""


def write_audit(findings: Audit, model: Model, trained: Trained | None, folder: Path, day: date | None) -> Path:
    """Write the page and the JSON file; return the path of the page."""
    outputs.folder(folder, FILES)
    document = json.dumps(values(findings, trained), indent=1) + "\n"
    texts = (audit_page(findings, model, trained, day), document)
    paths = [folder / name for name in FILES]
    outputs.write_all({path: outputs.text_writer(text) for path, text in zip(paths, texts, strict=True)})
    return paths[0]


def audit_page(findings: Audit, model: Model, trained: Trained | None, day: date | None = None) -> str:
    """Render the findings as one HTML page that needs no network."""
    chosen = day or telling_day(findings)
    sections = [_what(findings), _days(findings), _habits(findings), _day(findings, chosen)]
    if trained:
        sections.append(_learned(findings, trained))
    sections.append(_how(findings, model))
    return page(f"What the meter of {findings.household.name} tells", sections, headline(findings))


def telling_day(findings: Audit) -> date:
    """Choose the day to show: well covered, with the most kinds of sure uses."""

    def rank(day: date) -> tuple[bool, int, float]:
        known = float(np.mean(~np.isnan(findings.household.day(day).aggregate_w)))
        sure = {use.appliance for use in findings.uses_on(day) if use.is_sure}
        return known > 0.95, len(sure), known

    return max(findings.household.days(), key=rank)


def values(findings: Audit, trained: Trained | None) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    home = findings.household

    def when(part: Use | Quiet) -> dict[str, Any]:
        return {"start": home.minutes[part.start].isoformat(), "minutes": part.end - part.start}

    def plain(value: float) -> float | None:
        return None if np.isnan(value) else round(value, 4)

    return {
        "format": "meterveil-audit-report-1",
        "version": __version__,
        "household": home.name,
        "timezone": home.timezone,
        "days": [str(day) for day in home.days()],
        "interval_minutes": findings.interval_minutes,
        "base_w": round(findings.base_w, 1),
        "uses": [
            {"appliance": use.appliance, **when(use), "probability": round(use.probability, 3)}
            for use in findings.reading.uses
        ],
        "quiet": [{"state": part.state, **when(part), "likely": part.sure} for part in findings.quiet],
        "scores": [
            {"attacker": name, "appliance": target}
            | {metric: plain(value) for metric, value in score._asdict().items()}
            for (name, target), score in (trained.scores.items() if trained else ())
        ],
    }


def _what(findings: Audit) -> Section:
    if findings.is_coarse:
        return Section("Too coarse for appliances", coarse_warning(findings))
    words = (
        "Read by the shipped model, which was trained on two homes of UK-DALE. “Sure of” counts the uses "
        "that it calls likely or almost certain. The end of this page shows its accuracy in several homes."
    )
    return Section("Appliances", words, use_rows(findings))


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
        layer[findings.state_minutes(name) == 1] = number
        for use in findings.uses(name):
            if use.is_sure:
                layer[use.start : use.end] = number
    days = findings.household.days()
    shown = np.full((len(days), 1440), -1.0)
    for row, day in zip(shown, days, strict=True):
        part = layer[slice(*findings.day_bounds(day))][:1440]
        row[: len(part)] = np.where(np.isnan(part), -1.0, part)
    highest = shown.reshape(len(days), -1, SLOT_MINUTES).max(axis=-1)
    return np.where(highest < 0, np.nan, highest)


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
    likely = {name: part[low:high] for name, part in findings.reading.probability.items()}
    quiet = [(part.state, part.start - low, part.end - low) for part in findings.quiet_on(day)]
    figure = audited_day_figure(home.minutes[low:high], home.aggregate_w[low:high], likely, quiet)
    words = "The lower curves show the probability that each appliance was on." if likely else ""
    rows = day_rows(findings, day)
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
    return Section("Learned from this home", words, score_rows(trained), figure)


def _how(findings: Audit, model: Model) -> Section:
    if findings.is_coarse:
        return Section("How it was read", quiet_rule())
    words = (
        f"{quiet_rule()} Appliances: a small network that ships with meterveil. "
        f"{model.card.get('attribution', '')} The table shows its F1 of uses on held-out days of the two "
        "homes that it learned from and on homes that it never saw: 1 is perfect, 0 means nothing right."
    )
    return Section("How it was read", words, accuracy_rows(model.card))


def headline(findings: Audit) -> str:
    """Sum up the findings in a few sentences."""
    days, zone = findings.household.days(), findings.household.timezone
    return (
        f"{days[0]:%d %B %Y} to {days[-1]:%d %B %Y} ({zone}), {_known_days(findings):.1f} days of readings. "
        f"The base load is about {findings.base_w:,.0f} W. "
        f"{_sleep(findings)} {_absence(findings)} {_export(findings)}"
    ).strip()


def coarse_warning(findings: Audit) -> str:
    """State what readings this far apart hide, and what they show."""
    return (
        f"The readings are {findings.interval_minutes} minutes apart. That is too coarse to read appliances: "
        "a kettle or a microwave is off again before the next reading. The readings still show the base "
        "load, sleep, absence and the daily rhythm. Readings every minute or faster (an in-home display, a "
        "P1 port, a clamp) reveal far more."
    )


def use_rows(findings: Audit) -> list[list[str]]:
    """Tabulate the appliances: number of uses, usual hours, share of sure uses."""
    rows = [["appliance", "uses", "a day", "mostly at", "sure of"]]
    days = max(_known_days(findings), 1e-9)
    for name in SHAPES:
        uses = findings.uses(name)
        sure = sum(use.is_sure for use in uses)
        hours = "all day" if name == "fridge" else _usual_hours(findings, uses)
        share = f"{sure} of {len(uses)}" if uses else "none seen"
        rows.append([readable(name), str(len(uses)), f"{len(uses) / days:.1f}", hours, share])
    return rows


def day_rows(findings: Audit, day: date) -> list[list[str]]:
    """Tabulate the events of a day in order of time, without the fridge."""
    events = []
    for use in (use for use in findings.uses_on(day) if use.appliance != "fridge"):
        name, sure = readable(use.appliance), f"{use.probability:.0%} {use.word}"
        events.append((use.start, [name, f"{use.end - use.start} min", sure]))
    for part in findings.quiet_on(day):
        sure = "likely" if part.sure else "unsure"
        events.append((part.start, [f"seems {part.state}", f"{(part.end - part.start) / 60:.1f} h", sure]))
    stamps = findings.household.minutes
    rows = [[f"{stamps[start]:%H:%M}", *words] for start, words in sorted(events, key=lambda event: event[0])]
    return [["from", "what", "for", "how sure"], *rows]


def score_rows(trained: Trained) -> list[list[str]]:
    """Tabulate the scores of each attacker on the last days."""
    rows = [["appliance", "attacker", "F1 minutes", "F1 uses", "uses"]]
    for (name, target), score in sorted(trained.scores.items(), key=lambda case: case[0][::-1]):
        who = "shipped model" if name == SHIPPED else f"{name}, learned here"
        cells = ["" if np.isnan(value) else f"{value:.2f}" for value in (score.f1, score.use_f1)]
        rows.append([readable(target), who, *cells, str(score.uses)])
    return rows


def accuracy_rows(card: Any) -> list[list[str]]:
    """Tabulate the accuracy of the shipped model on homes whose appliances are known."""
    accuracy = card.get("accuracy", {})
    rows = [["F1 of uses", *(readable(name) for name in accuracy)]]
    for name in SHAPES:
        cells = [accuracy[home].get(name, {}).get("use_f1") for home in accuracy]
        rows.append([readable(name), *("" if cell is None else f"{cell:.2f}" for cell in cells)])
    return rows


def _usual_hours(findings: Audit, uses: list[Use]) -> str:
    """List the two hours in which most uses begin."""
    hours = Counter(int(findings.household.minutes[use.start].hour) for use in uses)
    return ", ".join(f"{hour}\u00a0h" for hour in sorted(hour for hour, _ in hours.most_common(2))) or "never"


def _sleep(findings: Audit) -> str:
    """State the median beginning and end of the longest sleep of each night."""
    stamps = findings.household.minutes
    nights: dict[date, Quiet] = {}
    for part in findings.quiet:
        evening = (stamps[part.start] - pd.Timedelta(hours=12)).date()
        longest = nights.get(evening)
        if part.state == "asleep" and (not longest or part.end - part.start > longest.end - longest.start):
            nights[evening] = part
    if not nights:
        return "No night is quiet for two hours, so sleep does not show."
    begin = _median_time([stamps[part.start] for part in nights.values()])
    end = _median_time([stamps[part.end - 1] for part in nights.values()], later=1)
    return f"The house is usually quiet, probably asleep, from {begin} to {end}."


def _median_time(stamps: list[pd.Timestamp], later: int = 0) -> str:
    """Return the median time of day, some minutes later; midnight is in the middle of the range."""
    after_noon = [(stamp.hour * 60 + stamp.minute - NOON_MINUTE) % 1440 + later for stamp in stamps]
    hour, minute = divmod((round(float(np.median(after_noon))) + NOON_MINUTE) % 1440, 60)
    return f"{hour:02d}:{minute:02d}"


def _absence(findings: Audit) -> str:
    empty = np.nan_to_num(findings.state_minutes("empty"))
    hours = [float(empty[slice(*findings.day_bounds(day))].sum()) / 60.0 for day in findings.household.days()]
    long = [part for part in hours if part >= 4.0]
    if not long:
        return "On no day does it seem empty for four hours."
    away = sum(part >= 23.0 for part in long)
    return f"It seems empty for four hours or more on {len(long)} of {len(hours)} days" + (
        f", on {away} of them all day." if away else f", {np.mean(long):.1f} h on such a day."
    )


def _export(findings: Audit) -> str:
    share = float(np.nanmean(findings.household.aggregate_w < 0))
    if share < 0.01:
        return ""
    return f"The meter is below zero {share:.0%} of the time: solar power hides part of the load by day."


def quiet_rule() -> str:
    """State the rule for sleep and absence."""
    return (
        f"Sleep and absence: half-hours within {MARGIN_W:.0f} W of the base load and without a rise of "
        f"{EVENT_W:.0f} W count as quiet. Two or more quiet hours between 22 and 9 h are sleep, four or more "
        "quiet hours by day are absence, 20 or more are always absence. People who are at home and use "
        "little power count as absent."
    )


def _known_days(findings: Audit) -> float:
    return float(np.sum(~np.isnan(findings.household.aggregate_w))) / 1440.0
