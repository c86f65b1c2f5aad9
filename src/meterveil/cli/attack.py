"""`meterveil attack`: fit the attackers on a data set's training days and record what they read."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from meterveil.cli import options as opt
from meterveil.cli.adaptive import curve_of, measured_points, points, show_curve, write_page
from meterveil.errors import InputError, how_to_install

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Job
    from meterveil.bench.adaptive_curve import Curve, Point
    from meterveil.bench.cards import Card
    from meterveil.bench.strength import Houses, Trial


def attack(
    protocol: Annotated[str, typer.Argument(help="Days and appliances of the paper: redd or ukdale.")],
    *,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale, redd and refit; default: $METERVEIL_DATA.")
    ] = None,
    attackers: Annotated[str, typer.Option(help="Names separated by commas; default: all.")] = "",
    cross: Annotated[bool, typer.Option(help="Learn from other houses than the one that is read.")] = False,
    training_days: Annotated[int, typer.Option(min=2, help="More than the protocol's ten go on.")] = 10,
    held_out: Annotated[bool, typer.Option(help="Score all held-out days, not the paper's one.")] = False,
    reserve_days: Annotated[
        int, typer.Option(help="With --held-out: read no day that this many training days would take.")
    ] = 0,
    adaptive: Annotated[
        str, typer.Option(metavar="DEFENCE", help="Adapt to what this defence makes of the meter.")
    ] = "",
    copies: Annotated[
        str, typer.Option(help="With --adaptive: masked copies to learn from, such as 0,1,3,6,12,24.")
    ] = "",
    epochs: Annotated[str, typer.Option(help="With --adaptive: epochs to train, such as 2,5,10,20.")] = "",
    recorded: Annotated[bool, typer.Option(help="Only draw what --results holds; fit nothing.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    results: Annotated[Path, typer.Option(help="Folder for the result cards.")] = Path("results"),
    out: opt.Out = Path("out/attack"),
    pictures: Annotated[
        Path | None, typer.Option(help="Also save the figures as PNG in this folder.")
    ] = None,
) -> None:
    """Fit the attackers, score what they read out of the meter; write result cards and a page."""
    _check_installed()
    from meterveil.bench.attack_page import CURVE_FILES, FILES
    from meterveil.bench.strength import DEFAULT_ATTACKERS
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs
    from meterveil.plots import check_picture

    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, CURVE_FILES if adaptive else FILES)
    if recorded:
        show_file("page", _draw_recorded(protocol, results, out))
        return
    names = _names(attackers) or DEFAULT_ATTACKERS
    folder = _data_folder(data)
    if cross:
        given = {"--training-days": training_days != 10, "--held-out": held_out, "--adaptive": bool(adaptive)}
        _refuse_with_cross(given)
        trials = _crossings(protocol, seed)
    else:
        trials = [_own_house(folder, protocol, training_days, held_out, reserve_days, seed)]
    if adaptive:
        steps, asked = points(copies, epochs)
        curve = curve_of(trials[0], adaptive)
        page = _adapt(curve, asked, steps, names, _Places(folder, results, out, pictures), workers)
    else:
        page = _attack(trials, names, _Places(folder, results, out, pictures), workers)
    show_file("page", page)


def _check_installed() -> None:
    missing = [name for name in ("joblib", "safetensors", "torch") if find_spec(name) is None]
    if missing:
        raise InputError(f"attacking needs {', '.join(missing)}; get it with {how_to_install('train')}")


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
            readings = read(trial, _houses(places.data, trial), names, workers, on_done)
        measured = cards_of(readings)
        _show(trial, measured)
        cards.write(places.results, measured)
        attacks.append((readings, measured))
        if places.pictures:
            name = f"{trial.table}-{trial.test.dataset}"
            save(strength_chart(measured), places.pictures / f"{name}-strength.png")
            save(day_picture(readings), places.pictures / f"{name}-day.png")
    return write_attack(attacks, places.out)


def _draw_recorded(name: str, results: Path, out: Path) -> Path:
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
    return write_recorded(from_documents(documents), out)


def _adapt(
    curve: Curve, asked: Sequence[Point], steps: str, names: Sequence[str], places: _Places, workers: int
) -> Path:
    from meterveil.bench import cards

    found = []
    houses = _houses(places.data, curve.trial)
    with _progress((len(asked) + 1) * len(names)) as on_done:
        for made in measured_points(curve, asked, houses, names, workers, on_done):
            cards.write(places.results, made)
            found += made
    show_curve(found, steps)
    return write_page(found, steps, places.out, places.pictures)


def _names(text: str) -> tuple[str, ...]:
    from meterveil.attackers.registry import attacker

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        attacker(name)
    return names


def _data_folder(data: Path | None) -> Path:
    named = os.environ.get("METERVEIL_DATA") if data is None else data
    if not named or not Path(named).is_dir():
        raise InputError(f"{str(named or '')!r} is no folder of data sets; pass --data or set METERVEIL_DATA")
    return Path(named)


def _refuse_with_cross(given: dict[str, bool]) -> None:
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} does not apply to --cross: a crossing has its own days; leave it out")


def _crossings(name: str, seed: int) -> list[Trial]:
    from meterveil.bench.crossing import crossings

    return [crossing.trial(seed) for crossing in crossings(name)]


def _own_house(
    folder: Path, name: str, training_days: int, held_out: bool, reserve_days: int, seed: int
) -> Trial:
    from meterveil.bench.strength import longer_training, own_house
    from meterveil.data.load import load
    from meterveil.data.protocols import protocol

    chosen = protocol(name)
    household = load(folder / chosen.dataset, chosen.house)
    training = longer_training(chosen, household, training_days)
    if reserve_days and not held_out:
        raise InputError("--reserve-days is for --held-out alone; add it or leave this out")
    kept = tuple(target for target in chosen.many_day_targets if target in household.appliances_w)
    if not held_out:
        day = chosen.test[0]
        present = chosen.present_targets(household, day)
        return own_house(chosen, training, (day,), present, seed, also_learned=kept)
    taken = longer_training(chosen, household, max(training_days, reserve_days))
    test = tuple(day for day in chosen.held_out(household, min_days=1) if day not in taken)
    return own_house(chosen, training, test, kept, seed)


def _houses(folder: Path, trial: Trial) -> Houses:
    from meterveil.data.load import load

    keys = dict.fromkeys(part.key for part in (*trial.training, trial.test))
    return {key: load(folder / key[0], key[1]) for key in keys}


@contextmanager
def _progress(fits: int) -> Iterator[Callable[[Job], None]]:
    """Show how many fits are done; those that the cache holds are not counted."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("fitting attackers", total=fits)

        def on_done(job: Job) -> None:
            bar.update(task, advance=1, description=f"fitted {job.name}")

        yield on_done


def _show(trial: Trial, measured: Sequence[Card]) -> None:
    """Print a row for each attacker and target: ours, and the paper's beside it."""
    from meterveil.cli.tables import show_table

    columns = ("rmse", "f1", "f1_head", "event_f1")
    rows = [["attacker, target", *(part for name in columns for part in (name, "paper"))]]
    found = {(card.row, card.column): card for card in measured}
    for row in dict.fromkeys(card.row for card in measured):
        cells = [found.get((row, column)) for column in columns]
        rows.append([row, *(part for card in cells for part in _cell(card))])
    told = [column for column in zip(*rows, strict=True) if any(column[1:])]
    show_table([list(row) for row in zip(*told, strict=True)], trial.table)


def _cell(card: Card | None) -> tuple[str, str]:
    if card is None:
        return "", ""
    digits = 1 if card.column == "rmse" else 2
    ours, papers = (
        "" if value is None else f"{value:.{digits}f}" for value in (card.measured, card.reported)
    )
    return ours, papers
