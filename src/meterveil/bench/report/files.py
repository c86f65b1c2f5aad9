"""What the report leaves behind: the page, tables in CSV and LaTeX, claims in Markdown, pictures."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from meterveil.bench.report.charts import board_chart
from meterveil.bench.report.claims import claims
from meterveil.bench.report.compare import Comparison
from meterveil.bench.report.latex import latex
from meterveil.bench.report.leaderboard import boards
from meterveil.bench.report.page import all_comparisons, report_page
from meterveil.bench.report.reading import Results
from meterveil.bench.report.rows import board_rows, board_words, case_rows
from meterveil.bench.report.text import (
    claim_rows,
    ours_text,
    paper_text,
    pivot_rows,
    reason_words,
)
from meterveil.data import outputs
from meterveil.errors import InputError
from meterveil.plots.saving import save

PAGE = "report.html"
TABLES = "tables"
BEGIN, END = "<!-- claims: meterveil report -->", "<!-- end of claims -->"

_CLAIM_COLUMNS = r"p{0.28\textwidth}lrrp{0.28\textwidth}"
"""Claims and reasons are sentences: they need lines of their own."""

_CSV_HEAD = (
    *("dataset", "row", "column", "paper", "paper_cases"),
    *("ours", "spread", "low", "high", "cases", "seeds", "days"),
    *("verdict", "gap", "why"),
)


def write_report(results: Results, folder: Path, pictures: Path | None = None) -> Path:
    """Write everything into a folder, all of it or nothing; return the page."""
    tables = _tables(results)
    _check(folder, tables)
    page = folder / PAGE
    writers = {folder / TABLES / name: outputs.text_writer(text) for name, text in tables.items()}
    outputs.write_all({**writers, page: outputs.text_writer(report_page(results, pictures))})
    return page


def write_markdown(results: Results, path: Path) -> Path:
    """Write the claims into a Markdown file, between its marks where it is a larger text."""
    table = f"{BEGIN}\n{markdown(results)}{END}"
    if not path.exists():
        return outputs.write_text(path, f"{table}\n")
    text = path.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise InputError(f"{path} does not say where the claims go; put {BEGIN} and {END} there, once each")
    before, _, rest = text.partition(BEGIN)
    return outputs.write_text(path, before + table + rest.partition(END)[2])


def write_leaderboards(results: Results, folder: Path) -> list[Path]:
    """Save the picture of every leaderboard that has one; those of others' submissions are on the page."""
    drawn = [(board, board_chart(board)) for board in boards(results) if not board.submitted]
    return [
        save(figure, folder / f"leaderboard-{board.table.replace('_', '-')}-{board.dataset}.png")
        for board, figure in drawn
        if figure is not None
    ]


def markdown(results: Results) -> str:
    """Write the claims as a table for a README: explaining pages as links, each table with its commits."""
    rows = [["claim", "paper", "ours", "verdict", "why", "table, at"], ["---", "---:", "---:", *["---"] * 3]]
    rows += [
        [one.row, paper_text(one), ours_text(one), one.verdict, _linked(one.why), _source(one, results)]
        for one in claims(results)
    ]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in rows)


def _source(one: Comparison, results: Results) -> str:
    return " ".join([f"`{one.table}`", *results.commits.get((one.table, one.dataset), ())])


def _linked(words: str) -> str:
    return re.sub(r"docs/[\w-]+\.md", r"[\g<0>](\g<0>)", words)


def comparisons_csv(comparisons: Iterable[Comparison]) -> str:
    """Write every figure in a line of its own, unrounded."""
    return _csv([_CSV_HEAD, *(_values(one) for one in comparisons)])


def claims_tex(results: Results) -> str:
    """Write the claims for LaTeX, without their commands, which find no room on paper."""
    return latex([row[:-1] for row in claim_rows(claims(results))], "Claims", _CLAIM_COLUMNS)


def _tables(results: Results) -> dict[str, str]:
    """Return file -> text, for every table of the report that has a row."""
    found = {
        "claims.csv": comparisons_csv(claims(results)),
        "claims.tex": claims_tex(results),
    }
    for name, comparisons in all_comparisons(results).items():
        if not any(one.ours for one in comparisons):
            continue
        found[f"{name}.csv"] = comparisons_csv(comparisons)
        for dataset in dict.fromkeys(one.dataset for one in comparisons):
            here = [one for one in comparisons if one.dataset == dataset]
            is_cases = name.startswith("attacker_")
            rows = case_rows(dataset, results) if is_cases else pivot_rows(here)
            stem = name if name.endswith(dataset) else f"{name}_{dataset}"
            found[f"{stem}.tex"] = latex(rows, f"{name}, {dataset}. {reason_words(here)}".strip())
    for board in boards(results):
        by_others = f"_{board.submitted}_{board.part}" if board.submitted else ""
        stem = f"leaderboard_{board.table}_{board.dataset}{by_others}"
        found[f"{stem}.csv"] = _csv(board_rows(board))
        caption = f"Leaderboard, {board.table}, {board.dataset}. {board_words(board)}".strip()
        found[f"{stem}.tex"] = latex(board_rows(board), caption)
    return found


def _check(folder: Path, tables: Iterable[str]) -> None:
    """Refuse to write over foreign files: tables bear no mark, so the page beside them stands for them."""
    outputs.folder(folder, [PAGE])
    present = [name for name in tables if (folder / TABLES / name).exists()]
    if present and not (folder / PAGE).exists():
        raise InputError(
            f"{folder / TABLES} holds {present[0]} and no report beside it; give --out another folder"
        )


def _values(one: Comparison) -> list[object]:
    ours = one.ours
    measured = (
        [None] * 7
        if ours is None
        else [ours.value, ours.spread, ours.low, ours.high, ours.of, ours.seeds, ours.n_days]
    )
    return [
        one.dataset,
        one.row,
        one.column,
        one.paper,
        one.paper_of,
        *measured,
        one.verdict,
        one.gap,
        one.why,
    ]


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return re.sub("[\u00a0\u2009]", " ", text.getvalue())
