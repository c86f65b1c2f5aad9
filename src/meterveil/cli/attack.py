"""`meterveil attack`: fit attackers on a data set's training days, and measure or show what they read."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_can_fit
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.bench.attack import Curve, Point
    from meterveil.bench.attack_tables import CurveTable
    from meterveil.bench.trial import Houses, Trial

_CHECKED = (
    *("--recorded", "--attackers", "--cross", "--training-days", "--held-out", "--reserve-days"),
    *("--aggregate", "--adaptive", "--copies", "--epochs"),
)
_NEEDS = {"--copies": "--adaptive", "--epochs": "--adaptive", "--reserve-days": "--held-out"}
"""Option -> option without which it means nothing."""

_EXCLUDES = {
    "--recorded": ("--attackers", "--cross", "--held-out", "--adaptive", "--aggregate"),
    "--cross": ("--training-days", "--held-out", "--adaptive", "--reserve-days", "--aggregate"),
    "--adaptive": ("--aggregate",),
}
"""Option -> options that do not apply to it."""


def attack(
    protocol: Annotated[str, typer.Argument(help="Days and appliances of the paper: redd or ukdale.")],
    *,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale, redd and refit; default: $METERVEIL_DATA.")
    ] = None,
    attackers: Annotated[
        str, typer.Option(help="Names separated by commas; default: all of this package, or all networks.")
    ] = "",
    cross: Annotated[
        bool, typer.Option("--cross", help="Train on other houses than the one that is read.")
    ] = False,
    training_days: Annotated[int, typer.Option(min=2, help="Training days, from the paper's ten on.")] = 10,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Read all held-out days instead of one test day.")
    ] = False,
    reserve_days: Annotated[
        int, typer.Option(help="With --held-out: leave out the days that this many training days take.")
    ] = 0,
    aggregate: Annotated[
        str, typer.Option(help="What is read: mains, or submeters for the sum of the appliances.")
    ] = "mains",
    adaptive: Annotated[
        str, typer.Option(metavar="DEFENCE", help="Train on days that this defence masked.")
    ] = "",
    copies: Annotated[
        str, typer.Option(help="With --adaptive: masked copies to train on, such as 0,1,3,6,12,24.")
    ] = "",
    epochs: Annotated[str, typer.Option(help="With --adaptive: epochs to train, such as 2,5,10,20.")] = "",
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Show what --results holds; fit nothing.")
    ] = False,
    seed: opt.Seed = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of the results table; default: out/results, with --recorded results."),
    ] = None,
    out: opt.Out = Path("out/attack"),
    pictures: Annotated[Path | None, typer.Option(help="Also save the figures as PNG here.")] = None,
) -> None:
    """Fit attackers, score what they read from the meter, and write the figures and a page."""
    from meterveil.bench.attack_page import CURVE_FILES, FILES
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs
    from meterveil.plots import check_picture

    submeters = opt.from_submeters(aggregate)
    longer = training_days != 10
    given = (recorded, attackers, cross, longer, held_out, reserve_days, submeters, adaptive, copies, epochs)
    _check_options(dict(zip(_CHECKED, given, strict=True)))
    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, CURVE_FILES if adaptive else FILES)
    if recorded:
        show_file("page", _show_recorded(protocol, results or Path("results"), out))
        return
    names = _names(attackers, in_epochs=bool(epochs))
    places = _Places(outputs.folder(results or Path("out/results"), ()), out, pictures)
    folder = data_folder(data)
    if cross:
        from meterveil.bench.trial import crossing_trials

        trials = [(trial, trial.load_houses(folder)) for trial in crossing_trials(protocol, seed)]
    else:
        chosen = (training_days, held_out, reserve_days, seed)
        trials = [_own_house(folder, protocol, submeters, *chosen)]
    if adaptive:
        points = _points(copies, epochs)
        show_file("page", _adapt(*trials[0], adaptive, points, names, places, workers))
    else:
        show_file("page", _attack(trials, names, places, workers))


class _Places(NamedTuple):
    """Folders that are written to."""

    results: Path
    out: Path
    pictures: Path | None


def listed(text: str) -> tuple[str, ...]:
    """Split names at commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _own_house(folder: Path, name: str, submeters: bool, *chosen: int) -> tuple[Trial, Houses]:
    from meterveil.bench.trial import attack_trial
    from meterveil.data.load import load
    from meterveil.data.protocols import protocol

    paper = protocol(name)
    options = {}
    if submeters:
        paper = replace(paper, aggregate="submeters")
        options = {"appliances": paper.many_day_targets, "aggregate": "submeters"}
    household = load(folder / paper.dataset, paper.house, **options)
    training_days, held_out, reserve_days, seed = chosen
    trial = attack_trial(paper, household, training_days, bool(held_out), reserve_days, seed)
    return trial, {trial.test.key: household}


def _attack(
    trials: Sequence[tuple[Trial, Houses]], names: Sequence[str], places: _Places, workers: int
) -> Path:
    from meterveil.bench import results
    from meterveil.bench.attack import read, run_of, strength_figures
    from meterveil.bench.attack_page import day_picture, strength_chart, write_attack
    from meterveil.bench.attack_tables import heading, strength_rows
    from meterveil.cli.tables import show_table, steps
    from meterveil.plots import save

    tables, readings = [], []
    for trial, houses in trials:
        with steps(len(names), "fitting attackers") as done:
            readings.append(read(trial, houses, names, workers, lambda job: done(job.name)))
        run = run_of(trial, houses, names)
        figures = strength_figures(readings[-1], run.key)
        results.write(places.results, figures, [run])
        tables.append(results.to_table(figures))
        show_table(strength_rows(tables[-1]), heading(tables[-1]))
        if places.pictures:
            stem = f"{trial.test.dataset}-{trial.test.house}-{trial.days}"
            save(strength_chart(tables[-1]), places.pictures / f"{stem}-strength.png")
            save(day_picture(readings[-1]), places.pictures / f"{stem}-day.png")
    return write_attack(tables, places.out, readings)


def _show_recorded(name: str, folder: Path, out: Path) -> Path:
    from meterveil.bench import results
    from meterveil.bench.attack_page import write_attack
    from meterveil.bench.attack_tables import curve_tables, heading, strength_rows, strength_tables
    from meterveil.cli.tables import show_table
    from meterveil.data.protocols import protocol

    dataset, table = protocol(name).dataset, results.read(folder)
    tables = strength_tables(table, dataset)
    if not tables:
        raise InputError(f"{folder} holds no attack on {dataset}; run meterveil attack {name} first")
    for part in tables:
        show_table(strength_rows(part), heading(part))
    curves = curve_tables(table, results.read_runs(folder), dataset)
    for curve in curves:
        _show_curve(curve)
    return write_attack(tables, out, curves=curves)


def _adapt(
    trial: Trial,
    houses: Houses,
    defence: str,
    points: Sequence[Point],
    names: Sequence[str],
    places: _Places,
    workers: int,
) -> Path:
    from meterveil.bench import results
    from meterveil.bench.attack import point_figures, read, run_of, strength_figures
    from meterveil.bench.attack_page import curve_chart, write_curve
    from meterveil.bench.attack_tables import PRIOR, curve_tables
    from meterveil.cli.tables import steps
    from meterveil.plots import save

    curve = _curve(trial, defence)
    clean_names = tuple(dict.fromkeys((*names, PRIOR)))
    clean_run = run_of(trial, houses, clean_names)
    runs = {clean_run.key: clean_run}
    with steps(len(clean_names) + len(points) * len(names), "fitting attackers") as done:
        on_fit = lambda job: done(job.name)  # noqa: E731
        figures = strength_figures(read(trial, houses, clean_names, workers, on_fit), clean_run.key)
        for point in points:
            run = curve.run(point, houses, names)
            runs[run.key] = run
            figures += point_figures(curve, point, houses, names, run.key, workers, on_fit)
            results.write(places.results, figures, [*runs.values()])
    [table] = curve_tables(results.to_table(figures), runs)
    _show_curve(table)
    if places.pictures:
        stem = f"{trial.test.dataset}-{trial.test.house}-{trial.days}-{defence}"
        save(curve_chart(table), places.pictures / f"{stem}-{table.steps}.png")
    return write_curve(table, places.out)


def _curve(trial: Trial, defence: str) -> Curve:
    """Use a defence with its default settings and the signatures of this package."""
    from meterveil.bench.attack import Curve
    from meterveil.data.settings import library
    from meterveil.data.simulation import Setup
    from meterveil.defenders import defender

    return Curve(trial, f"{defence}_shipped_signatures", defender(defence), Setup(library()))


def _show_curve(curve: CurveTable) -> None:
    from meterveil.bench.attack_tables import curve_rows, heading, notes_of
    from meterveil.cli.tables import show_notes, show_table

    rows = curve_rows(curve)
    show_table(rows, heading(curve.points))
    show_notes(notes_of(rows))


def _points(copies: str, epochs: str) -> list[Point]:
    from meterveil.bench.attack import DEFAULT_COPIES, Point

    several = _numbers(copies, "--copies", 0) if copies else DEFAULT_COPIES
    if not epochs:
        return [Point(number) for number in several]
    if copies and len(several) > 1:
        raise InputError(f"--copies {copies} with --epochs would be two curves; give one number of copies")
    fixed = several[0] if copies else Point().copies
    return [Point(fixed, number) for number in _numbers(epochs, "--epochs", 1)]


def _numbers(text: str, option: str, least: int) -> tuple[int, ...]:
    try:
        numbers = tuple(sorted({int(part) for part in listed(text)}))
    except ValueError as error:
        raise InputError(f"{option} {text!r} is not a list of numbers; write it as 1,3,6") from error
    if not numbers or numbers[0] < least:
        raise InputError(f"{option} {text!r} is not allowed; give numbers from {least} on, such as 1,3,6")
    return numbers


def _names(text: str, in_epochs: bool) -> tuple[str, ...]:
    """Read the names of attackers; without any, all that can be trained in this way."""
    from meterveil.attackers.registry import ATTACKERS, check_known

    names = listed(text)
    for name in names:
        check_known(name)
    check_can_fit("attacking", ATTACKERS if in_epochs else names or ATTACKERS)
    if not in_epochs:
        return names or tuple(ATTACKERS)
    from meterveil.bench.attack import check_epochs, networks

    check_epochs(names)
    return names or networks(ATTACKERS)


def _check_options(given: Mapping[str, object]) -> None:
    """Refuse options that would be ignored."""
    for option, others in _EXCLUDES.items():
        unwanted = [other for other in others if given[option] and given[other]]
        if unwanted:
            raise InputError(f"{unwanted[0]} does not apply to {option}; leave it out")
    for option, needed in _NEEDS.items():
        if given[option] and not given[needed]:
            raise InputError(f"{option} applies to {needed} only; add that or leave {option} out")
