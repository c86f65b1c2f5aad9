"""Files of the report: the page, tables as CSV and LaTeX, and pictures of leaderboards."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import pandas as pd

from meterveil.bench import results
from meterveil.bench.report.cells import (
    board_rows,
    board_text,
    case_rows,
    dataset_name,
    latex,
    pivot_rows,
    reasons_text,
)
from meterveil.bench.report.claims import Claim, claim_rows, claims
from meterveil.bench.report.comparison import SHOWN
from meterveil.bench.report.leaderboard import read_submitted
from meterveil.bench.report.report_page import Report, ranking, report_page
from meterveil.data import outputs
from meterveil.errors import InputError
from meterveil.plots.html import save
from meterveil.plots.report import ranking_figure

PAGE, TABLES = "report.html", "tables"
_COLUMNS = (
    *("dataset", "label", "metric", "paper", "paper_cases", "value", "spread", "low", "high", "cases"),
    *("seeds", "n_days", "verdict", "reason"),
)
_CASE_COLUMNS = (
    *("dataset", "attacker", "appliance", "metric", "raw", "masked", "paper", "value", "change", "p"),
    *("spread", "seeds", "n_days", "verdict", "reason"),
)


def read_report(folder: Path) -> Report:
    """Read a folder of results, what was submitted to it, and its studies."""
    files = sorted(folder.glob(f"{results.STUDY}*.csv"))
    studies = {path.stem.removeprefix(results.STUDY): pd.read_csv(path) for path in files}
    return Report.of(results.read(folder), read_submitted(folder), studies)


def write_report(report: Report, folder: Path) -> Path:
    """Write the page and all tables into a folder, all or none; return the page."""
    texts = {folder / TABLES / name: text for name, text in _tables(report).items()}
    outputs.folder(folder, [PAGE])
    foreign = [path for path in texts if path.exists()] if not (folder / PAGE).exists() else []
    if foreign:
        raise InputError(f"{foreign[0]} exists and there is no report beside it; choose another folder")
    texts[folder / PAGE] = report_page(report)
    outputs.write_all({path: outputs.text_writer(text) for path, text in texts.items()})
    return folder / PAGE


def write_leaderboards(report: Report, folder: Path) -> list[Path]:
    """Save the picture of each leaderboard."""
    return [
        save(ranking_figure([ranking(board)]), folder / f"{board.name.replace('_', '-')}.png")
        for board in report.boards
        if not board.submitted
    ]


def _tables(report: Report) -> dict[str, str]:
    """Return the name and the text of every table that has a figure."""
    found = claims(report.whole)
    texts = {
        "claims.csv": _csv([Claim._fields, *found]),
        "claims.tex": latex(claim_rows(found), "Claims"),
    }
    for name, cells in report.tables.items():
        if cells["value"].notna().any():
            is_cases = name.startswith("attacker_")
            columns = list(_CASE_COLUMNS if is_cases else _COLUMNS)
            texts[f"{name}.csv"] = cells.to_csv(index=False, columns=columns, lineterminator="\n")
            texts |= _latex(name, cells, is_cases)
    for name, cells in report.adaptive.items():
        columns = [column for column in _COLUMNS if not column.startswith("paper")]
        texts[f"{name}_adaptive.csv"] = cells.to_csv(index=False, columns=columns, lineterminator="\n")
        texts |= _latex(f"{name}_adaptive", cells, is_cases=False)
    for board in report.boards:
        rows = board_rows(board)
        texts[f"{board.name}.csv"] = _csv(rows)
        texts[f"{board.name}.tex"] = latex(rows, f"Leaderboard, {board_text(board)}")
    return texts


def _latex(name: str, cells: pd.DataFrame, is_cases: bool) -> dict[str, str]:
    texts = {}
    for dataset, part in cells.groupby("dataset", sort=False):
        stem = name if name.endswith(str(dataset)) else f"{name}_{dataset}"
        title = SHOWN[name.removesuffix("_adaptive")].title if not is_cases else "Attackers and appliances"
        caption = f"{title}, {dataset_name(str(dataset))}. {' '.join(reasons_text(part))}".strip()
        texts[f"{stem}.tex"] = latex(case_rows(part) if is_cases else pivot_rows(part), caption)
    return texts


def _csv(rows: Iterable[Sequence[str]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().replace("\u2009", " ").replace("\u00a0", " ")
