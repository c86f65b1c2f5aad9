"""Page, table and JSON file of a battery plan, in words for the owner of a meter."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from meterveil import __version__
from meterveil.bench.battery_plan import ENOUGH, YEAR_DAYS, Figures, Plan, Size
from meterveil.core.certificate import DAY_MINUTES, Rules, spoken_hours
from meterveil.core.tariff import DEGRADATION_PER_KWH
from meterveil.data import outputs, settings
from meterveil.data.simulation import WELL_KNOWN
from meterveil.plots.battery_plan import Cell, battery_figure, veiled_day_figure
from meterveil.plots.html import Section, page
from meterveil.plots.look import sentences

FILES = ("plan.html", "plan.json")
TABLE = "plan.csv"

_HEADS = ("bits a day", "on a bad day", "minutes missed a day", "followed", "kWh a day", "cost a year")


def check_folder(folder: Path) -> None:
    """Refuse a folder with files of these names that meterveil did not write; a table has no mark of its own."""
    outputs.folder(folder, FILES if (folder / FILES[1]).exists() else (*FILES, TABLE))


def write_plan(plan: Plan, command: str, folder: Path, read: Section | None = None) -> Path:
    """Write page, table and JSON file into a folder; return the page.

    `command` simulates the recommended battery; `read` says what a reader finds with yours.
    """
    check_folder(folder)
    texts = {
        FILES[0]: plan_page(plan, command, read),
        FILES[1]: json.dumps(values(plan, command), indent=1) + "\n",
        TABLE: pd.DataFrame(map(_flat, plan.table)).to_csv(index=False, float_format="%.6g", lineterminator="\n"),
    }
    outputs.write_all({folder / name: outputs.text_writer(text) for name, text in texts.items()})
    return folder / FILES[0]


def values(plan: Plan, command: str) -> dict[str, Any]:
    """Return settings and figures as plain JSON values."""
    enough = plan.enough
    return {
        "format": "meterveil-plan-1",
        "version": __version__,
        "household": plan.household,
        "timezone": str(plan.minutes.tz),
        "notes": [*plan.notes, *doubts(plan)],
        "start": plan.days[0].isoformat(),
        "days": len(plan.days),
        "counted_days": plan.counted,
        "history_days": len(plan.history),
        "battery": settings.battery_values(plan.setup.battery),
        "tariff": settings.tariff_values(plan.setup.tariff),
        "undefended_bits": plan.undefended_bits,
        "enough_share": ENOUGH,
        "yours": _flat(plan.yours),
        "enough": None if enough is None else _flat(enough),
        "command": command,
        "batteries": [_flat(row) for row in plan.table],
    }


def recommended(plan: Plan) -> Figures:
    """Return the battery whose settings are shown: the smallest that is enough, or else the best."""
    return plan.enough or plan.best


def rows(plan: Plan, batteries: Sequence[tuple[str, Figures]]) -> list[list[str]]:
    """Tabulate batteries, the head first and the meter without a battery after it."""
    minutes = int(Rules(protect=plan.protect).protected(np.arange(DAY_MINUTES)).sum())
    today = ["no battery", f"{plan.undefended_bits:,.0f}", "", f"{minutes:,}", "0.00%", "0.0", "0"]
    return [["", *_HEADS], today, *([name, *_cells(row)] for name, row in batteries)]


def short_rows(plan: Plan) -> list[list[str]]:
    """Tabulate your battery and the recommended one."""
    best = recommended(plan)
    named = [(f"yours: {describe(plan.yours.size)}", plan.yours)]
    if best.size != plan.yours.size:
        word = "enough" if best.is_enough else "most minutes followed"
        named.append((f"{word}: {describe(best.size)}", best))
    return rows(plan, named)


def answers(plan: Plan) -> list[str]:
    """Answer the five questions of a buyer, one sentence or two each."""
    yours, best = plan.yours, recommended(plan)
    hours = f" from {spoken_hours(plan.protect)}" if plan.protect else ""
    return [
        f"Today your meter tells anyone who reads it about {plan.undefended_bits:,.0f} bits a day{hours}. "
        "A bit is the answer to one yes-or-no question.",
        f"With your battery ({describe(yours.size)}) it tells any reader at most {yours.bits:,.0f} bits{hours} on a "
        f"usual day; one day in ten tells more than {yours.bits_90:,.0f}. The battery hides "
        f"{yours.followed:.2%} of {'these' if hours else 'all'} minutes and misses {_minutes(yours)} a day.",
        f"Your battery {_money(yours)}, wear included, its price not included.",
        _which(plan),
        f"Settings: {describe(best.size)} with the defence veil; the command is below.",
    ]


def doubts(plan: Plan) -> list[str]:
    """List what limits the answers."""
    notes = []
    if plan.protect:
        notes.append(
            f"only {spoken_hours(plan.protect)} is protected: bits and missed minutes are those of these hours; in the "
            "others the battery rests and the meter shows the load, and what a reader finds is counted all day"
        )
    if not plan.history:
        notes.append(
            "the record has no day before the simulated ones, so the veil starts from a usual week that ships with "
            "meterveil; two weeks of readings give better figures"
        )
    if len(plan.days) < 7:
        notes.append(f"only {day_count(plan)} simulated; a month shows rare days as well")
    if plan.counted < len(plan.days):
        left_out = len(plan.days) - plan.counted
        notes.append(f"{left_out} days are known for less than {WELL_KNOWN:.0%} and count only in the cost")
    unknown = float(np.mean(np.isnan(plan.load_w)))
    if unknown > 0.0005:
        notes.append(f"{unknown:.1%} of the minutes are unknown and bridged by straight lines")
    return notes


def day_count(plan: Plan) -> str:
    """Count the simulated days in words."""
    return "1 day" if len(plan.days) == 1 else f"{len(plan.days)} days"


def plan_page(plan: Plan, command: str, read: Section | None = None) -> str:
    """Render the plan as one HTML page that needs no network."""
    day = _typical_day(plan)
    inside = plan.minutes.tz_localize(None).normalize() == pd.Timestamp(day)
    shown = veiled_day_figure(plan.minutes[inside], plan.load_w[inside], plan.meter_w[inside], "")
    words = f"{day:%A %d %B %Y}: grey is what the meter shows today, blue what it shows with your battery."
    every = [(_short(row.size), row) for row in plan.table]
    sections = [
        Section("Your battery", words, short_rows(plan), shown),
        *([read] if read else []),
        Section("Which battery is enough", _chart_words(), (), battery_figure(_panels(plan))),
        Section(
            "Settings to use",
            _settings_words(plan),
            html=f'<pre style="white-space: pre-wrap">{html.escape(command)}</pre>',
        ),
        Section(
            "All batteries", "Capacity, power and energy that may be moved a day.", rows(plan, every), None, "", True
        ),
        Section("How this is computed", html="".join(f"<p>{html.escape(part)}</p>" for part in _method(plan))),
    ]
    hours = f", protected from {spoken_hours(plan.protect)}" if plan.protect else ""
    first = [sentences(doubts(plan)[:1])] if plan.protect else []
    return page(f"A battery for {plan.household}{hours}", sections, "\n".join([*first, *answers(plan)]))


def describe(size: Size) -> str:
    """Write a size in words."""
    budget = f"{size.budget_kwh:g} kWh a day" if math.isfinite(size.budget_kwh) else "no daily limit"
    return f"{size.capacity_kwh:g} kWh, {size.power_kw:g} kW, {budget}"


def _short(size: Size) -> str:
    budget = f"{size.budget_kwh:g} a day" if math.isfinite(size.budget_kwh) else "no limit"
    return f"{size.capacity_kwh:g} kWh, {size.power_kw:g} kW, {budget}"


def _which(plan: Plan) -> str:
    rule = f"follow at least {ENOUGH:.1%} of the minutes"
    if plan.enough is None:
        best, peak_kw = plan.best, float(np.nanmax(plan.load_w)) / 1000.0
        words = f"No battery of the chart is enough, which means: {rule}. Most are followed by {describe(best.size)}: "
        above = f" The load reaches {peak_kw:.1f} kW, above its power." if peak_kw > best.size.power_kw else ""
        return f"{words}{best.followed:.2%}.{above}"
    if plan.enough.size == plan.yours.size:
        return f"Your battery is the smallest of the chart that is enough, which means: {rule}."
    return f"The smallest battery that is enough has {describe(plan.enough.size)}. Enough means: {rule}."


def _chart_words() -> str:
    return (
        "Bold: bits a day that the meter still tells (median; less is better). Below: minutes a day in which the "
        "battery cannot keep the meter at its level. A black frame is your battery, a green one the smallest that is "
        f"enough: the least capacity, then power, then energy a day, that follows {ENOUGH:.1%} of the minutes."
    )


def _settings_words(plan: Plan) -> str:
    best = recommended(plan)
    return (
        f"{describe(best.size)}: {best.bits:,.0f} bits a day, {_minutes(best)} missed a day; it {_money(best)}. "
        "This command simulates it day by day:"
    )


def _method(plan: Plan) -> list[str]:
    learned = (
        f"the veil knows the usual load from {len(plan.history)} earlier days"
        if plan.history
        else "the veil starts from the usual week that ships with meterveil"
    )
    return [
        f"{day_count(plan)} from {plan.days[0]} on, simulated minute by minute with every battery, the charge "
        f"carried over midnight; {learned}. Figures are for this meter and these days; other seasons differ.",
        "Bits with a battery: the veil holds the meter at a level that it chooses at fixed times of the day. The "
        "certificate of the day counts what the meter can tell then. No reader can learn more from the readings of the "
        "minutes, by any method. It says how much is told, not what: the energy of a day shows that a house is "
        "empty. “On a bad day” is exceeded on one day in ten.",
        "Bits without a battery are an estimate: the size of the readings, as changes in whole watts, after lossless "
        "compression (LZMA).",
        f"Costs are energy at your tariff plus wear of {DEGRADATION_PER_KWH:g} for each kWh moved, over the simulated "
        f"days and scaled to {YEAR_DAYS}, with the charge of the start restored at the cheapest rate. A negative cost "
        "is a saving. The currency is that of the tariff.",
        sentences([*plan.notes, *doubts(plan)]),
    ]


def _panels(plan: Plan) -> dict[str, list[Cell]]:
    """Group the batteries by budget."""
    best = plan.enough
    panels: dict[str, list[Cell]] = {}
    for row in plan.table:
        size = row.size
        enough = best is not None and size == best.size
        mark = "yours" if size == plan.yours.size else "enough" if enough else ""
        limit = f"up to {size.budget_kwh:g} kWh moved a day" if math.isfinite(size.budget_kwh) else "no daily limit"
        cell = Cell(size.capacity_kwh, size.power_kw, row.bits, row.missed_minutes, mark)
        panels.setdefault(limit, []).append(cell)
    return panels


def _typical_day(plan: Plan) -> date:
    """Choose the known day whose energy is the median."""
    days = plan.minutes.date
    frame = pd.DataFrame({"day": days, "w": plan.load_w})
    energy = frame.groupby("day")["w"].agg(["sum", "count"])
    known = energy[energy["count"] >= WELL_KNOWN * energy["count"].max()]["sum"].sort_values(kind="stable")
    typical: date = known.index[(len(known) - 1) // 2]
    return typical


def _cells(row: Figures) -> list[str]:
    return [
        f"{row.bits:,.0f}",
        f"{row.bits_90:,.0f}",
        f"{row.missed_minutes:,.1f}",
        f"{row.followed:.2%}",
        f"{row.moved_kwh:.1f}",
        f"{row.cost * YEAR_DAYS:z,.0f}",
    ]


def _minutes(row: Figures) -> str:
    return f"{row.missed_minutes:,.1f} minutes"


def _money(row: Figures) -> str:
    year = row.cost * YEAR_DAYS
    return f"saves {-year:,.0f} a year" if round(year) < 0 else f"costs {abs(year):,.0f} a year"


def _flat(row: Figures) -> dict[str, float | None]:
    size = {name: value if math.isfinite(value) else None for name, value in row.size._asdict().items()}
    figures = {name: value for name, value in row._asdict().items() if name != "size"}
    return {**size, **figures, "cost_a_year": row.cost * YEAR_DAYS}
