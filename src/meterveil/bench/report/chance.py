"""What learning adds to chance at equal throughput, and what adaptive attackers read: beyond the paper."""

from __future__ import annotations

from collections.abc import Iterator

from meterveil.bench.cards import ThreatModel
from meterveil.bench.report.compare import Comparison
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.names import CHANCE, dataset_name
from meterveil.bench.report.reading import Results
from meterveil.bench.report.specs import GAP

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
                yield Comparison(TABLE, dataset, row, kind, "beyond the paper", ours=found)


def adaptive_claims(results: Results) -> Iterator[Comparison]:
    """Say what adaptive attackers read behind ours: on the paper's day, or where that is missing, many."""
    for dataset in ("ukdale", "redd"):
        table = adaptive_table(results, dataset)
        recorded = Recorded(results.of(table, dataset))
        for column, words in _WHOLES.items():
            ours = recorded.find("ours", column, "adaptive")
            row = f"{dataset_name(dataset)}: {words}{_days(ours)}"
            if ours is None:
                yield Comparison(table, dataset, row, column, "not run yet")
            else:
                why = (
                    _beside(recorded, column)
                    if table == "baseline_comparison"
                    else _elsewhere(recorded, column)
                )
                yield Comparison(table, dataset, row, column, "beyond the paper", ours=ours, why=why)


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
