"""`meterveil reproduce`: measure every table of the paper, and those beyond it, cell by cell."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from meterveil.cli.profile import show_profile
from meterveil.cli.progress import progress
from meterveil.errors import InputError, how_to_install

if TYPE_CHECKING:
    from meterveil.bench.cards import ThreatModel
    from meterveil.bench.reproduce.choosing import Effort
    from meterveil.bench.reproduce.engines import Engine
    from meterveil.bench.reproduce.place import Place
    from meterveil.bench.reproduce.plan import Plan
    from meterveil.bench.reproduce.runner import Summary
    from meterveil.bench.reproduce.specs import Cell

_NEEDED = ("gymnasium", "joblib", "safetensors", "scipy", "stable_baselines3", "torch")
_QUICK = Path("out/reproduce-quick")


def reproduce(
    *,
    table: Annotated[
        list[str] | None, typer.Option(help="Table to measure; may be given several times. Default: all.")
    ] = None,
    row: Annotated[
        list[str] | None, typer.Option(help="Row of a table, such as ours; may be given several times.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="ukdale, redd or synthetic; default: the tables' own.")
    ] = None,
    threat: Annotated[
        str, typer.Option(help="fixed, adaptive or both with a comma; default: the tables' own.")
    ] = "",
    quick: Annotated[
        bool, typer.Option(help="Two seeds, two attackers, short trainings: does it run? In minutes.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the tables and their rows.")] = False,
    status: Annotated[bool, typer.Option(help="Say what is finished and what is left.")] = False,
    profile: Annotated[
        bool, typer.Option(help="Say where the time goes, from what finished tasks took.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="File for a picture of the profile: .html, .png or .svg.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=2, help="Trainings of each defence; default: 5, or 3 where attackers adapt."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of one thread; default: 2, or all of a cluster's.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster, such as 10.0.0.1:6379 or auto.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale and redd; default: $METERVEIL_DATA.")
    ] = None,
    library: Annotated[
        Path | None, typer.Option(help="JSON file of signatures; default: built from the data.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder for the cards; default: results, or out/reproduce-quick.")
    ] = None,
) -> None:
    """Measure the paper's tables, ours beside theirs, and go on wherever an earlier run was stopped.

    Nothing that is finished is computed again: a cell is kept under the hash of all that can change it.
    """
    from meterveil.bench.reproduce.choosing import cells

    effort = _effort(quick, seeds)
    chosen = cells(table or (), dataset or (), _threats(threat), effort, row or ())
    if list_:
        _show_list(chosen)
        return
    _check_installed("reproducing", _NEEDED, "train")
    _check_picture(picture, profile)
    runs_on = _engine(engine, address, workers)
    place = _place(chosen, data, library, results or (_QUICK if quick else Path("results")))
    if not status:
        _check_writable(place)
    plan = _plan(chosen, place)
    if profile:
        show_profile(plan, picture)
        return
    if not status:
        _report(_run(plan, runs_on))
    _show_status(plan)


def _check_installed(doing: str, needed: Sequence[str], extra: str) -> None:
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise InputError(f"{doing} needs {', '.join(missing)}; get it with {how_to_install(extra)}")


def _check_picture(picture: Path | None, profile: bool) -> None:
    """Refuse a picture that could not be drawn, before the data are read."""
    from meterveil import plots

    if picture and not profile:
        raise InputError(f"--picture {picture} is one of the profile; add --profile")
    if picture:
        plots.check_picture(picture)


def _effort(quick: bool, seeds: int | None) -> Effort:
    from dataclasses import replace

    from meterveil.bench.reproduce.choosing import FULL, QUICK

    effort = QUICK if quick else FULL
    return replace(effort, seeds=seeds) if seeds else effort


def _threats(text: str) -> tuple[ThreatModel, ...]:
    named = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    return tuple(cast("ThreatModel", name) for name in named)


def _engine(name: str, address: str | None, workers: int | None) -> Engine:
    from meterveil.bench.reproduce.engines import WORKERS, Local, Ray

    if name == "ray":
        _check_installed("a cluster", ("ray",), "cluster")
        cluster = Ray(address, workers)
        cluster.connect()
        return cluster
    if name != "local":
        raise InputError(f"there is no engine {name!r}; known are local and ray")
    if address:
        raise InputError(f"--address {address} is that of a cluster; add --engine ray")
    return Local(workers or WORKERS)


def _place(chosen: Sequence[Cell], data: Path | None, library: Path | None, results: Path) -> Place:
    """Find data and signatures, before anything is begun."""
    from meterveil.bench.reproduce.place import Place, built_library
    from meterveil.bench.reproduce.specs import SYNTHETIC
    from meterveil.data.cache import cache_folder
    from meterveil.data.files import data_folder

    cache = cache_folder().resolve()
    if all(cell.dataset == SYNTHETIC for cell in chosen):
        return Place(results.resolve(), cache, None, library and library.resolve())
    folder = data_folder(data).resolve()
    return Place(results.resolve(), cache, folder, (library or built_library(folder, cache)).resolve())


def _check_writable(place: Place) -> None:
    """Refuse places that cannot hold what is written, in the words of this verb."""
    from meterveil.data import outputs

    for folder, other in ((place.results, "with --results"), (place.cache, "by setting METERVEIL_CACHE")):
        try:
            outputs.folder(folder, ())
        except InputError as error:
            raise InputError(str(error).replace("with --out", other)) from error


def _plan(chosen: Sequence[Cell], place: Place) -> Plan:
    from rich.console import Console

    from meterveil.bench.reproduce.plan import plan

    with Console(stderr=True).status("reading the data"):
        return plan(chosen, place)


def _run(plan: Plan, engine: Engine) -> Summary:
    from meterveil.bench.reproduce.runner import run

    try:
        with progress(plan) as listener:
            return run(plan, engine, listener)
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt("stopped; what is finished is kept, and the same command goes on") from error


def _report(summary: Summary) -> None:
    """Name what failed, each with its reason, and end accordingly."""
    from meterveil.cli.tables import show_line

    for title, reason in summary.failed.items():
        show_line(f"failed: {title}: {reason}", "red")
    if summary.failed:
        raise InputError(
            f"{len(summary.failed)} tasks failed, {summary.skipped} needed them; what is finished is kept: "
            "mend the cause and give the same command again"
        )


def _show_status(plan: Plan) -> None:
    from meterveil.bench.reproduce.kept import has_figures
    from meterveil.bench.reproduce.task import left
    from meterveil.cli.tables import show_file, show_line, show_table

    todo = left(plan.tasks, plan.cells, plan.place)
    unfinished = {task.key for task in todo}
    rows = [["table", "data set", "threat", "cells", "finished", "outdated"]]
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key, cell in plan.cells.items():
        groups.setdefault((cell.table, cell.dataset, cell.threat), []).append(key)
    for names, keys in groups.items():
        waiting = [plan.cells[key] for key in keys if key in unfinished]
        outdated = sum(has_figures(plan.place, cell) for cell in waiting)
        rows.append(
            [*names, str(len(keys)), str(len(keys) - len(waiting)), str(outdated) if outdated else ""]
        )
    show_table(rows, text_columns=["data set", "threat"])
    kinds = [task.kind for task in todo]
    if kinds:
        counts = ", ".join(f"{kinds.count(kind)} x {kind}" for kind in dict.fromkeys(kinds))
        show_line(f"left: {counts}")
    if any(row[-1] for row in rows[1:]):
        show_line("outdated: recorded, but by other code or libraries, from other data, or otherwise")
    show_file("results", plan.place.results)


def _show_list(chosen: Sequence[Cell]) -> None:
    from meterveil.bench.reproduce.specs import TABLES
    from meterveil.cli.tables import show_table

    rows = [["table", "what", "data sets", "threats", "rows"]]
    for name, table in TABLES.items():
        own = [cell for cell in chosen if cell.table == name]
        if own:
            datasets, threats = ({getattr(cell, part): "" for cell in own} for part in ("dataset", "threat"))
            labels = "; ".join(dict.fromkeys(cell.row.label for cell in own))
            rows.append([name, table.words, ", ".join(datasets), ", ".join(threats), labels])
    show_table(rows, text_columns=["what", "data sets", "threats", "rows"])
