"""`meterveil submit`: check results that were measured elsewhere, and copy them."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meterveil.errors import InputError

_MOST_SHOWN = 50


def submit(
    folder: Annotated[Path, typer.Argument(help="Folder that meterveil evaluate --results wrote.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the submission: a method or a group.")],
    results: Annotated[Path, typer.Option(help="Folder that gets submitted/NAME.")] = Path("results"),
    check: Annotated[bool, typer.Option("--check", help="Only check; write nothing.")] = False,
) -> None:
    """Check results, list what is missing for the leaderboard, and copy them to results/submitted/NAME."""
    from meterveil.bench.submission import read_submission, write_submission
    from meterveil.cli.tables import show_line, show_table

    found = read_submission(folder)
    if found.problems:
        shown = found.problems[:_MOST_SHOWN]
        show_table([["where", "problem"], *map(list, shown)], text_columns=("problem",))
        raise InputError(f"nothing was written; correct the {len(found.problems)} problems and submit again")
    if check:
        show_line(f"{len(found.figures)} figures are complete")
        return
    place = write_submission(results, name, found.figures, found.runs)
    show_line(f"{len(found.figures)} figures were copied to {place}")
