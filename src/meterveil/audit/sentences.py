"""An audit in words and tables, the same for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from meterveil.audit.audit import Audit
from meterveil.audit.presence import EVENT_W, MARGIN_W, Quiet
from meterveil.audit.trained import SHIPPED, Trained
from meterveil.audit.uses import SHAPES, Use, word_of

NOON_MINUTE = 720
SURE_WORDS = ("almost certain", "likely")


def headline(found: Audit) -> str:
    """Say in a few sentences what the meter tells."""
    return " ".join([_span(found), _base(found), _sleep(found), _absence(found), _export(found)]).strip()


def coarse_warning(found: Audit) -> str:
    """Say what readings this far apart hide, and what they do not."""
    if not found.is_coarse:
        return ""
    return (
        f"The readings are {found.interval_minutes} minutes apart. That is too coarse to read appliances: a "
        "kettle or a microwave is over before the next reading, and this audit does not guess. What still "
        "shows: the base load, when the house wakes, sleeps and stands empty, and the daily rhythm. Whoever "
        "gets readings every minute or faster (an in-home display, a P1 port, a clamp) sees far more."
    )


def use_rows(found: Audit) -> list[list[str]]:
    """List the appliances with how often, when and how surely they were read; the head first."""
    rows = [["appliance", "uses", "a day", "mostly at", "sure of"]]
    days = max(_known_days(found), 1e-9)
    for name in SHAPES:
        uses = found.uses(name)
        sure = sum(word_of(use.probability) in SURE_WORDS for use in uses)
        hours = "all day" if name == "fridge" else usual_hours(found, uses)
        share = f"{sure} of {len(uses)}" if uses else "none seen"
        rows.append([name.replace("_", " "), str(len(uses)), f"{len(uses) / days:.1f}", hours, share])
    return rows


def day_rows(found: Audit, day: date) -> list[list[str]]:
    """List what happened on a day, in order of time; the fridge only adds noise here."""
    low, high = found.day_bounds(day)
    stamps = found.household.minutes
    events = [
        (
            use.start,
            [
                _clock(stamps, use.start),
                use.appliance.replace("_", " "),
                f"{use.end - use.start} min",
                f"{use.probability:.0%} {word_of(use.probability)}",
            ],
        )
        for use in found.uses_on(day)
        if use.appliance != "fridge"
    ]
    events += [
        (
            max(part.start, low),
            [
                _clock(stamps, max(part.start, low)),
                f"seems {part.state}",
                _hours(min(part.end, high) - max(part.start, low)),
                "likely" if part.sure else "unsure",
            ],
        )
        for part in found.quiet
        if part.start < high and part.end > low
    ]
    return [
        ["from", "what", "for", "how sure"],
        *(row for _, row in sorted(events, key=lambda event: event[0])),
    ]


def score_rows(trained: Trained) -> list[list[str]]:
    """List what each attacker reads on the last days; the head first."""
    rows = [["appliance", "attacker", "F1 minutes", "F1 uses", "uses"]]
    for (name, target), made in sorted(trained.scores.items(), key=lambda case: (case[0][1], case[0][0])):
        who = "shipped, never here" if name == SHIPPED else f"{name}, learned here"
        cells = ["" if np.isnan(value) else f"{value:.2f}" for value in (made.f1, made.use_f1)]
        rows.append([target.replace("_", " "), who, *cells, str(made.uses)])
    return rows


def accuracy_rows(card: Any) -> list[list[str]]:
    """List how well the shipped model read homes whose appliances are known; the head first."""
    accuracy = card.get("accuracy", {})
    rows = [["F1 of uses", *(name.replace("_", " ") for name in accuracy)]]
    for name in SHAPES:
        cells = [accuracy[home].get(name, {}).get("use_f1") for home in accuracy]
        rows.append([name.replace("_", " "), *("" if cell is None else f"{cell:.2f}" for cell in cells)])
    return rows


def usual_hours(found: Audit, uses: list[Use], count: int = 2) -> str:
    """Name the hours in which most uses begin."""
    if not uses:
        return "never"
    hours = Counter(int(found.household.minutes[use.start].hour) for use in uses)
    return ", ".join(f"{hour}\u00a0h" for hour in sorted(hour for hour, _ in hours.most_common(count)))


def usual_night(found: Audit) -> tuple[str, str] | None:
    """Return the median beginning and end of the longest sleep of each night."""
    stamps = found.household.minutes
    nights: dict[date, Quiet] = {}
    for part in found.quiet:
        if part.state == "asleep":
            evening = (stamps[part.start] - pd.Timedelta(hours=12)).date()
            held = nights.get(evening)
            if held is None or part.end - part.start > held.end - held.start:
                nights[evening] = part
    if not nights:
        return None
    begins = [_after_noon(stamps[part.start]) for part in nights.values()]
    ends = [_after_noon(stamps[part.end - 1]) + 1 for part in nights.values()]
    return _wall(float(np.median(begins))), _wall(float(np.median(ends)))


def _span(found: Audit) -> str:
    days = found.days()
    return f"{days[0]:%d %B %Y} to {days[-1]:%d %B %Y}, {_known_days(found):.1f} days of readings."


def _base(found: Audit) -> str:
    return f"When nobody does anything the house draws about {found.base_w:,.0f} W."


def _sleep(found: Audit) -> str:
    night = usual_night(found)
    if night is None:
        return "It never falls quiet at night for two hours, so its sleep cannot be read."
    return f"It is usually quiet, probably asleep, from {night[0]} to {night[1]}."


def _absence(found: Audit) -> str:
    empty = np.nan_to_num(found.state_minutes("empty"))
    hours = [float(empty[slice(*found.day_bounds(day))].sum()) / 60.0 for day in found.days()]
    long = [part for part in hours if part >= 4.0]
    if not long:
        return "It does not seem empty for four hours of any day."
    away = sum(part >= 23.0 for part in long)
    return f"It seems empty for four hours or more on {len(long)} of {len(hours)} days" + (
        f", on {away} of them all day." if away else f", {np.mean(long):.1f} h on such a day."
    )


def _export(found: Audit) -> str:
    share = float(np.nanmean(found.household.aggregate_w < 0))
    if share < 0.01:
        return ""
    return f"The meter is below zero {share:.0%} of the time: solar power hides part of what is used by day."


def quiet_rule() -> str:
    """State the rule by which sleep and absence are told."""
    return (
        f"Sleep and absence: half-hours within {MARGIN_W:.0f} W of the base load and without a rise of "
        f"{EVENT_W:.0f} W; asleep from two hours of them on between 22 and 9 h, empty from four hours on "
        "otherwise, and from 20 hours on in any case. Who sits in the dark and reads is taken for absent."
    )


def _known_days(found: Audit) -> float:
    return float(np.sum(~np.isnan(found.household.aggregate_w))) / 1440.0


def _clock(stamps: pd.DatetimeIndex, minute: int) -> str:
    return f"{stamps[minute]:%H:%M}"


def _hours(minutes: int) -> str:
    return f"{minutes / 60:.1f} h"


def _after_noon(stamp: pd.Timestamp) -> int:
    return (stamp.hour * 60 + stamp.minute - NOON_MINUTE) % 1440


def _wall(after_noon: float) -> str:
    minute = (round(after_noon) + NOON_MINUTE) % 1440
    return f"{minute // 60:02d}:{minute % 60:02d}"
