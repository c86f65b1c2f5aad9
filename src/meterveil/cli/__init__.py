"""The command line: each verb parses, calls and prints; the work is done elsewhere.

Verbs import what they need when they run, so that `--version` and `--help` answer at once.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from meterveil import __version__
from meterveil.cli.attack import attack
from meterveil.cli.audit import audit
from meterveil.cli.data import app as data
from meterveil.cli.demo import demo
from meterveil.cli.evaluate import evaluate
from meterveil.cli.export import export
from meterveil.cli.joining import JoiningCommand
from meterveil.cli.options import spoken
from meterveil.cli.report import report
from meterveil.cli.reproduce import reproduce
from meterveil.cli.signatures import app as signatures
from meterveil.cli.simulate import simulate
from meterveil.cli.submit import submit
from meterveil.cli.train import train
from meterveil.endings import ending_in_one_line


class _Verbs(TyperGroup):
    """Turn what a user can mend into one red line, and an interrupt into a short one."""

    def invoke(self, ctx: Any) -> Any:
        with ending_in_one_line(spoken):
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Verbs,
    help="Smart-meter privacy that works on a real home battery.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data, name="data")
app.add_typer(signatures, name="signatures")
app.command("simulate", cls=JoiningCommand)(simulate)
app.command("demo")(demo)
app.command("attack", cls=JoiningCommand)(attack)
app.command("audit")(audit)
app.command("train")(train)
app.command("evaluate", cls=JoiningCommand)(evaluate)
app.command("report")(report)
app.command("export")(export)
app.command("reproduce")(reproduce)
app.command("submit")(submit)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"meterveil {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    del version
