"""Command line: each verb parses, calls and prints; the work is done elsewhere.

Verbs import what they need when they run, so that `--version` and `--help` answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from meterveil import __version__
from meterveil.cli.attack import attack
from meterveil.cli.audit import audit
from meterveil.cli.base import PluginVerb, Verbs
from meterveil.cli.data import data, signatures
from meterveil.cli.demo import demo
from meterveil.cli.evaluate import evaluate
from meterveil.cli.guard import guard
from meterveil.cli.plan import plan
from meterveil.cli.report import report, results, submit
from meterveil.cli.reproduce import reproduce
from meterveil.cli.simulate import simulate
from meterveil.cli.train import export, train

app = Verbs("Smart-meter privacy with a home battery, simulated on recorded data.", add_completion=True)
app.command("audit")(audit)
app.command("plan")(plan)
app.command("simulate", cls=PluginVerb)(simulate)
app.command("demo")(demo)
app.add_typer(data, name="data")
app.command("train")(train)
app.command("attack", cls=PluginVerb)(attack)
app.command("evaluate", cls=PluginVerb)(evaluate)
app.command("export")(export)
app.add_typer(guard, name="guard")
app.add_typer(signatures, name="signatures")
app.command("reproduce")(reproduce)
app.command("report")(report)
app.command("results")(results)
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
