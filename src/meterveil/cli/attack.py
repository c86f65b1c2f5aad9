"""`meterveil attack`: fit the attackers on a data set's training days and record what they read."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Job
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
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    results: Annotated[Path, typer.Option(help="Folder for the result cards.")] = Path("results"),
) -> None:
    """Fit the attackers, score what they read out of the bare meter, and write result cards."""
    from meterveil.bench import cards
    from meterveil.bench.strength import DEFAULT_ATTACKERS, cards_of, read

    names = tuple(name.strip() for name in attackers.split(",") if name.strip()) or DEFAULT_ATTACKERS
    folder = _data_folder(data)
    if cross:
        _refuse_with_cross({"--training-days": training_days != 10, "--held-out": held_out})
        trials = _crossings(protocol, seed)
    else:
        trials = [_own_house(folder, protocol, training_days, held_out, reserve_days, seed)]
    for trial in trials:
        with _progress(names, trial) as on_done:
            readings = read(trial, _houses(folder, trial), names, workers, on_done)
        measured = cards_of(readings)
        _show(trial, measured)
        cards.write(results, measured)


def _data_folder(data: Path | None) -> Path:
    folder = data or Path(os.environ.get("METERVEIL_DATA") or "")
    if not str(folder) or not folder.is_dir():
        raise InputError(f"{str(folder)!r} is no folder of data sets; pass --data or set METERVEIL_DATA")
    return folder


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
    if not held_out:
        day = chosen.test[0]
        return own_house(chosen, training, (day,), chosen.present_targets(household, day), seed)
    kept = tuple(target for target in chosen.many_day_targets if target in household.appliances_w)
    taken = longer_training(chosen, household, max(training_days, reserve_days))
    test = tuple(day for day in chosen.held_out(household, min_days=1) if day not in taken)
    return own_house(chosen, training, test, kept, seed)


def _houses(folder: Path, trial: Trial) -> Houses:
    from meterveil.data.load import load

    keys = dict.fromkeys(part.key for part in (*trial.training, trial.test))
    return {key: load(folder / key[0], key[1]) for key in keys}


@contextmanager
def _progress(names: Sequence[str], trial: Trial) -> Iterator[Callable[[Job], None]]:
    """Show how many fits are done; those that the cache holds are not counted."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(f"fitting {len(names)} attackers", total=len(names) * (len(trial.targets) + 1))

        def on_done(job: Job) -> None:
            bar.update(task, advance=len(job.targets), description=f"fitted {job.name} {job.targets[0]}")

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
