"""`meterveil report`, `results` and `submit`: measured figures beside the paper's, as rows, or of others."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.tables import show_file, show_line, show_notes, show_table
from meterveil.errors import InputError

Results = Annotated[Path, typer.Option(help="Folder of results.")]

_MOST_SHOWN = 50
"""Problems of a submission that are printed."""


def report(
    *,
    results: Results = Path("results"),
    out: opt.Out = Path("out/report"),
    markdown: Annotated[
        list[Path] | None,
        typer.Option(help="Also fill the tables of this Markdown file, between its marks; repeatable."),
    ] = None,
    leaderboards: Annotated[
        Path | None, typer.Option(help="Also save a picture of each leaderboard in this folder.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Only compare with this other folder: status 1 where a figure of both differs.")
    ] = None,
) -> None:
    """Show measured figures beside the paper's: a page, and tables as CSV and LaTeX. Measures nothing."""
    from meterveil.bench.report.cells import SPACE, informed_rows
    from meterveil.bench.report.claims import CLAIMS, INFORMED, claim_rows, claims, informed_markdown, write_markdown
    from meterveil.bench.report.claims import markdown as claims_markdown
    from meterveil.bench.report.comparison import missing
    from meterveil.bench.report.report_page import read_report, write_leaderboards, write_report
    from meterveil.bench.results import read_runs

    if against:
        _compare(results, against)
        return
    contents = read_report(results)
    page = write_report(contents, out)
    for path in markdown or ():
        informed = informed_markdown(informed_rows(contents.boards))
        write_markdown(path, {CLAIMS: claims_markdown(contents.whole, read_runs(results)), INFORMED: informed})
    for path in write_leaderboards(contents, leaderboards) if leaderboards else []:
        show_file("picture", path)
    rows = [[*row[:2], row[2].partition(SPACE)[0].rstrip(","), row[3]] for row in claim_rows(claims(contents.whole))]
    show_table(rows, "the paper beside the measurement", ("verdict",))
    show_notes(
        [
            f"incomplete (not measured, or too few seeds), {row.rows}: {row.command}"
            for row in missing(contents.whole).itertuples()
        ]
    )
    show_file("page", page)


def results(
    *,
    where: Annotated[str, typer.Option(help='Such as "defence=flat,threat=adaptive,metric=f1|rmse".')] = "",
    results: Results = Path("results"),
) -> None:
    """Print the measured figures that meet conditions, as CSV."""
    from meterveil.bench import results as table

    found = table.query(table.read(results), where)
    if found.empty:
        raise InputError(f"no figure meets all conditions of --where {where!r}; leave one out to see the others")
    sys.stdout.write(table.to_csv(found))


def submit(
    folder: Annotated[Path, typer.Argument(help="Folder that meterveil evaluate --results wrote.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the submission: a method or a group.")],
    results: Annotated[Path, typer.Option(help="Folder that gets submitted/NAME.")] = Path("results"),
    check: Annotated[bool, typer.Option("--check", help="Only check; write nothing.")] = False,
) -> None:
    """Check results, list what is missing for the leaderboard, and copy them to results/submitted/NAME."""
    from meterveil.bench.submission import read_submission, write_submission

    submission = read_submission(folder)
    if submission.problems:
        shown = submission.problems[:_MOST_SHOWN]
        show_table([["where", "problem"], *map(list, shown)], text_columns=("problem",))
        raise InputError(f"nothing was written; correct the {len(submission.problems)} problems and submit again")
    if check:
        show_line(f"{len(submission.figures)} figures are complete")
        return
    target = write_submission(results, name, submission.figures, submission.runs)
    show_line(f"{len(submission.figures)} figures were copied to {target}")


def _compare(here: Path, there: Path) -> None:
    """Show on which figures two folders agree; end with status 1 where they differ."""
    from meterveil.bench.results import diff, read

    difference = diff(read(here), read(there))
    if not difference.shared:
        raise InputError(f"{here} and {there} share no figure; give results of the same tables")
    show_table(difference.counts, "figures of both folders, digit by digit", ("house", "days", "threat"))
    show_notes(difference.lines())
    if len(difference.different):
        raise typer.Exit(1)
