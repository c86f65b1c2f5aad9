"""`meterveil attack`: fit attackers on a data set's training days, and measure or show what they read."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_can_fit
from meterveil.cli.tables import show_file, show_table, steps
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from meterveil.bench.trial import Houses, Trial
    from meterveil.data.household import Aggregate

_EXCLUDES = {
    "--recorded": ("--attackers", "--cross", "--held-out", "--aggregate"),
    "--cross": ("--training-days", "--held-out", "--reserve-days", "--aggregate"),
}
"""Option -> options that do not apply to it."""


def attack(
    protocol: Annotated[str, typer.Argument(help="Days and appliances of the paper: redd or ukdale.")],
    *,
    data: opt.Data = None,
    attackers: Annotated[
        str, typer.Option(help="Names separated by commas; default: all of this package but informed.")
    ] = "",
    cross: Annotated[bool, typer.Option("--cross", help="Train on other houses than the one that is read.")] = False,
    training_days: Annotated[int, typer.Option(min=2, help="Training days, from the paper's ten on.")] = 10,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Read all held-out days instead of one test day.")
    ] = False,
    reserve_days: Annotated[
        int, typer.Option(help="With --held-out: leave out the days that this many training days take.")
    ] = 0,
    aggregate: opt.Aggregate = "mains",
    recorded: Annotated[bool, typer.Option("--recorded", help="Show what --results holds; fit nothing.")] = False,
    seed: opt.Seed = 0,
    workers: opt.Workers = 2,
    results: Annotated[
        Path | None, typer.Option(help="Folder of the results table; default: out/results, with --recorded results.")
    ] = None,
    out: opt.Out = Path("out/attack"),
    pictures: opt.Pictures = None,
) -> None:
    """Fit attackers, score what they read from the meter, and write the figures and a page."""
    from meterveil.bench.attack_page import FILES, write_attack
    from meterveil.data import outputs
    from meterveil.plots import check_picture

    source = opt.load_source(aggregate)
    _check_options(
        {
            "--recorded": recorded,
            "--attackers": attackers,
            "--cross": cross,
            "--training-days": training_days != 10,
            "--held-out": held_out,
            "--reserve-days": reserve_days,
            "--aggregate": source != "mains",
        }
    )
    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, FILES)
    if recorded:
        show_file("page", write_attack(_recorded(protocol, results or Path("results")), out))
        return
    names = _names(attackers)
    outputs.folder(results or Path("out/results"), ())
    folder = data_folder(data)
    if cross:
        from meterveil.bench.trial import crossing_trials

        trials = [(trial, trial.load_houses(folder)) for trial in crossing_trials(protocol, seed)]
    else:
        trials = [_own_house(folder, protocol, source, training_days, held_out, reserve_days, seed)]
    attacks = [_attack(*trial, names, workers, results or Path("out/results"), pictures) for trial in trials]
    tables, days = zip(*attacks, strict=True)
    show_file("page", write_attack(tables, out, days))


def _own_house(
    folder: Path, name: str, aggregate: Aggregate, training_days: int, held_out: bool, reserve_days: int, seed: int
) -> tuple[Trial, Houses]:
    from meterveil.bench.trial import attack_trial
    from meterveil.data.load import load_protocol
    from meterveil.data.protocols import protocol

    paper = replace(protocol(name), aggregate=aggregate)
    household = load_protocol(folder, paper)
    trial = attack_trial(paper, household, training_days, held_out, reserve_days, seed)
    return trial, {trial.test.key: household}


def _attack(
    trial: Trial, houses: Houses, names: Sequence[str], workers: int, folder: Path, pictures: Path | None
) -> tuple[pd.DataFrame, go.Figure]:
    """Fit and score the attackers of one trial, record the figures, and print them."""
    from meterveil.bench import results
    from meterveil.bench.attack import day_figure, read, run_of, strength_figures
    from meterveil.bench.attack_page import heading, strength_chart, strength_rows
    from meterveil.plots import save

    with steps(len(names), "fitting attackers") as done:
        readings = read(trial, houses, names, workers, lambda job: done(job.name))
    run = run_of(trial, houses, names)
    figures = strength_figures(readings, run.key)
    results.write(folder, figures, [run])
    table, day = results.to_table(figures), day_figure(readings)
    show_table(strength_rows(table), heading(table))
    if pictures:
        stem = f"{trial.test.dataset}-{trial.test.house}-{trial.days}"
        save(strength_chart(table), pictures / f"{stem}-strength.png")
        save(day, pictures / f"{stem}-day.png")
    return table, day


def _recorded(name: str, folder: Path) -> list[pd.DataFrame]:
    from meterveil.bench import results
    from meterveil.bench.attack_page import heading, strength_rows, strength_tables
    from meterveil.data.protocols import protocol

    dataset = protocol(name).dataset
    tables = strength_tables(results.read(folder), dataset)
    if not tables:
        raise InputError(f"{folder} holds no attack on {dataset}; run meterveil attack {name} first")
    for table in tables:
        show_table(strength_rows(table), heading(table))
    return tables


def _names(text: str) -> tuple[str, ...]:
    """Read the names of attackers; by default, all of this package that need not know the defence."""
    from meterveil.attackers.registry import ATTACKERS, INFORMED, check_known

    names = opt.listed(text) or tuple(name for name in ATTACKERS if name not in INFORMED)
    for name in names:
        check_known(name)
    check_can_fit("attacking", names)
    return names


def _check_options(given: Mapping[str, object]) -> None:
    for option, others in _EXCLUDES.items():
        unwanted = [other for other in others if given[option] and given[other]]
        if unwanted:
            raise InputError(f"{unwanted[0]} does not apply to {option}; leave it out")
    if given["--reserve-days"] and not given["--held-out"]:
        raise InputError("--reserve-days applies to --held-out only; add that or leave --reserve-days out")
