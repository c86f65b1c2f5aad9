"""Tables and options that all studies share: `results/study_<name>.csv` with one row for each figure."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from meterveil.bench.results import DIGITS, RUNS, STUDY, Run, current_commit, read_runs, runs_text
from meterveil.data import outputs
from meterveil.errors import InputError

COLUMNS = (
    *("dataset", "row", "meter", "attacker", "update", "x", "metric", "value", "spread", "low", "high"),
    *("seeds", "n_days", "run", "note"),
)
"""Columns in their order."""
OPTIONAL = ("meter", "attacker", "update", "x")
"""Columns of some studies only; `x` is the place of a point on the axis of a picture."""


def options(doc: str) -> argparse.ArgumentParser:
    """Make a parser with the options of every study."""
    _commit_at_start()
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of data sets; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: synthetic signatures")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the tables")
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"), help="folder of the pictures")
    parser.add_argument("--picture", action="store_true", help="only draw the recorded figures")
    return parser


def is_recorded(folder: Path, name: str) -> bool:
    """Tell whether a study has a table."""
    return (folder / f"{STUDY}{name}.csv").exists()


def read(folder: Path, name: str) -> pd.DataFrame:
    """Read the table of a study."""
    path = folder / f"{STUDY}{name}.csv"
    if not path.exists():
        raise InputError(f"{path} does not exist; run the study first")
    return pd.read_csv(path, dtype=dict.fromkeys(("row", "run", "note"), "str"))


def record(
    folder: Path,
    name: str,
    key: str,
    figures: Iterable[Mapping[str, Any]],
    settings: Mapping[str, Any],
    keys: Sequence[str] = ("dataset", "row"),
) -> None:
    """Write figures into the table of a study in place of those with the same keys."""
    fresh, run = pd.DataFrame(list(figures)).assign(run=key), Run(key, settings, commit=_commit_at_start())
    with outputs.locked(folder):
        _replace_figures(folder, name, fresh, run, keys)


@cache
def _commit_at_start() -> str:
    """Name the commit that the code was loaded from: a later one may be checked out before the study ends."""
    return current_commit()


def _replace_figures(folder: Path, name: str, fresh: pd.DataFrame, run: Run, keys: Sequence[str]) -> None:
    path = folder / f"{STUDY}{name}.csv"
    known = read(folder, name) if path.exists() else fresh.iloc[:0]
    measured = set(zip(*(fresh[column] for column in keys), strict=True))
    before = zip(*(known.get(column, pd.Series(index=known.index)) for column in keys), strict=True)
    kept = known[[values not in measured for values in before]]
    table = pd.concat([kept, fresh], ignore_index=True) if len(kept) else fresh
    table = table.reindex(columns=[column for column in COLUMNS if column in table or column not in OPTIONAL])
    order = [column for column in ("dataset", "row", "meter", "metric", "x") if column in table]
    text = table.sort_values(order, kind="stable").to_csv(index=False, float_format=f"%.{DIGITS}g")
    runs = read_runs(folder) | {run.key: run}
    outputs.write_all({path: outputs.text_writer(text), folder / RUNS: outputs.text_writer(runs_text(runs.values()))})


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Write a Markdown table whose first columns are texts and the others numbers."""
    rule = [*["---"] * texts, *["---:"] * (len(head) - texts)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def put(page: str, mark: str, text: str) -> str:
    """Replace the text between two marks of a page."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{text}\n{end}{after}"
