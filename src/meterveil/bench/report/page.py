"""The page of the report: claims first, then leaderboards, every table and picture, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from meterveil.bench.report.adaptive import adaptive_case_sections, adaptive_comparisons, adaptive_sections
from meterveil.bench.report.chance import gap_sections
from meterveil.bench.report.charts import CHARTS, board_chart, cases_chart
from meterveil.bench.report.claims import claims
from meterveil.bench.report.columns import MARKS, RELATIVE, Verdict, tolerance_rows
from meterveil.bench.report.compare import Comparison, TableSpec, compare, compare_cases, datasets_of, tally
from meterveil.bench.report.leaderboard import Board, boards
from meterveil.bench.report.missing import missing_sections
from meterveil.bench.report.names import dataset_name
from meterveil.bench.report.others import other_sections
from meterveil.bench.report.pictures import pictures
from meterveil.bench.report.reading import Results
from meterveil.bench.report.rows import board_rows, board_words, case_rows
from meterveil.bench.report.specs import SPECS
from meterveil.bench.report.strength import strength_sections
from meterveil.bench.report.text import (
    LEGEND,
    claim_rows,
    measured_words,
    pivot_rows,
    reason_words,
)
from meterveil.bench.report.verdict import verdict_words
from meterveil.plots.html import Section, page
from meterveil.plots.look import readable

_COLOURS: dict[Verdict, str] = {
    "reproduced": "#00795a",
    "better": "#0072B2",
    "worse": "#b54708",
    "differs": "#b54708",
    "not measurable here": "#80868b",
    "not run yet": "#80868b",
}
_VERDICTS = (
    f"A figure is reproduced where it is within {RELATIVE:.0%} of the paper's, or within the tolerance of "
    "its column, whichever is more; a case of one attacker and appliance also where the deviations over "
    "seeds of both sides explain the gap. Outside, it is better or worse for the household, by the column's "
    "direction. Counts of significant cases compare as shares, since the data at hand hold 18 of the "
    "paper's 24 cases of UK-DALE (D12)."
)
_CLAIMS = "What the paper claims, a line each, and what adaptive attackers read, which it leaves open."
_READING = (
    "± is the deviation over seeds, of kWh and money over several days that over days; brackets are 95 % "
    "intervals over days."
)
_BOARD = (
    "Best first by what the strongest attacker reads who was trained on days that this very defence masked "
    "(adaptive); fixed attackers never saw it. Leak is the share left of what the meter told beyond habits: "
    "at 0 nothing. Events is the F1 of uses found, by the attacker that finds most; bits is what a minute "
    "of the meter tells of an appliance, whoever reads it. Compare defences at equal kWh. What others sent "
    "with meterveil submit is marked as submitted."
)
_CASES = "Six attackers and every appliance on the paper's test day, behind our learned defence."


def report_page(results: Results, folder: Path | None = None) -> str:
    """Write the page, with the pictures that lie in a folder."""
    drawn = pictures(folder)
    sections = [*_summary(results), *_boards(results), *drawn.sections]
    for spec in SPECS:
        sections += [*_table(spec, results), *adaptive_sections(spec, results)]
    sections += [
        *_case_sections(results),
        *adaptive_case_sections(results),
        *strength_sections(results),
        *gap_sections(results),
        *other_sections(results),
    ]
    sections += [*missing_sections(results), *_rules()]
    signs = {MARKS[verdict]: colour for verdict, colour in _COLOURS.items()}
    colours: dict[str, str] = {**{str(verdict): colour for verdict, colour in _COLOURS.items()}, **signs}
    title, intro = "meterveil: the paper beside the measurement", verdict_words(results) or _CLAIMS
    shown = [replace(one, html=drawn.html.get(one.heading, "")) for one in sections]
    return page(title, shown, intro, verdicts=colours, has_contents=True)


def all_comparisons(results: Results) -> dict[str, list[Comparison]]:
    """Compare every table of the paper, and ours beyond it."""
    found = {
        f"{spec.name}{ending}": [
            one for dataset in datasets_of(spec, results) for one in compared(spec, dataset, results)
        ]
        for spec in SPECS
        for ending, compared in (("", compare), ("_adaptive", adaptive_comparisons))
    }
    return found | {f"attacker_{dataset}": compare_cases(dataset, results) for dataset in ("ukdale", "redd")}


def _summary(results: Results) -> Iterator[Section]:
    counts = tally([one for several in all_comparisons(results).values() for one in several])
    shown = [verdict for verdict in MARKS if verdict != "beyond the paper"]
    said = ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in shown)
    words = f"{_CLAIMS} Of all the paper's figures: {said}. {_READING} Signs: {LEGEND}."
    yield Section("Claims", words, _small_print(claim_rows(claims(results))), is_stacked=True)


def _small_print(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Put the last cell of each row under its first one: a command is long, and read by few."""
    head, *body = rows
    return [list(head[:-1]), *([f"{row[0]}\n{row[-1]}", *row[1:-1]] for row in body)]


def _rules() -> Iterator[Section]:
    yield Section("How verdicts are given", _VERDICTS, tolerance_rows())


def _boards(results: Results) -> Iterator[Section]:
    words = _BOARD
    for board in boards(results):
        heading = f"Leaderboard: {dataset_name(board.dataset)}, {_days(board)}{_by_others(board)}"
        said = " ".join(part for part in (words, board_words(board)) if part)
        yield Section(heading, said, board_rows(board), board_chart(board))
        words = "Read as the first one."


def _by_others(board: Board) -> str:
    part = f", part {board.part}" if board.part > 1 else ""
    return f", submitted by {board.submitted} ({readable(board.table)}{part})" if board.submitted else ""


def _days(board: Board) -> str:
    known = [one.fixed_f1 or one.adaptive_f1 for one in board.standings]
    days = max(found.n_days for found in known if found)
    return f"{days} days" if days > 1 else "one day"


def _table(spec: TableSpec, results: Results) -> Iterator[Section]:
    """Show a table for each data set, with its picture; a table that was never run is listed at the end."""
    words = spec.words
    for dataset in datasets_of(spec, results):
        if not results.of(spec.name, dataset):
            continue
        comparisons = compare(spec, dataset, results)
        draw = CHARTS.get(spec.name)
        name = dataset_name(dataset)
        heading = spec.title if name in spec.title else f"{spec.title}, {name}"
        said = " ".join(
            part for part in (words, measured_words(comparisons), reason_words(comparisons)) if part
        )
        yield Section(heading, said, pivot_rows(comparisons), draw(comparisons) if draw else None)
        words = ""


def _case_sections(results: Results) -> Iterator[Section]:
    for dataset in ("ukdale", "redd"):
        if results.of("overall_transfer", dataset):
            heading = f"Every attacker and appliance, {dataset_name(dataset)}"
            words = " ".join([_CASES, reason_words(compare_cases(dataset, results))]).strip()
            yield Section(heading, words, case_rows(dataset, results), cases_chart(dataset, results))
