"""Figures as people read them, and tables of figures: rows of cells, the head first."""

from __future__ import annotations

from collections.abc import Sequence

from meterveil.bench.report.columns import COLUMNS, MARKS, is_count
from meterveil.bench.report.compare import Comparison
from meterveil.bench.report.lookup import Found
from meterveil.bench.report.missing import command
from meterveil.bench.report.names import row_name

NONE = "-"
SPACE = "\u2009"
"""Within a figure: a line may break there on a phone, and a cell with it is still no words."""

LEGEND = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items() if mark)

_LEAST_P = 0.001
"""A smaller p is not told apart."""


def paper_text(one: Comparison) -> str:
    """Write the paper's figure; a dash where it has none."""
    if one.paper is None:
        return NONE
    if one.paper_of is not None:
        return f"{one.paper:.0f}/{one.paper_of}"
    return f"{one.paper:.{_digits(one)}f}"


def ours_text(one: Comparison) -> str:
    """Write our figure with its interval or its spread; a dash where there is none."""
    return NONE if one.ours is None else found_text(one.ours, _digits(one))


def found_text(found: Found | None, digits: int) -> str:
    """Write a figure; nothing where it was not measured."""
    if found is None:
        return ""
    if found.of is not None:
        return f"{found.value:.0f}/{found.of}"
    value = f"{found.value:z.{digits}f}"
    value += f"±{found.spread:.{digits}f}" if found.spread else ""
    if found.low is not None and found.high is not None:
        value += f"{SPACE}({found.low:z.{digits}f}..{found.high:z.{digits}f})"
    if found.p is None:
        return value
    p = f"p\u00a0{found.p:.3f}" if found.p >= _LEAST_P else f"p\u00a0<\u00a0{_LEAST_P}"
    return f"{value},{SPACE}{p}"


def why_text(one: Comparison) -> str:
    """Say how far apart the figures are and why, as far as either is known."""
    return "; ".join(part for part in (one.gap, one.why) if part)


def marked_text(one: Comparison) -> str:
    """Write our figure with the sign of its verdict before it."""
    return f"{MARKS[one.verdict]}\u00a0{ours_text(one) if one.ours else ''}".strip()


def claim_rows(claims: Sequence[Comparison]) -> list[list[str]]:
    """Write a row for each claim, with the command that measures it."""
    rows = [["claim", "verdict", "paper", "ours", "why", "command"]]
    return rows + [
        [one.row, one.verdict, paper_text(one), ours_text(one), why_text(one), command_of(one)]
        for one in claims
    ]


def brief_rows(claims: Sequence[Comparison]) -> list[list[str]]:
    """Write a row for each claim that fits into a terminal: no interval, no p, no reason."""
    rows = [["claim", "paper", "ours", "verdict"]]
    for one in claims:
        ours = NONE if one.ours is None else found_text(_without_bounds(one.ours), _digits(one))
        rows.append([one.row, paper_text(one), ours, one.verdict])
    return rows


def _without_bounds(found: Found) -> Found:
    return found._replace(low=None, high=None, p=None)


def command_of(one: Comparison) -> str:
    """Write what measures a figure of ours."""
    return command(one.table, one.dataset, one.threat)


def pivot_rows(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Write a row for each label: of every column the paper's figure, where it has any, and ours."""
    columns = list(dict.fromkeys(one.column for one in comparisons))
    printed = {one.column for one in comparisons if one.paper is not None}
    cells = {(one.row, one.column): one for one in comparisons}
    head = [""]
    for column in columns:
        words = COLUMNS[column].words
        head += [f"{words}, paper", "ours"] if column in printed else [words]
    rows = [head]
    for label in dict.fromkeys(one.row for one in comparisons):
        row = [row_name(label)]
        for column in columns:
            one = cells.get((label, column))
            row += [paper_text(one) if one else ""] if column in printed else []
            row.append(marked_text(one) if one else "")
        rows.append(row)
    return rows


def reason_words(comparisons: Sequence[Comparison]) -> str:
    """Say why figures are missing or differ: each reason once, with the row or column that it is about."""
    found: dict[str, str] = {}
    for one in comparisons:
        about = COLUMNS[one.column].words if one.ours else row_name(one.row)
        is_case = one.table.startswith("attacker_")  # whose reason names the appliance
        found.setdefault(one.why, "" if is_case else f"{about}: ")
    sentences = [f"{about}{why.rstrip('.')}." for why, about in found.items() if why]
    return " ".join(f"{sentence[:1].upper()}{sentence[1:]}" for sentence in sentences)


def measured_words(comparisons: Sequence[Comparison]) -> str:
    """Say over how many seeds and days was measured."""
    found = [one.ours for one in comparisons if one.ours]
    if not found:
        return ""
    seeds = _range_words([one.seeds for one in found], "seed")
    days = _range_words([one.n_days for one in found], "day")
    return f"{seeds}, {'one day' if days == '1 day' else days}."


def _range_words(counts: Sequence[int], unit: str) -> str:
    low, high = min(counts), max(counts)
    return f"{low} to {high} {unit}s" if low < high else f"{high} {unit}{'s' * (high > 1)}"


def _digits(one: Comparison) -> int:
    return 0 if is_count(one.column) else COLUMNS[one.column].digits
