"""The paper's figure beside ours, row by row, with a verdict and the sentence why."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from meterveil.bench.cards import ThreatModel
from meterveil.bench.report.columns import COLUMNS, Verdict, is_count, judge, tolerance
from meterveil.bench.report.lookup import CaseKey, Found, Recorded
from meterveil.bench.report.names import row_order
from meterveil.bench.report.reading import Results
from meterveil.bench.report.reasons import REASONS
from meterveil.bench.reported import cases as printed_cases
from meterveil.bench.reported import claimed


@dataclass(frozen=True)
class Comparison:
    """Hold one figure of the paper, ours, and what to think of it."""

    table: str
    dataset: str
    row: str
    column: str
    verdict: Verdict
    paper: float | None = None
    paper_of: int | None = None
    """Cases that the paper counted, where the figure is a count."""
    ours: Found | None = None
    why: str = ""
    """Why it cannot be measured, or may differ."""
    gap: str = ""
    """How far apart the figures are, where that is more than allowed."""
    threat: ThreatModel = "fixed"
    """Which attackers read ours; the paper's never adapt."""


@dataclass(frozen=True)
class TableSpec:
    """Say which rows and columns a table of the report has."""

    name: str
    title: str
    words: str
    columns: tuple[str, ...]
    datasets: tuple[str, ...] = ("ukdale", "redd")


def datasets_of(spec: TableSpec, results: Results) -> list[str]:
    """Name the data sets of a table: those it is meant for, and others on which it was measured."""
    recorded = [dataset for table, dataset in results.tables if table == spec.name]
    return list(dict.fromkeys([*spec.datasets, *recorded]))


def compare(spec: TableSpec, dataset: str, results: Results) -> list[Comparison]:
    """Compare all of a table on a data set: the paper's rows first, then those that it does not have."""
    recorded = Recorded(results.of(spec.name, dataset))
    papers = claimed.labels(spec.name, dataset)
    further = sorted((label for label in recorded.labels if label not in papers), key=natural)
    rows = sorted([*papers, *further], key=row_order)
    found = [
        compare_one(spec.name, dataset, row, column, recorded) for row in rows for column in spec.columns
    ]
    return [one for one in found if one.paper is not None or one.ours is not None]


def compare_one(table: str, dataset: str, row: str, column: str, recorded: Recorded) -> Comparison:
    """Compare one figure."""
    printed = claimed.claimed(table)
    paper, cases = printed.get((dataset, row, column)), printed.get((dataset, row, "cases"))
    ours = recorded.find(row, column)
    if ours is None:
        verdict, why = _missing(recorded.excuse(row))
        return Comparison(table, dataset, row, column, verdict, paper, _count(column, cases), None, why)
    verdict = judge(column, *_comparable(column, paper, cases, ours))
    gap = "" if paper is None else _gap(column, verdict, paper, cases, ours)
    why = REASONS.get(column, "") if gap else ""
    return Comparison(table, dataset, row, column, verdict, paper, _count(column, cases), ours, why, gap)


def compare_cases(dataset: str, results: Results) -> list[Comparison]:
    """Compare every Delta of the paper's tables of attackers and appliances with that of our own defence."""
    recorded = Recorded(results.of("overall_transfer", dataset))
    measured = recorded.cases("ours")
    return [
        _compare_case(
            dataset, CaseKey(row["attacker"], row["target"], row["metric"]), row, recorded, measured
        )
        for row in printed_cases(dataset).to_dict("records")
    ]


def _compare_case(
    dataset: str,
    key: CaseKey,
    printed: dict[object, float],
    recorded: Recorded,
    measured: dict[CaseKey, Found],
) -> Comparison:
    table, column = f"attacker_{dataset}", f"{key.metric}_delta"
    row, paper = f"{key.attacker} {key.target}", printed["delta"]
    ours = measured.get(key._replace(metric=column))
    if ours is None:
        verdict, why = _missing(recorded.case_excuse("ours", key.attacker, key.target))
        return Comparison(table, dataset, row, column, verdict, paper, why=why)
    seeds_move = printed["delta_std"] + (ours.spread or 0.0)
    verdict = judge(column, paper, ours.value, seeds_move)
    return Comparison(table, dataset, row, column, verdict, paper, None, ours)


def case_figures(
    dataset: str, results: Results
) -> Iterator[tuple[CaseKey, dict[str, float], dict[str, float]]]:
    """Return raw, masked, Delta and p of every case, the paper's and ours; without what either lacks."""
    measured = Recorded(results.of("overall_transfer", dataset)).cases("ours")
    for row in printed_cases(dataset).to_dict("records"):
        key = CaseKey(row["attacker"], row["target"], row["metric"])
        printed = {name: float(row[name]) for name in ("raw", "masked", "delta", "p_value")}
        paper = {name: value for name, value in printed.items() if not math.isnan(value)}
        masked, delta, p = (
            measured.get(key._replace(metric=f"{key.metric}{part}")) for part in ("", "_delta", "_p")
        )
        ours = {} if not masked or not delta else {"masked": masked.value, "delta": delta.value}
        if ours:
            ours["raw"] = ours["masked"] - ours["delta"]
            ours |= {"p_value": p.value} if p else {}
        yield key, paper, ours


def tally(comparisons: Sequence[Comparison]) -> dict[Verdict, int]:
    """Count the verdicts."""
    found: dict[Verdict, int] = {}
    for one in comparisons:
        found[one.verdict] = found.get(one.verdict, 0) + 1
    return found


def _missing(excuse: str) -> tuple[Verdict, str]:
    """Judge a figure that is not there: only a card can say that it cannot be measured."""
    return ("not measurable here", excuse) if excuse else ("not run yet", "")


def _comparable(
    column: str, paper: float | None, cases: float | None, ours: Found
) -> tuple[float | None, float]:
    """Turn counts into shares: the data at hand hold fewer cases than the paper's (D12)."""
    if not is_count(column):
        return paper, ours.value
    share = paper / cases if paper is not None and cases else None
    return share, ours.value / ours.of if ours.of else 0.0


def _gap(column: str, verdict: Verdict, paper: float, cases: float | None, ours: Found) -> str:
    """Say how far apart the figures are, where they are further apart than allowed."""
    if verdict not in ("better", "worse", "differs"):
        return ""
    theirs, mine = _comparable(column, paper, cases, ours)
    theirs = theirs or 0.0
    digits = 2 if is_count(column) else COLUMNS[column].digits
    allowed = tolerance(column, theirs)
    return f"{mine - theirs:+.{digits}f}{' of all' * is_count(column)}, allowed ±{allowed:.{digits}f}"


def natural(label: str) -> list[tuple[float, str]]:
    """Sort numbers in names as numbers: lambda 0 before lambda 0.25."""
    parts = re.split(r"(\d+(?:\.\d+)?)", label)
    return [(float(part), "") if part[:1].isdigit() else (-1.0, part) for part in parts if part]


def _count(column: str, cases: float | None) -> int | None:
    return round(cases) if is_count(column) and cases is not None else None
