"""Sentences and tables of an audit, for the terminal and for the page."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from meterveil.audit.findings import Audit
from meterveil.audit.model import SHAPES, Use
from meterveil.audit.presence import EVENT_W, MARGIN_W, Quiet
from meterveil.audit.submeters import SHIPPED, Trained

NOON_MINUTE = 720


def headline(findings: Audit) -> str:
    """Sum up the findings in a few sentences."""
    days, zone = findings.household.days(), findings.household.timezone
    sentences = [
        f"{days[0]:%d %B %Y} to {days[-1]:%d %B %Y} ({zone}), {_known_days(findings):.1f} days of readings.",
        f"The base load is about {findings.base_w:,.0f} W.",
        _sleep(findings),
        _absence(findings),
        _export(findings),
    ]
    return " ".join(sentences).strip()


def coarse_warning(findings: Audit) -> str:
    """State what readings this far apart hide, and what they show."""
    if not findings.is_coarse:
        return ""
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
        hours = "all day" if name == "fridge" else usual_hours(findings, uses)
        share = f"{sure} of {len(uses)}" if uses else "none seen"
        rows.append([name.replace("_", " "), str(len(uses)), f"{len(uses) / days:.1f}", hours, share])
    return rows


def day_rows(findings: Audit, day: date) -> list[list[str]]:
    """Tabulate the events of a day in order of time, without the fridge."""
    events = []
    for use in (use for use in findings.uses_on(day) if use.appliance != "fridge"):
        name, sure = use.appliance.replace("_", " "), f"{use.probability:.0%} {use.word}"
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
        rows.append([target.replace("_", " "), who, *cells, str(score.uses)])
    return rows


def accuracy_rows(card: Any) -> list[list[str]]:
    """Tabulate the accuracy of the shipped model on homes whose appliances are known."""
    accuracy = card.get("accuracy", {})
    rows = [["F1 of uses", *(name.replace("_", " ") for name in accuracy)]]
    for name in SHAPES:
        cells = [accuracy[home].get(name, {}).get("use_f1") for home in accuracy]
        rows.append([name.replace("_", " "), *("" if cell is None else f"{cell:.2f}" for cell in cells)])
    return rows


def usual_hours(findings: Audit, uses: list[Use], count: int = 2) -> str:
    """List the hours in which most uses begin."""
    if not uses:
        return "never"
    hours = Counter(int(findings.household.minutes[use.start].hour) for use in uses)
    return ", ".join(f"{hour}\u00a0h" for hour in sorted(hour for hour, _ in hours.most_common(count)))


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
    begin = np.median([_after_noon(stamps[part.start]) for part in nights.values()])
    end = np.median([_after_noon(stamps[part.end - 1]) + 1 for part in nights.values()])
    begin_time, end_time = (divmod((round(float(at)) + NOON_MINUTE) % 1440, 60) for at in (begin, end))
    span = "from {:02d}:{:02d} to {:02d}:{:02d}".format(*begin_time, *end_time)
    return f"The house is usually quiet, probably asleep, {span}."


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


def _after_noon(stamp: pd.Timestamp) -> int:
    return (stamp.hour * 60 + stamp.minute - NOON_MINUTE) % 1440
