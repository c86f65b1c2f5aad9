"""`meterveil report`: everything that was measured, beside the paper, on one page."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt

if TYPE_CHECKING:
    from meterveil.bench.report.reading import Results


def report(
    *,
    results: Annotated[Path, typer.Option(help="Folder of result cards.")] = Path("results"),
    out: opt.Out = Path("out/report"),
    pictures: Annotated[
        Path, typer.Option(help="Folder of the pictures that show minutes of a household (docs/report.md).")
    ] = Path("docs/img"),
    markdown: Annotated[
        Path | None,
        typer.Option(help="Also write the claims into this Markdown file, between its marks."),
    ] = None,
    leaderboards: Annotated[
        Path | None, typer.Option(help="Also save the picture of every leaderboard in this folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Only compare with this other folder: status 1 where a figure of both differs."),
    ] = None,
) -> None:
    """Put every measured figure beside the paper's: a page, and tables in CSV and LaTeX. Measures nothing."""
    from meterveil.bench.report.claims import claims
    from meterveil.bench.report.files import write_leaderboards, write_markdown, write_report
    from meterveil.bench.report.missing import missing_lines
    from meterveil.bench.report.reading import read_results
    from meterveil.bench.report.text import brief_rows
    from meterveil.cli.tables import show_file, show_notes, show_table

    found = read_results(results)
    if against:
        _compare(found, read_results(against))
        return
    page = write_report(found, out, pictures)
    if markdown:
        write_markdown(found, markdown)
    for path in write_leaderboards(found, leaderboards) if leaderboards else []:
        show_file("picture", path)
    show_table(brief_rows(claims(found)), "the paper beside the measurement", ("verdict",))
    show_notes(missing_lines(found))
    show_file("page", page)


def _compare(here: Results, there: Results) -> None:
    """Show what two folders agree on, name the first figures on which they do not, and end accordingly."""
    from meterveil.bench.report.same import compare, one_sided, rows_of
    from meterveil.cli.tables import show_notes, show_table
    from meterveil.errors import InputError

    compared = compare(here, there)
    if not compared:
        raise InputError("the two folders share no table; give results of the same tables")
    show_table(rows_of(compared), "figures of both folders, digit by digit", ("data set",))
    show_notes([f"{one.table}, {one.dataset}: {words}" for one in compared for words in one.different])
    alone = [f"{table}, {dataset}" for table, dataset in one_sided(here, there)]
    show_notes([f"in one folder alone: {'; '.join(alone)}"] if alone else [])
    if any(one.different for one in compared):
        raise typer.Exit(1)
