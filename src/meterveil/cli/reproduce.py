"""`meterveil reproduce`: measure every table of the paper, and those beyond it, cell by cell."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the command; a command has many options

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_installed
from meterveil.cli.tables import progress, show_file, show_line, show_table
from meterveil.cli.train import NEEDED
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.bench.reproduce.cells import Entry
    from meterveil.bench.reproduce.plan import Plan
    from meterveil.bench.reproduce.runner import Engine
    from meterveil.bench.reproduce.workspace import Workspace
    from meterveil.bench.results import ThreatModel

_QUICK = Path("out/reproduce-quick")


def reproduce(
    *,
    table: Annotated[list[str] | None, typer.Option(help="Table to measure; repeatable. Default: all.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="Row of a table, such as ours; repeatable.")] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="ukdale, redd or synthetic; repeatable. Default: by table.")
    ] = None,
    threat: Annotated[str, typer.Option(help="fixed, adaptive or fixed,adaptive. Default: by table.")] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds, two attackers, short trainings: minutes, not hours.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the tables and their rows.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Show what is finished, outdated or missing.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=2, help="Trainings of each defence. Default: 5, or 3 if adaptive.")
    ] = None,
    attackers: Annotated[
        str, typer.Option(help="Names separated by commas, for a first look. Default: the paper's six, or informed.")
    ] = "",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes. Default: 2, or all processors of a cluster.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster, such as 10.0.0.1:6379 or auto.")
    ] = None,
    data: opt.Data = None,
    library: Annotated[Path | None, typer.Option(help="JSON file of signatures. Default: built from the data.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder of results. Default: results, or out/reproduce-quick.")
    ] = None,
) -> None:
    """Measure the paper's tables; repeat the command to continue an interrupted run.

    Finished cells are not measured again, unless their settings, data or library versions changed.
    """
    from dataclasses import replace

    from meterveil.bench.reproduce.cells import FULL, QUICK, choose
    from meterveil.bench.reproduce.experiments import THREATS

    effort = QUICK if quick else FULL
    if attackers:
        effort = replace(effort, attackers=dict.fromkeys(THREATS, _known(attackers)))
    threats = opt.listed(threat)
    entries = choose(
        table or (),
        dataset or (),
        cast("tuple[ThreatModel, ...]", threats),
        replace(effort, seeds=seeds) if seeds else effort,
        row or (),
    )
    if list_:
        _show_list(entries)
        return
    check_installed("reproduce", (*NEEDED, "joblib", "scipy"))
    runs_on = _engine(engine, address, workers)
    workspace = _workspace(entries, data, library, results or (_QUICK if quick else Path("results")))
    if not status:
        _check_writable(workspace)
    made = _plan(entries, workspace)
    if not status:
        _run(made, runs_on)
    _show_status(entries, made)


def _known(attackers: str) -> tuple[str, ...]:
    from meterveil.attackers.registry import check_known

    names = opt.listed(attackers)
    for name in names:
        check_known(name)
    return names


def _engine(name: str, address: str | None, workers: int | None) -> Engine:
    from meterveil.bench.reproduce.runner import WORKERS, Local, Ray

    if name == "ray":
        check_installed("--engine ray", ("ray",), "cluster")
        cluster = Ray(address, workers)
        cluster.connect()
        return cluster
    if name != "local":
        raise InputError(f"there is no engine {name!r}; known are local and ray")
    if address:
        raise InputError(f"--address {address} needs --engine ray")
    return Local(workers or WORKERS)


def _workspace(entries: Sequence[Entry], data: Path | None, library: Path | None, results: Path) -> Workspace:
    from meterveil.bench.reproduce.experiments import SYNTHETIC
    from meterveil.bench.reproduce.workspace import Workspace, built_library
    from meterveil.data.cache import cache_folder
    from meterveil.data.files import data_folder

    cache = cache_folder().resolve()
    if all(entry.cell.dataset == SYNTHETIC for entry in entries):
        return Workspace(results.resolve(), cache, None, library and library.resolve())
    folder = data_folder(data).resolve()
    return Workspace(results.resolve(), cache, folder, (library or built_library(folder, cache)).resolve())


def _check_writable(workspace: Workspace) -> None:
    """Refuse folders that cannot be written to, naming the option that changes them."""
    from meterveil.data import outputs

    options = {workspace.results: "with --results", workspace.cache: "by setting METERVEIL_CACHE"}
    for folder, option in options.items():
        try:
            outputs.folder(folder, ())
        except InputError as error:
            raise InputError(str(error).replace("with `out`", option)) from error


def _plan(entries: Sequence[Entry], workspace: Workspace) -> Plan:
    from rich.console import Console

    from meterveil.bench.reproduce.plan import plan

    with Console(stderr=True).status("reading the data"):
        return plan([entry.cell for entry in entries], workspace)


def _run(made: Plan, engine: Engine) -> None:
    """Run the plan; show how many cells are finished, the last finished task, and the time left."""
    from rich.console import Console

    from meterveil.bench.reproduce.plan import reproduce as run

    console, failures = Console(stderr=True), 0
    try:
        with progress(console=console, transient=False, speed_estimate_period=3600.0) as bar:
            shown = bar.add_task("", total=len(made.unfinished()))
            for task, error in run(made, engine):
                failures += bool(error)
                finished = Counter(made.states.values())["finished"]
                words = f"{finished} of {len(made.cells)} cells finished; {task.title}"
                bar.update(shown, advance=1, description=words)
                if error:
                    console.print(f"{task.title} failed: {error}", soft_wrap=True)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("interrupted; repeat the command to continue") from error
    if failures:
        raise InputError(f"{failures} tasks failed; finished work is kept: fix the cause and repeat the command")


def _show_status(entries: Sequence[Entry], made: Plan) -> None:
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for entry in entries:
        group = (entry.table, entry.cell.dataset, str(entry.cell.threat))
        groups.setdefault(group, Counter())[made.states[entry.cell]] += 1
    states = ("finished", "outdated", "missing")
    rows = [["table", "data set", "threat", "cells", *states]]
    for titles, counts in groups.items():
        rows.append([*titles, str(counts.total()), *(str(counts[state] or "") for state in states)])
    show_table(rows, text_columns=["data set", "threat"])
    kinds = Counter(task.kind for task in made.unfinished())
    if kinds:
        show_line("tasks left: " + ", ".join(f"{count} x {kind}" for kind, count in kinds.items()))
    if any(counts["outdated"] for counts in groups.values()):
        show_line("outdated: recorded with other settings, data, library versions or code versions")
    show_file("results", made.workspace.results)


def _show_list(entries: Sequence[Entry]) -> None:
    from meterveil.bench.reproduce.experiments import TABLES

    rows = [["table", "content", "data sets", "threats", "rows"]]
    for name in dict.fromkeys(entry.table for entry in entries):
        own = [entry for entry in entries if entry.table == name]
        datasets = ", ".join(dict.fromkeys(entry.cell.dataset for entry in own))
        threats = ", ".join(dict.fromkeys(entry.cell.threat for entry in own))
        rows.append([name, TABLES[name].title, datasets, threats, "; ".join(dict.fromkeys(entry.row for entry in own))])
    show_table(rows, text_columns=["content", "data sets", "threats", "rows"])
