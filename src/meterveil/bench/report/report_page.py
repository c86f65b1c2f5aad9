"""The report: a page of six lines, a picture and groups that fold away, and its tables as CSV and LaTeX."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from meterveil.bench import results
from meterveil.bench.metrics import UNDERTRAINED
from meterveil.bench.report.cells import (
    Rows,
    adapting_rows,
    adaptive_case_rows,
    board_rows,
    board_text,
    case_rows,
    dataset_name,
    days_text,
    defence_name,
    figure_text,
    house_name,
    latex,
    other_rows,
    pivot_rows,
    reasons_text,
    strength_rows,
)
from meterveil.bench.report.claims import ADAPTIVE_NOTE, Claim, claim_rows, claims, opening
from meterveil.bench.report.comparison import (
    COLOURS,
    MARKS,
    METRICS,
    RELATIVE,
    SHOWN,
    command,
    compare_adaptive,
    compare_all,
    missing,
    records,
    summaries,
    tally,
    tolerance_rows,
)
from meterveil.bench.report.leaderboard import Board, boards, read_submitted
from meterveil.bench.reproduce.cells import cell_rows
from meterveil.bench.reproduce.experiments import BOTH, HELD_OUT, THREATS
from meterveil.bench.results import where
from meterveil.data import outputs
from meterveil.errors import InputError
from meterveil.plots.html import Section, render, save
from meterveil.plots.look import readable
from meterveil.plots.report import Ranking, bars_figure, cases_figure, pareto_figure, ranking_figure

PAGE = "report.html"
_COLUMNS = (
    *("dataset", "label", "metric", "paper", "paper_cases", "value", "spread", "low", "high", "cases"),
    *("seeds", "n_days", "verdict", "reason"),
)
_CASE_COLUMNS = (
    *("dataset", "attacker", "appliance", "metric", "raw", "masked", "paper", "value", "change", "p"),
    *("spread", "seeds", "n_days", "verdict", "reason"),
)
_NO_FIGURE = ("overall_transfer", "many_days", "remedies")
_HEADLINES = ("rmse_increase_percent", "f1_reduction_percent")
_LEGEND = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items() if mark)
_READING = (
    f"Signs: {_LEGEND}. ± is the standard deviation over seeds (of energy and cost over several days, over "
    "days); brackets are 95 % intervals over days."
)
_CAPTION = (
    "F1 of the strongest attacker on all held-out days, for each defence that adaptive attackers have read: these "
    "know the defence and learned from meter data that it masked. Without a grey bar, no fixed attacker was measured. "
    "The table of leaderboards has all houses."
)
_STAR = " * marks an undertrained adaptive attacker, which reads less than habits tell."
_VERDICTS = (
    f"A figure is reproduced where it is within {RELATIVE:.0%} of the paper's or within the tolerance of its "
    "metric, whichever is more; a single case also where the spreads over seeds explain the gap. "
    "Otherwise it is better or worse for the household, or different where neither direction is better. "
    "Counts of significant cases compare as shares, since our UK-DALE data have 18 of the paper's 24 cases "
    "(D12)."
)
_ADAPTIVE = (
    f"{ADAPTIVE_NOTE}, with the true appliance readings as labels (D11). A leak below 0: the attacker is undertrained."
)
_BOARDS = (
    "Ranked by the F1 of the strongest adaptive attacker; fixed attackers never saw the defence. Leak: 1 = "
    "as exposed as without a defence, 0 = no better than guessing from routine. Bits: information that a "
    "minute of the meter holds about an appliance. Compare defences of similar throughput. Defences that "
    "were sent with meterveil submit are marked."
)
_GAPS = (
    "Paired differences on the same days: ± over seeds, 95 % interval over days, p of a t-test over seeds. "
    "Ours hides more where RMSE Inc. and F1 Red. are above 0 and the other two below."
)
_STUDIES = {
    "battery_hours": "What batteries do with their day: when the budget is spent, net charge, choices without effect.",
    "reproduction_time": "Processor time that the measurements take.",
    "training_observations": "Rewards, replays and probes at several learning rates and lengths.",
}
"""Studies on the page; others fill a page of the documentation."""


@dataclass(frozen=True)
class Group:
    """Sections under one heading that folds away."""

    title: str
    text: str = ""
    sections: Sequence[Section] = field(default=())


@dataclass(frozen=True)
class Report:
    """Everything that the page and the tables are made from, computed once."""

    figures: pd.DataFrame
    whole: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    """Name -> comparison with the paper; the attacker tables are `attacker_ukdale` and `attacker_redd`."""
    adaptive: dict[str, pd.DataFrame]
    boards: list[Board]
    studies: dict[str, pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        figures: pd.DataFrame,
        submitted: dict[str, pd.DataFrame] | None = None,
        studies: dict[str, pd.DataFrame] | None = None,
    ) -> Report:
        """Summarise and compare the figures of a folder of results."""
        whole = summaries(figures)
        ranked = boards(figures, whole, submitted)
        adaptive = compare_adaptive(whole)
        return cls(figures, whole, compare_all(whole, figures), adaptive, ranked, studies or {})


def read_report(folder: Path) -> Report:
    """Read a folder of results, what was submitted to it, and its studies."""
    files = sorted(folder.glob(f"{results.STUDY}*.csv"))
    studies = {path.stem.removeprefix(results.STUDY): pd.read_csv(path) for path in files}
    return Report.of(results.read(folder), read_submitted(folder), studies)


def write_report(report: Report, folder: Path) -> Path:
    """Write the page and all tables into a folder, all or none; return the page."""
    texts = {folder / "tables" / name: text for name, text in _table_files(report).items()}
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


def report_page(report: Report) -> str:
    """Write the page."""
    groups = [
        Group("The paper's tables", _READING, [*_paper_sections(report, is_ablation=False)]),
        Group("Ablations", _READING, [*_paper_sections(report, is_ablation=True)]),
        Group("Every attacker and appliance", _READING, [*_case_sections(report)]),
        Group("Adaptive attackers", _ADAPTIVE, [*_adaptive_sections(report)]),
        Group("Leaderboards", _BOARDS, [*_board_sections(report)]),
        Group("Ours minus the random baseline with equal throughput", _GAPS, [*_gap_sections(report)]),
        Group("Attacker strength", "A defence against weak attackers proves little.", [*_strength(report)]),
        Group("Studies", "", [*_study_sections(report)]),
        Group("Not measured", "", [*_missing_sections(report)]),
        Group("How verdicts are given", _VERDICTS, [Section(table=tolerance_rows())]),
    ]
    pictured = _pictured(report.boards)
    signs = {MARKS[verdict]: colour for verdict, colour in COLOURS.items()}
    return render(
        "report.html",
        "meterveil.bench.report",
        title="meterveil: the paper beside the measurement",
        opening=opening(report.whole, tally(report.tables)),
        picture=_picture(pictured),
        caption=_CAPTION + (_STAR if any(UNDERTRAINED in set(b.entries["status"]) for b in pictured) else ""),
        groups=[group for group in groups if group.sections],
        verdicts={**COLOURS, **signs},
    )


def ranking(board: Board, only_adaptive: bool = False) -> Ranking:
    """Return the scores of a leaderboard for its picture; * marks an undertrained adaptive attacker."""
    names = board.entries["defence"].map(defence_name)
    scores = board.entries.assign(name=names.where(board.entries["status"] != UNDERTRAINED, names + "*"))
    if only_adaptive and scores["adaptive"].notna().any():
        scores = scores.dropna(subset="adaptive")
    return Ranking(house_name(board), scores[["name", "adaptive", "fixed"]], board.undefended_f1, board.prior_f1)


def _pictured(ranked: Sequence[Board]) -> list[Board]:
    """Choose the boards of the first picture: the held-out days of two houses."""
    chosen = [board for board in ranked if board.days == HELD_OUT and not board.submitted] or ranked
    return sorted(chosen, key=lambda board: (board.dataset != "ukdale", board.house))[:2]


def _picture(pictured: Sequence[Board]) -> go.Figure | None:
    return ranking_figure([ranking(board, only_adaptive=True) for board in pictured]) if pictured else None


def _paper_sections(report: Report, is_ablation: bool) -> Iterator[Section]:
    for table, spec in SHOWN.items():
        if spec.is_ablation != is_ablation:
            continue
        for dataset, cells in report.tables[table].groupby("dataset", sort=False):
            if cells["value"].notna().any():
                name = dataset_name(str(dataset))
                heading = spec.title if name in spec.title else f"{spec.title}, {name}"
                figure = _table_figure(table, cells)
                notes = _notes(reasons_text(cells), command(table, str(dataset)))
                text = f"{spec.text} {_counts_text(cells)}"
                yield Section(heading, text, pivot_rows(cells), figure, html=notes, is_folded=True)


def _table_figure(table: str, cells: pd.DataFrame) -> go.Figure | None:
    if table in _NO_FIGURE:
        return None
    if table == "lambda_sweep":
        names = {"soc_neutral_cost": "cost", _HEADLINES[0]: "rmse", _HEADLINES[1]: "f1"}
        wide = cells.pivot(index="label", columns="metric", values="value").reindex(columns=[*names])
        points = wide.dropna().rename(columns=names).reset_index(names="name")
        return pareto_figure(points) if len(points) else None
    named = cells.assign(name=cells["label"].map(defence_name)).rename(columns={"value": "ours"})
    return bars_figure({METRICS[metric].words: named[named["metric"] == metric] for metric in _HEADLINES})


def _case_sections(report: Report) -> Iterator[Section]:
    for dataset in BOTH:
        cells = report.tables[f"attacker_{dataset}"]
        if cells["value"].notna().any():
            cases = cells.assign(raw=cells["value"] - cells["change"], paper=cells["masked"])
            figure = cases_figure(cases.rename(columns={"value": "ours"}), {"rmse": "RMSE, W", "f1": "F1"})
            notes = _notes(reasons_text(cells), command("overall_transfer", dataset))
            text = "The paper's test day, with our learned defence, fixed attackers."
            yield Section(dataset_name(dataset), text, case_rows(cells), figure, html=notes, is_folded=True)


def _adaptive_sections(report: Report) -> Iterator[Section]:
    for table, both in report.adaptive.items():
        for dataset, cells in both.groupby("dataset", sort=False):
            notes = _notes([], command(table, str(dataset), "adaptive"))
            heading = f"{SHOWN[table].title}, {dataset_name(str(dataset))}"
            yield Section(heading, _counts_text(cells), pivot_rows(cells), html=notes, is_folded=True)
    for dataset in BOTH:
        rows = adaptive_case_rows(report.figures, dataset)
        if rows:
            heading = f"Every attacker and appliance, {dataset_name(dataset)}"
            yield Section(heading, "The paper's test day.", rows, is_folded=True)


def _board_sections(report: Report) -> Iterator[Section]:
    for board in report.boards:
        heading = house_name(board) + (f", submitted by {board.submitted}" if board.submitted else "")
        yield Section(heading, board_text(board), board_rows(board), ranking_figure([ranking(board)]), is_folded=True)


def _gap_sections(report: Report) -> Iterator[Section]:
    columns = {
        "rmse_increase_percent": ("RMSE Inc., points", 1),
        "f1_reduction_percent": ("F1 Red., points", 1),
        "strongest_f1": ("F1 of the strongest", 3),
        "strongest_f1_leak": ("leak", 3),
    }
    rows = [["ours minus random", *(head for head, _ in columns.values())]]
    for dataset in BOTH:
        for _, cell in cell_rows("gap_to_random_equal", dataset):
            for threat in THREATS:
                part = where(report.whole, **cell, threat=threat)
                known = {row["metric"]: row for row in records(part)}
                if known:
                    name = f"{dataset_name(dataset)}, {days_text(part['n_days'].max())}, {threat} attackers"
                    rows.append([name, *(figure_text(known.get(key), unit[1]) for key, unit in columns.items())])
    if len(rows) > 1:
        yield Section(table=rows, html=_notes([], "meterveil reproduce --table gap_to_random_equal"))


def _strength(report: Report) -> Iterator[Section]:
    for dataset in BOTH:
        rows = strength_rows(report.figures, dataset)
        text = "Without a defence on the paper's test day; means over the same appliances."
        notes = _notes([], f"meterveil attack {dataset} --results results")
        yield from _tables(f"Without a defence, {dataset_name(dataset)}", text, rows, notes)
    text = "F1, the better of power and on/off head, mean over appliances."
    yield from _tables("Other days, houses and trainings", text, other_rows(report.figures))
    text = "The random baseline with equal throughput and the shipped signatures. Where F1 still rises with "
    text += "more masked copies or epochs, the attacker is undertrained."
    yield from _tables("More adaptive training", text, adapting_rows(report.figures))


def _study_sections(report: Report) -> Iterator[Section]:
    for name, text in _STUDIES.items():
        table = report.studies.get(name, pd.DataFrame({"dataset": []}))
        shown = table[table["x"].isna()] if "x" in table else table  # points of pictures are left out
        labels = [column for column in ("row", "meter", "attacker") if column in shown]
        for dataset, part in shown.groupby("dataset"):
            metrics = list(dict.fromkeys(part["metric"]))
            known: dict[str, dict[str, str]] = {}
            for cell in records(part):
                label = ", ".join(str(cell[column]) for column in labels if pd.notna(cell[column]))
                known.setdefault(label, {})[cell["metric"]] = _study_cell(cell)
            rows = [["", *map(readable, metrics)]]
            rows += [[label, *(cells.get(metric, "") for metric in metrics)] for label, cells in known.items()]
            yield Section(f"{readable(name).capitalize()}, {dataset_name(str(dataset))}", text, rows, is_folded=True)


def _study_cell(row: Mapping[str, Any]) -> str:
    if pd.isna(row["value"]):
        return ""
    value = f"{row['value']:.3g}" if abs(row["value"]) < 1000 else f"{row['value']:.0f}"
    return value if pd.isna(row["low"]) else f"{value}\u2009({row['low']:.3g}..{row['high']:.3g})"


def _missing_sections(report: Report) -> Iterator[Section]:
    lost = [
        [SHOWN[table].title if table in SHOWN else "Attackers", text]
        for table, cells in report.tables.items()
        for text in reasons_text(cells[cells["verdict"] == "not measured"])
    ]
    yield from _tables("Figures of the paper", "", [["table", "why"], *lost] if lost else [])
    head = ["command", "threat", "rows"]
    rows = [[row[name] for name in head] for row in records(missing(report.whole))]
    text = "Rows that these results do not hold over all seeds, and the command that measures them."
    yield from _tables("Not run yet", text, [head, *rows] if rows else [])


def _tables(heading: str, text: str, rows: Rows, html: str = "") -> Iterator[Section]:
    """Make a folded section of rows; none where there are none."""
    if rows:
        yield Section(heading, text, rows, html=html, is_folded=True)


def _counts_text(cells: pd.DataFrame) -> str:
    measured = cells[cells["value"].notna()]
    seeds, days = ((int(measured[name].min()), int(measured[name].max())) for name in ("seeds", "n_days"))
    texts = [f"{low} to {high}" if low < high else f"{high}" for low, high in (seeds, days)]
    return f"Seeds: {texts[0]}; days: {texts[1]}."


def _notes(reasons: Sequence[str], done_with: str) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in reasons)
    return (f"<ul>{items}</ul>" if items else "") + f"<p><code>{escape(done_with)}</code></p>"


def _table_files(report: Report) -> dict[str, str]:
    """Return the name and the text of every table that has a figure."""
    found = claims(report.whole)
    texts = {"claims.csv": _csv([Claim._fields, *found]), "claims.tex": latex(claim_rows(found), "Claims")}
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
