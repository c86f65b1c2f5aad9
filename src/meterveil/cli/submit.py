"""`meterveil submit`: check result cards that were measured elsewhere, and keep them."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from meterveil.errors import InputError

_MOST_SHOWN = 50


def submit(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="CARDS...", help="Files of result cards, or the folder of --results."),
    ],
    *,
    name: Annotated[str, typer.Option(help="Under which the cards are kept: a method, a group.")],
    results: Annotated[Path, typer.Option(help="Folder that gets submitted/NAME.")] = Path("results"),
    check: Annotated[bool, typer.Option(help="Only check; write nothing.")] = False,
) -> None:
    """Check result cards, say what is missing, and keep them in results/submitted/NAME.

    docs/extending.md says what a card and an entry of the leaderboard must show.
    """
    from meterveil.bench.submission import keep, read_submission
    from meterveil.cli.tables import show_line, show_table

    found = read_submission(paths)
    if found.problems:
        shown = found.problems[:_MOST_SHOWN]
        show_table([["where", "problem"], *map(list, shown)], text_columns=("problem",))
        rest = len(found.problems) - len(shown)
        more = f", and {rest} more like these" if rest else ""
        raise InputError(f"nothing was written: mend the {len(shown)} above{more}, and submit again")
    if check:
        show_line(f"{len(found.documents)} cards are complete")
        return
    files = keep(results, name, found.documents)
    show_line(f"{len(found.documents)} cards are kept in {len(files)} files below {results}/submitted/{name}")
