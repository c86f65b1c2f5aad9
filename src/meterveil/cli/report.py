"""`meterveil report` and `meterveil results`: the measured figures, beside the paper's or as rows."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from meterveil.cli import options as opt

Results = Annotated[Path, typer.Option(help="Folder of results.")]


def report(
    *,
    results: Results = Path("results"),
    out: opt.Out = Path("out/report"),
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the claims into this Markdown file, between its marks.")
    ] = None,
    leaderboards: Annotated[
        Path | None, typer.Option(help="Also save a picture of each leaderboard in this folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Only compare with this other folder: status 1 where a figure of both differs."),
    ] = None,
) -> None:
    """Show measured figures beside the paper's: a page, and tables as CSV and LaTeX. Measures nothing."""
    from meterveil.bench.report.cells import SPACE
    from meterveil.bench.report.claims import claim_rows, claims, write_markdown
    from meterveil.bench.report.claims import markdown as claims_table
    from meterveil.bench.report.comparison import missing
    from meterveil.bench.report.report_page import read_report, write_leaderboards, write_report
    from meterveil.bench.results import read_runs
    from meterveil.cli.tables import show_file, show_notes, show_table

    if against:
        _compare(results, against)
        return
    found = read_report(results)
    page = write_report(found, out)
    if markdown:
        write_markdown(markdown, claims_table(found.whole, read_runs(results)))
    for path in write_leaderboards(found, leaderboards) if leaderboards else []:
        show_file("picture", path)
    rows = [
        [*row[:2], row[2].partition(SPACE)[0].rstrip(","), row[3]] for row in claim_rows(claims(found.whole))
    ]
    show_table(rows, "the paper beside the measurement", ("verdict",))
    show_notes([f"not measured, {row.rows}: {row.command}" for row in missing(found.whole).itertuples()])
    show_file("page", page)


def results(
    *,
    where: Annotated[str, typer.Option(help='Such as "defence=flat,threat=adaptive,metric=f1|rmse".')] = "",
    results: Results = Path("results"),
) -> None:
    """Print the measured figures that meet conditions, as CSV."""
    from meterveil.bench import results as table

    sys.stdout.write(table.to_csv(table.where(table.read(results), **table.parse_where(where))))


def _compare(here: Path, there: Path) -> None:
    """Show on which figures two folders agree; end with status 1 where they differ."""
    from meterveil.bench.results import diff, read
    from meterveil.cli.tables import show_notes, show_table
    from meterveil.errors import InputError

    found = diff(read(here), read(there))
    if not found.shared:
        raise InputError(f"{here} and {there} share no figure; give results of the same tables")
    show_table(found.counts, "figures of both folders, digit by digit", ("house", "days", "threat"))
    show_notes(found.lines())
    if len(found.different):
        raise typer.Exit(1)
