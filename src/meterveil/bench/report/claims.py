"""The claims of README and the six lines that open the report, as queries over the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from meterveil.bench.report.cells import Rows, dataset_name, figure_text, paper_text
from meterveil.bench.report.comparison import METRICS, command, compare, records
from meterveil.bench.reproduce.cells import cell_rows
from meterveil.bench.reproduce.experiments import BOTH
from meterveil.bench.results import Run, where
from meterveil.data import outputs
from meterveil.errors import InputError

CLAIMS, INFORMED = "claims", "informed attackers"
"""Sections of Markdown files that are filled from the results, between the lines of `marks`."""
ADAPTIVE_NOTE = (
    "The attacker knows the defence, its settings and the habits, and learned from days that it masked (D17)"
)
_HEADLINES = {"rmse_increase_percent": "attackers' RMSE rises, %", "f1_reduction_percent": "attackers' F1 falls, %"}
_ADAPTIVE_F1 = "F1 of the strongest adaptive attacker"
_BEYOND = (
    ("many_days", "ours", f"{_ADAPTIVE_F1} with the learned defence", 2, ADAPTIVE_NOTE),
    ("many_days", "veil", f"{_ADAPTIVE_F1} with the veil", 2, ADAPTIVE_NOTE),
    (
        "gap_to_random_equal",
        "many days",
        "the same F1, learned defence minus the random baseline with equal throughput",
        3,
        "Below 0, the learned defence hides more. The interval is over days, p over trainings",
    ),
)
"""Table, row, text, digits and reason of each claim on UK-DALE that the paper does not have."""

UNKNOWN = "-"
_HEAD = ["claim", "paper", "as published", "ours", "verdict", "why"]
_COUNTED = {"differs": "different without a better direction"}


class Claim(NamedTuple):
    """One claim with the paper's figure, that of our reading of the paper, and ours."""

    text: str
    paper: str
    as_published: str
    """With the settings that fit the paper's tables (docs/fidelity.md)."""
    ours: str
    verdict: str
    reason: str
    command: str
    run: str
    """Key of the run that measured it."""


def claims(whole: pd.DataFrame) -> list[Claim]:
    """List the claims that are measured: the main result, adaptive attackers, and the random baseline."""
    found = [_main(dataset, metric, whole) for dataset in BOTH for metric in _HEADLINES]
    return [claim for claim in (*found, *(_beyond(*known, whole) for known in _BEYOND)) if claim]


def opening(whole: pd.DataFrame, counts: Mapping[str, int]) -> list[str]:
    """Write the six lines that open the page; a line whose figures are missing says how to measure them."""
    main = {(dataset, metric): _main(dataset, metric, whole) for dataset in BOTH for metric in _HEADLINES}
    lines = [_main_line(dataset, *(main[dataset, metric] for metric in _HEADLINES)) for dataset in BOTH]
    reasons = [claim.reason for claim in main.values() if claim and claim.verdict == "worse"]
    lines.append(f"Why F1 falls less than in the paper: {reasons[0]}." if reasons else "")
    lines += [_adaptive_line(whole), _random_line(whole)]
    listed = ", ".join(f"{count} {_COUNTED.get(verdict, verdict)}" for verdict, count in counts.items())
    lines.append(f"Of {sum(counts.values())} figures of the paper: {listed}.")
    return [line for line in lines if line]


def claim_rows(found: list[Claim]) -> Rows:
    """Write the claims as rows: claim, paper, as published where it is measured, ours, verdict, reason."""
    rows = [_HEAD, *(list(claim[: len(_HEAD)]) for claim in found)]
    if any(claim.as_published != UNKNOWN for claim in found):
        return rows
    place = _HEAD.index("as published")
    return [row[:place] + row[place + 1 :] for row in rows]


def markdown(whole: pd.DataFrame, runs: Mapping[str, Run]) -> str:
    """Write the claims as a Markdown table, each with the commit that measured it."""
    found = claims(whole)
    head, *rows = claim_rows(found)
    rule = ["---", *["---:"] * (len(head) - 3), *["---"] * 3]
    commits = [runs[claim.run].commit if claim.run in runs else "" for claim in found]
    return _markdown([[*head, "commit"], rule, *([*row, commit] for row, commit in zip(rows, commits, strict=True))])


def informed_markdown(rows: Rows) -> str:
    """Write what informed attackers read as a Markdown table."""
    head, *body = rows
    return _markdown([head, ["---", *["---:"] * (len(head) - 1)], *body])


def marks(name: str) -> tuple[str, str]:
    """Return the lines that begin and end a section of a Markdown file."""
    return f"<!-- {name}: meterveil report -->", f"<!-- end of {name} -->"


def write_markdown(path: Path, sections: Mapping[str, str]) -> Path:
    """Put sections between their marks in a Markdown file; a new file gets all of them."""
    if not path.exists():
        return outputs.write_text(path, "\n".join(_section(name, table) for name, table in sections.items()))
    text = path.read_text(encoding="utf-8")
    places = {name: marks(name) for name in sections if marks(name)[0] in text}
    for name, (begin, end) in places.items():
        if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
            raise InputError(f"{path} has the {name} in no clear place; write {begin} and {end} once each")
        text = text.partition(begin)[0] + _section(name, sections[name]) + text.partition(end)[2].removeprefix("\n")
    if not places:
        lines = " or ".join(" and ".join(marks(name)) for name in sections)
        raise InputError(f"{path} has no place for a table; add the lines {lines} once each")
    return outputs.write_text(path, text)


def _section(name: str, table: str) -> str:
    begin, end = marks(name)
    return f"{begin}\n{table}{end}\n"


def _markdown(rows: Rows) -> str:
    text = "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in rows)
    return text.replace("\u2009", " ").replace("\u00a0", " ")


def _main(dataset: str, metric: str, whole: pd.DataFrame) -> Claim | None:
    cells = compare("overall_transfer", dataset, whole)
    [row] = records(cells[cells["metric"] == metric])
    if row["verdict"] == "not measured":
        return None
    return Claim(
        f"{dataset_name(dataset)}, the paper's test day: {_HEADLINES[metric]}",
        paper_text(row),
        _as_published(dataset, metric, whole),
        figure_text(row, METRICS[metric].digits),
        row["verdict"],
        row["reason"],
        command("overall_transfer", dataset),
        row["run"],
    )


def _as_published(dataset: str, metric: str, whole: pd.DataFrame) -> str:
    cells = compare("as_published", dataset, whole)
    [row] = records(cells[cells["metric"] == metric])
    return UNKNOWN if row["verdict"] == "not measured" else figure_text(row, METRICS[metric].digits)


def _beyond(table: str, label: str, text: str, digits: int, reason: str, whole: pd.DataFrame) -> Claim | None:
    """Make a claim that the paper does not have."""
    row = _adaptive_figure(whole, table, label, "strongest_f1")
    if row is None:
        return None
    text = f"UK-DALE, {row['n_days']} held-out days: {text}"
    done_with = command(table, "ukdale", "adaptive")
    return Claim(text, UNKNOWN, UNKNOWN, figure_text(row, digits), "beyond the paper", reason, done_with, row["run"])


def _adaptive_figure(whole: pd.DataFrame, table: str, label: str, metric: str) -> dict[str, Any] | None:
    cell = dict(cell_rows(table, "ukdale"))[label]
    rows = records(where(whole, **cell, metric=metric, threat="adaptive").dropna(subset="value"))
    return rows[0] if rows else None


def _main_line(dataset: str, rmse: Claim | None, f1: Claim | None) -> str:
    if not rmse or not f1:
        return f"{dataset_name(dataset)}: not measured; run {command('overall_transfer', dataset)}."
    return (
        f"{dataset_name(dataset)}, the paper's test day, attackers that never saw the defence: their RMSE "
        f"rises by {rmse.ours} % (paper {rmse.paper}: {rmse.verdict}), their F1 falls by {f1.ours} % (paper "
        f"{f1.paper}: {f1.verdict})."
    )


def _adaptive_line(whole: pd.DataFrame) -> str:
    names = ("strongest_f1", "strongest_f1_undefended", "prior_f1")
    rows = [row for name in names if (row := _adaptive_figure(whole, "many_days", "ours", name))]
    if len(rows) < len(names):
        return f"Adaptive attackers: not measured; run {command('many_days', 'ukdale', 'adaptive')}."
    f1, undefended, prior = (f"{row['value']:.2f}" for row in rows)
    veil = _adaptive_figure(whole, "many_days", "veil", "strongest_f1")
    with_veil = f", with the veil {veil['value']:.2f}" if veil else ""
    return (
        f"UK-DALE, {rows[0]['n_days']} held-out days, an attacker that knows the defence: with the learned defence "
        f"it reads F1 {f1}{with_veil}; without a defence {undefended}, from routine alone {prior}."
    )


def _random_line(whole: pd.DataFrame) -> str:
    claim = _beyond(*_BEYOND[-1], whole)
    if claim is None:
        return f"Random baseline: not measured; run {command('gap_to_random_equal', 'ukdale', 'adaptive')}."
    return (
        "Learned defence minus the random baseline with equal throughput, same attackers and days: F1 "
        f"{claim.ours}. {claim.reason}."
    )
