"""What learning adds to chance at equal throughput, and what adaptive attackers read: beyond the paper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meterveil.bench.cards import ThreatModel
from meterveil.bench.report.compare import Comparison
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.names import CHANCE, dataset_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import GAP
from meterveil.bench.report.text import found_text
from meterveil.plots.html import Section

TABLE = GAP.name
_ENDING = "_difference"
_GAPS: tuple[tuple[ThreatModel, str, str, str], ...] = (
    ("fixed", "rmse_increase_percent", "difference", "ours beyond chance at equal kWh, points of RMSE"),
    ("fixed", "f1_reduction_percent", "difference", "ours beyond chance at equal kWh, points of F1"),
    (
        "adaptive",
        "strongest_f1",
        "f1_difference",
        "F1 of the strongest attacker, ours minus chance at equal kWh",
    ),
)
"""Threat model, column that is compared, how its difference is written, and in words."""

_HEADS: dict[str, tuple[str, int]] = {
    "rmse_increase_percent": ("RMSE Inc., percentage points", 1),
    "f1_reduction_percent": ("F1 Red., percentage points", 1),
    "strongest_f1": ("F1 of the strongest, 0 to 1", 3),
    "f1_leak": ("leak, share of 1", 3),
}
"""Column that is compared -> its head with the unit of a difference, and digits."""

_WHOLES = {
    "strongest_f1": "F1 of the strongest adaptive attacker",
    "f1_leak": "share of what the meter told that it still reads",
}


def gap_claims(results: Results) -> Iterator[Comparison]:
    """Say how far ours is from chance that moves as much, over the most days on which that was tested."""
    for dataset in ("ukdale", "redd"):
        recorded = Recorded(results.of(TABLE, dataset))
        for threat, column, kind, words in _GAPS:
            found = recorded.gap(f"{column}{_ENDING}", threat)
            if found:
                row = f"{dataset_name(dataset)}: {words}, {threat} attackers{_days(found)}"
                yield Comparison(TABLE, dataset, row, kind, "beyond the paper", ours=found, threat=threat)


def gap_sections(results: Results) -> Iterator[Section]:
    """Show every tested gap to chance, for each data set that has one."""
    words = GAP.words
    for dataset in [dataset for table, dataset in results.tables if table == TABLE]:
        rows = gap_rows(Recorded(results.of(TABLE, dataset)))
        if len(rows) > 1:
            yield Section(f"{GAP.title}, {dataset_name(dataset)}", words, rows)
            words = ""


def gap_rows(recorded: Recorded) -> list[list[str]]:
    """Write a row for each number of days and threat model, few days first."""
    gaps = {column: recorded.gaps(f"{column}{_ENDING}") for column in _HEADS}
    days = {place: found.n_days for found_at in gaps.values() for place, found in found_at.items()}
    rows = [["ours minus chance", *(head for head, _ in _HEADS.values())]]
    for place in sorted(days, key=lambda place: (days[place], place.threat != "fixed")):
        when = f"{days[place]} days" if days[place] > 1 else "one day"
        cells = [found_text(gaps[column].get(place), digits) for column, (_, digits) in _HEADS.items()]
        rows.append([f"{when}, {place.threat} attackers", *cells])
    return rows


def adaptive_claims(results: Results) -> Iterator[Comparison]:
    """Say what adaptive attackers read behind ours: on the paper's day, or where that is missing, many."""
    for dataset in ("ukdale", "redd"):
        table = adaptive_table(results, dataset)
        recorded = Recorded(results.of(table, dataset))
        for column, words in _WHOLES.items():
            ours = recorded.find("ours", column, "adaptive")
            row = f"{dataset_name(dataset)}: {words}{_days(ours)}"
            beyond = Comparison(table, dataset, row, column, "not run yet", threat="adaptive")
            if ours is not None:
                is_papers_day = table == "baseline_comparison"
                why = _beside(recorded, column) if is_papers_day else _elsewhere(recorded, column)
                beyond = replace(beyond, verdict="beyond the paper", ours=ours, why=why)
            yield beyond


def adaptive_table(results: Results, dataset: str) -> str:
    """Name the table whose adaptive figures of ours are shown: the paper's day, else many days."""
    tables = ("baseline_comparison", "many_days")
    measured = (
        table
        for table in tables
        if Recorded(results.of(table, dataset)).find("ours", "strongest_f1", "adaptive")
    )
    return next(measured, tables[0])


def _elsewhere(recorded: Recorded, column: str) -> str:
    beside = _beside(recorded, column)
    return "; ".join(part for part in ("many days, since the paper's day is not run yet", beside) if part)


def _beside(recorded: Recorded, column: str) -> str:
    chance = recorded.find(CHANCE, column, "adaptive")
    return f"behind chance at equal kWh {chance.value:.2f}" if chance else ""


def _days(found: Found | None) -> str:
    return f", {found.n_days} days" if found and found.n_days > 1 else ""
