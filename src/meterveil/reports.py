"""What the commands leave behind: pages to open, tables to load, a summary to read by machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from meterveil import __version__
from meterveil.data import outputs, settings
from meterveil.data.household import Household
from meterveil.data.simulation import Figures, Run, figures
from meterveil.data.statistics import (
    LITTLE_KNOWN,
    Channel,
    channels,
    general_notes,
    longest_gaps,
    silent_channels,
)
from meterveil.plots import (
    Section,
    comparison_figure,
    coverage_figure,
    day_figure,
    days_figure,
    household_figure,
    library_figure,
    page,
)

_FIGURE_HEADS = (
    "known",
    "moved kWh",
    "end SoC",
    "energy cost",
    "wear",
    "total cost",
    "neutral cost",
    "clipped min",
    "RMS W",
)

RUN_FILES = ("summary.json", "trace.parquet", "day.html")
DEMO_FILES = ("report.html",)

_DEFENCES = {
    "none": "The battery rests and the meter tells everything.",
    "random_equal": (
        "The battery replays appliance signatures by chance: decoys appear, real use is partly hidden."
    ),
    "flat": "The battery holds the meter at a slowly moving level: little is left to read.",
}


def figure_rows(named: Mapping[str, Figures]) -> list[list[str]]:
    """Write the figures of runs, or of days, for people; the head of the table comes first."""
    return [["", *_FIGURE_HEADS], *([name, *_figure_cells(row)] for name, row in named.items())]


def _figure_cells(row: Figures) -> list[str]:
    return [
        f"{row.known:.1%}",
        f"{row.throughput_kwh:.2f}",
        f"{row.soc_end:.0%}",
        f"{row.energy_cost:z.2f}",
        f"{row.degradation_cost:z.2f}",
        f"{row.total_cost:z.2f}",
        f"{row.soc_neutral_cost:z.2f}",
        f"{row.clipped_minutes:,}",
        f"{row.rms_w:,.0f}",
    ]


def summary(run: Run) -> dict[str, Any]:
    """Say what was run and what came of it, in plain JSON values."""
    setup, days = run.setup, run.days()
    return {
        "format": "meterveil-simulation-1",
        "version": __version__,
        "household": run.household,
        "timezone": str(run.minutes.tz),
        "aggregate": run.aggregate,
        "notes": [*run.notes, *run.doubts()],
        "defence": run.defence,
        "start": days[0].isoformat(),
        "days": len(days),
        "seed": setup.seed,
        "soc_start": run.soc_start,
        "battery": settings.battery_values(setup.battery),
        "tariff": settings.tariff_values(setup.tariff),
        "library": {"source": setup.library.source, "digest": setup.library.digest()},
        "total": figures(run)._asdict(),
        "by_day": [{"day": day.isoformat(), **figures(run.day(day))._asdict()} for day in days],
    }


def write_run(run: Run, folder: Path) -> Path:
    """Write trace, summary and picture of a run into a folder; return the picture."""
    outputs.folder(folder, RUN_FILES)
    table = pa.Table.from_pandas(run.table(), preserve_index=False)
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), b"generator": b"meterveil"})
    outputs.write_all(
        {
            folder / "trace.parquet": lambda temporary: pq.write_table(marked, temporary),
            folder / "summary.json": outputs.text_writer(json.dumps(summary(run), indent=1) + "\n"),
            folder / "day.html": outputs.text_writer(run_page(run)),
        }
    )
    return folder / "day.html"


def run_page(run: Run) -> str:
    """Show the first day in full and, where there are more, how all of them went."""
    days = run.days()
    first = run.day(days[0])
    sections = [
        Section(
            f"{days[0]:%A %d %B %Y}",
            _DEFENCES.get(run.defence, ""),
            figure_rows({run.defence: figures(first)}),
            day_figure(first),
        )
    ]
    if len(days) > 1:
        rows = {str(day): figures(run.day(day)) for day in days} | {"all": figures(run)}
        sections.append(Section(f"{len(days)} days", "", figure_rows(rows), days_figure(run)))
    return page(f"{run.household}: {run.defence}", sections, _explain(run))


def write_demo(runs: Sequence[Run], folder: Path, attacked: Sequence[Section] = ()) -> Path:
    """Write the report that compares defences on one day; return it."""
    outputs.folder(folder, DEMO_FILES)
    return outputs.write_text(folder / "report.html", demo_page(runs, attacked))


def demo_page(runs: Sequence[Run], attacked: Sequence[Section] = ()) -> str:
    """Compare defences on one day, say how they were attacked, then show each of them and the signatures."""
    day = runs[0].days()[0]
    words = " ".join(f"{run.defence}: {_DEFENCES.get(run.defence, '')}" for run in runs)
    table = figure_rows({run.defence: figures(run) for run in runs})
    sections = [Section("Side by side", words, table, comparison_figure(runs)), *attacked]
    acting = [run for run in runs if np.any(run.battery_w)]
    sections += [Section(run.defence, _DEFENCES.get(run.defence, ""), (), day_figure(run)) for run in acting]
    library = runs[0].setup.library
    words = "Power curves of appliance uses; the battery charges or discharges along one of them."
    sections.append(Section("The decoys", words, (), library_figure(library)))
    title = f"One day in the {runs[0].household} household, {day:%d %B %Y}"
    return page(title, sections, _explain(runs[0]))


def household_file(household: Household, day: date) -> str:
    """Name the page of a household and a day."""
    words = "".join(letter if letter.isalnum() else "-" for letter in household.name.lower())
    return f"{words}-{day}.html"


def write_household(household: Household, day: date | None, folder: Path) -> Path:
    """Write the picture of a household: a day with every appliance, and what is known of every day.

    Without a day, as in a record that holds no whole one, the picture is of the whole record.
    """
    part = household.day(day) if day else household
    first, last = part.minutes[0], part.minutes[-1]
    name = household_file(household, first.date())
    outputs.folder(folder, [name])
    silent = ", ".join(silent_channels(part)).replace("_", " ")
    missing = f"No reading: {silent}." if silent else ""
    heading = f"{first:%A %d %B %Y}" if day else f"{first:%d %B %Y %H:%M} to {last:%d %B %Y %H:%M}"
    sections = [
        Section(heading, missing, (), household_figure(part, heading)),
        Section("Known minutes of every day", "", channel_rows(household), coverage_figure(household)),
    ]
    intro = f"Local time, {household.timezone}. " + _sentences(general_notes(household))
    return outputs.write_text(folder / name, page(household.name, sections, intro))


def channel_rows(household: Household) -> list[list[str]]:
    """Describe every channel, the head of the table first."""
    rows = [["channel", "known", "unit", "energy/day", "notes"]]
    for channel in channels(household):
        notes = "; ".join(channel.notes)
        rows.append([channel.name, f"{channel.coverage:.1%}", channel.unit, _energy(channel), notes])
    return rows


def _energy(channel: Channel) -> str:
    """Write the energy of a day, or of the few days that are known: little cannot speak for all."""
    unit = f"k{channel.unit}h"
    if channel.known_days == 0:
        return ""
    if channel.coverage >= LITTLE_KNOWN:
        return f"{channel.energy_kwh_per_day:.2f}\u00a0{unit}"
    energy_kwh = channel.energy_kwh_per_day * channel.known_days
    return f"{energy_kwh:.2f}\u00a0{unit} in {channel.known_days:.1f}\u00a0days".replace(" ", "\u00a0")


def gap_rows(household: Household) -> list[list[str]]:
    """List the longest gaps, the head of the table first."""
    rows = [["channels", "from", "minutes"]]
    total = len(household.appliances_w) + 1
    for gap in longest_gaps(household):
        first, others = gap.channels[0], len(gap.channels) - 1
        who = "all" if others + 1 == total > 1 else f"{first} and {others} more" if others else first
        rows.append([who, f"{gap.start:%Y-%m-%d %H:%M}", f"{gap.minutes:,}"])
    return rows


def _sentences(notes: Iterable[str]) -> str:
    """Write notes for a page: each once, with a capital and a full stop."""
    return " ".join(f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in dict.fromkeys(notes))


def _explain(run: Run) -> str:
    battery = run.setup.battery
    budget = f"{battery.budget_kwh:g} kWh a day" if np.isfinite(battery.budget_kwh) else "any amount"
    return (
        "Grey is what the household used; blue is what its meter shows with the battery at work. "
        f"The battery holds {battery.capacity_kwh:g} kWh and may move {budget}, in and out together. "
        "Costs are those of the battery alone; the neutral cost adds what it takes to start the next "
        f"day with the same charge. Load: {run.aggregate}. " + _sentences((*run.notes, *run.doubts()))
    )
