"""Files of a simulation: a page to open, a table to load, and a summary in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from meterveil import __version__
from meterveil.data import outputs, settings
from meterveil.data.simulation import Figures, Run, figures
from meterveil.plots.html import Section, page
from meterveil.plots.look import sentences
from meterveil.plots.simulation import day_figure, days_figure

RUN_FILES = ("summary.json", "trace.parquet", "day.html")

_COLUMNS = {
    "known": ("known", ".1%"),
    "moved kWh": ("throughput_kwh", ".2f"),
    "end SoC": ("soc_end", ".0%"),
    "energy cost": ("energy_cost", "z.2f"),
    "wear": ("degradation_cost", "z.2f"),
    "total cost": ("total_cost", "z.2f"),
    "neutral cost": ("soc_neutral_cost", "z.2f"),
    "missed min": ("missed_minutes", ","),
    "RMS W": ("rms_w", ",.0f"),
    "bits": ("protected_bits", ",.1f"),
}
"""Head of a column -> field of the figures and its format."""
_VISIBLE_W = 50.0
"""Difference between load and meter that counts as a change of the reading."""


def figure_rows(named: Mapping[str, Figures]) -> list[list[str]]:
    """Write the figures of runs or days as a table, its head first."""
    rows = [["", *_COLUMNS]]
    for name, row in named.items():
        values = [(getattr(row, field), form) for field, form in _COLUMNS.values()]
        rows.append([name, *("-" if value is None else format(value, form) for value, form in values)])
    return rows


def write_run(run: Run, folder: Path, read: Section | None = None, found: Mapping[str, Any] | None = None) -> Path:
    """Write trace, summary and page of a run into a folder; return the page.

    `read` and `found` say what a reader finds before and after, for the page and for the summary.
    """
    outputs.folder(folder, RUN_FILES)
    table = pa.Table.from_pandas(run.table(), preserve_index=False)
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), b"generator": b"meterveil"})
    outputs.write_all(
        {
            folder / "trace.parquet": lambda temporary: pq.write_table(marked, temporary),
            folder / "summary.json": outputs.text_writer(json.dumps(summary(run, found), indent=1) + "\n"),
            folder / "day.html": outputs.text_writer(run_page(run, read)),
        }
    )
    return folder / "day.html"


def summary(run: Run, found: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return settings and figures of a run as plain JSON values."""
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
        "uses_found": None if found is None else dict(found),
        "by_day": [{"day": day.isoformat(), **figures(run.day(day))._asdict()} for day in days],
    }


def run_page(run: Run, read: Section | None = None) -> str:
    """Show the first day in full and, where there are more, the figures of every day."""
    days = run.days()
    first = run.day(days[0])
    heading = f"{days[0]:%A %d %B %Y}, {run.defence}"
    table = figure_rows({run.defence: figures(first)})
    sections = [Section(heading, caption(first), table, day_figure(first))]
    sections += [read] if read else []
    if len(days) > 1:
        rows = {str(day): figures(run.day(day)) for day in days} | {"all": figures(run)}
        sections.append(Section(f"{len(days)} days", "", figure_rows(rows), days_figure(run)))
    return page(f"{run.household}: {run.defence}", sections, explain(run))


def caption(run: Run) -> str:
    """Describe what the battery did on a day, from its minutes."""
    if not np.any(run.battery_w):
        return "The battery did nothing: the meter shows the load."
    changed = int(np.sum(np.abs(run.battery_w) > _VISIBLE_W))
    known = int(np.sum(~np.isnan(run.load_w)))
    words = [
        f"the meter is more than {_VISIBLE_W:.0f} W off the load in {changed:,} of {known:,} minutes",
        f"the load peaks at {_kw(run.load_w)}, the meter at {_kw(run.meter_w)}",
    ]
    if run.certificate:
        certified = run.certificate
        bits, missed = float(certified.protected_bits[0, 0]), int(certified.protected_missed[0, 0])
        some = bool(np.any(certified.protected_minutes < certified.minutes))
        words.append(
            f"the readings of {'the protected hours' if some else 'this day'} tell at most {bits:,.0f} bits about the "
            f"household, to any reader; the battery could not follow in {missed:,} {'of their ' if some else ''}minutes"
        )
    clipped = int(np.sum(run.clipped))
    if clipped and not run.certificate:
        words.append(f"in {clipped:,} minutes the battery could not deliver what the defence requested")
    spent = np.flatnonzero(run.budget_left_kwh() < 1e-6)
    if len(spent):
        words.append(f"the energy budget of the day was used up at {run.minutes[spent[0]]:%H:%M}")
    return sentences(words)


def explain(run: Run) -> str:
    """Say how to read the pictures and figures of a run."""
    battery = run.setup.battery
    budget = f"{battery.budget_kwh:g} kWh a day" if np.isfinite(battery.budget_kwh) else "any amount"
    return (
        "Grey is the load of the household; blue is what its meter shows with the battery. "
        f"The battery holds {battery.capacity_kwh:g} kWh and may move {budget}, in and out together. "
        "Costs are those of the battery alone; the neutral cost includes the energy to start the next "
        f"day with the same charge. Load: {run.aggregate}. Times are local, {run.minutes.tz}. "
        + sentences((*run.notes, *run.doubts()))
    )


def _kw(watts: Any) -> str:
    return f"{np.nanmax(watts) / 1000:.1f} kW"
