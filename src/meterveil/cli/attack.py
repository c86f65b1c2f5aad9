"""`meterveil attack`: fit the attackers on a data set's training days and record what they read."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from meterveil.cli import options as opt
from meterveil.cli.adaptive import curve_of, measured_points, points, write_page
from meterveil.cli.attack_tables import show_curve, show_recorded, show_strength
from meterveil.cli.attack_trials import DaysAsked, crossing_trials, load_houses, own_house_trial
from meterveil.cli.base import check_installed
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Job
    from meterveil.bench.adaptive_curve import Curve, Point
    from meterveil.bench.strength import Trial


def attack(
    protocol: Annotated[str, typer.Argument(help="Days and appliances of the paper: redd or ukdale.")],
    *,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale, redd and refit; default: $METERVEIL_DATA.")
    ] = None,
    attackers: Annotated[
        str,
        typer.Option(
            help="Names separated by commas; default: all of meterveil's own, with --epochs all networks."
        ),
    ] = "",
    cross: Annotated[bool, typer.Option(help="Learn from other houses than the one that is read.")] = False,
    training_days: Annotated[int, typer.Option(min=2, help="More than the protocol's ten go on.")] = 10,
    held_out: Annotated[bool, typer.Option(help="Score all held-out days, not the paper's one.")] = False,
    reserve_days: Annotated[
        int, typer.Option(help="With --held-out: read no day that this many training days would take.")
    ] = 0,
    aggregate: Annotated[
        str, typer.Option(help="What is read: mains, or submeters for the sum of the appliances asked for.")
    ] = "mains",
    adaptive: Annotated[
        str, typer.Option(metavar="DEFENCE", help="Adapt to what this defence makes of the meter.")
    ] = "",
    copies: Annotated[
        str, typer.Option(help="With --adaptive: masked copies to learn from, such as 0,1,3,6,12,24.")
    ] = "",
    epochs: Annotated[str, typer.Option(help="With --adaptive: epochs to train, such as 2,5,10,20.")] = "",
    recorded: Annotated[bool, typer.Option(help="Only show what --results holds; fit nothing.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder for the result cards; default: out/results, with --recorded results."),
    ] = None,
    out: opt.Out = Path("out/attack"),
    pictures: Annotated[
        Path | None, typer.Option(help="Also save the figures as PNG in this folder.")
    ] = None,
) -> None:
    """Fit the attackers, score what they read out of the meter; write result cards and a page."""
    from meterveil.bench.attack_page import CURVE_FILES, FILES
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs
    from meterveil.plots import check_picture

    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, CURVE_FILES if adaptive else FILES)
    if not adaptive:
        _refuse({"--copies": copies, "--epochs": epochs}, "is for --adaptive alone; add it or leave this out")
    submeters = opt.from_submeters(aggregate)
    if adaptive:
        _refuse({"--aggregate": submeters}, "does not apply to --adaptive: it reads the mains; leave it out")
    if recorded:
        given = {"--attackers": attackers, "--cross": cross, "--held-out": held_out, "--adaptive": adaptive}
        why = "does not apply to --recorded: all that is recorded is shown; leave it out"
        _refuse(given | {"--aggregate": submeters}, why)
        show_file("page", _show_recorded(protocol, results or Path("results"), out))
        return
    names = _names(attackers, in_epochs=bool(epochs))
    cards = outputs.folder(results or Path("out/results"), ())
    folder = data_folder(data)
    if cross:
        given = {"--training-days": training_days != 10, "--held-out": held_out, "--adaptive": adaptive}
        why = "does not apply to --cross: a crossing has its own days and reads the mains; leave it out"
        _refuse(given | {"--reserve-days": reserve_days, "--aggregate": submeters}, why)
        trials = crossing_trials(protocol, seed)
    else:
        days = DaysAsked(training_days, held_out, reserve_days)
        trials = [own_house_trial(folder, protocol, days, "submeters" if submeters else "mains", seed)]
    if adaptive:
        steps, asked = points(copies, epochs)
        curve = curve_of(trials[0], adaptive)
        page = _adapt(curve, asked, steps, names, _Places(folder, cards, out, pictures), workers)
    else:
        page = _attack(trials, names, _Places(folder, cards, out, pictures), workers)
    show_file("page", page)


class _Places(NamedTuple):
    """Where things are read from and written to."""

    data: Path
    results: Path
    out: Path
    pictures: Path | None


def _attack(trials: Sequence[Trial], names: Sequence[str], places: _Places, workers: int) -> Path:
    from meterveil.bench import cards
    from meterveil.bench.attack_page import day_picture, strength_chart, write_attack
    from meterveil.bench.strength import cards_of, read
    from meterveil.plots import save

    attacks = []
    for trial in trials:
        with _progress(len(names)) as on_done:
            readings = read(trial, load_houses(places.data, trial), names, workers, on_done)
        measured = cards_of(readings)
        show_strength(measured)
        cards.write(places.results, measured)
        attacks.append((readings, measured))
        if places.pictures:
            name = f"{trial.table}-{trial.test.dataset}"
            save(strength_chart(measured), places.pictures / f"{name}-strength.png")
            save(day_picture(readings), places.pictures / f"{name}-day.png")
    return write_attack(attacks, places.out)


def _show_recorded(name: str, results: Path, out: Path) -> Path:
    from meterveil.bench import cards
    from meterveil.bench.attack_page import write_recorded
    from meterveil.bench.floors import from_documents
    from meterveil.data.protocols import protocol

    dataset = protocol(name).dataset
    kinds = ("strength_", "crossing_", "adaptive_")
    documents = [
        card
        for card in cards.read(results)
        if card["table"].startswith(kinds)
        and (card["dataset"] == dataset or card["table"].startswith(f"crossing_{dataset}"))
    ]
    if not documents:
        raise InputError(f"{results} holds no attack on {dataset}; run meterveil attack {name} first")
    found = from_documents(documents)
    show_recorded(found)
    return write_recorded(found, out)


def _adapt(
    curve: Curve, asked: Sequence[Point], steps: str, names: Sequence[str], places: _Places, workers: int
) -> Path:
    from meterveil.bench import cards
    from meterveil.bench.curves import FLOOR

    found = []
    houses = load_houses(places.data, curve.trial)
    fits = len({*names, FLOOR}) + len(asked) * len(names)
    with _progress(fits) as on_done:
        for made in measured_points(curve, asked, houses, names, workers, on_done):
            cards.write(places.results, made)
            found += made
    show_curve(found, steps)
    return write_page(found, steps, places.out, places.pictures)


def _names(text: str, in_epochs: bool) -> tuple[str, ...]:
    """Read which attackers are asked for: unless some are named, all that can be trained as asked."""
    from meterveil.attackers.registry import ATTACKERS, check_known

    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        check_known(name)
    check_installed("attacking", ATTACKERS if in_epochs else names or ATTACKERS)
    if not in_epochs:
        return names or tuple(ATTACKERS)
    from meterveil.bench.adaptive_curve import check_epochs, networks

    check_epochs(names)
    return names or networks(ATTACKERS)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options that would be ignored; one is given where its value says something."""
    for option, value in given.items():
        if value:
            raise InputError(f"{option} {why}")


@contextmanager
def _progress(fits: int) -> Iterator[Callable[[Job], None]]:
    """Show the fits that are made, of at most so many: those that the cache holds never come."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("fitting attackers", total=fits)

        def on_done(job: Job) -> None:
            bar.update(task, advance=1, description=f"fitted {job.name}")

        yield on_done
