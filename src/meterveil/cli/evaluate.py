"""`meterveil evaluate`: measure defences side by side, against fixed and adaptive attackers."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_installed
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Job
    from meterveil.bench.cards import ThreatModel
    from meterveil.bench.evaluation.measure import Result, Spec
    from meterveil.bench.strength import Houses, Trial
    from meterveil.defenders.defence import Defence

_THREATS = ("fixed", "adaptive")


def evaluate(
    defences: Annotated[
        list[str],
        typer.Argument(
            metavar="DEFENCE...",
            help="Names such as flat, random_equal:7.5 (kWh a day), a run of meterveil train, or a folder of "
            "such runs, one for each seed.",
        ),
    ],
    *,
    on: Annotated[
        str, typer.Option(help="redd or ukdale for the paper's house of a data set, or synthetic.")
    ] = opt.SYNTHETIC,
    days: Annotated[
        str, typer.Option(help="paper for its test day; many for all held-out days, SoC carried over.")
    ] = "paper",
    threat: Annotated[
        str, typer.Option(help="fixed (attackers never saw the defence), adaptive, or both.")
    ] = "fixed,adaptive",
    attackers: Annotated[
        str,
        typer.Option(
            help="Names separated by commas, or all of meterveil's own; default: the paper's six, of which "
            "fhmm and bert4nilm adapt."
        ),
    ] = "",
    copies: Annotated[int, typer.Option(min=1, help="Masked copies that adaptive ones learn from.")] = 12,
    against: Annotated[
        str, typer.Option(metavar="DEFENCE", help="Test every gap to this one of the defences.")
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=2, help="Of each defence; a folder of runs has its own number.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the attackers and of all dice.")] = 0,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale and redd; default: $METERVEIL_DATA.")
    ] = None,
    library: Annotated[Path | None, typer.Option(help="JSON file of signatures to replay.")] = None,
    battery: Annotated[Path | None, typer.Option(help='JSON file, such as {"capacity_kwh": 5}.')] = None,
    tariff: Annotated[
        str | None, typer.Option(help="paper, flat:0.25, a .json file of bands or a .csv file of prices.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes, of one thread each.")] = 2,
    results: Annotated[Path, typer.Option(help="Folder for the result cards.")] = Path("out/results"),
    out: opt.Out = Path("out/evaluate"),
    pictures: Annotated[
        Path | None, typer.Option(help="Also save the figures as PNG in this folder.")
    ] = None,
) -> None:
    """Measure defences: what attackers still read behind each, and what it asks of the battery.

    Battery, tariff and signatures are those of the runs where they are not given.
    """
    check_installed("evaluating")
    named = _attackers(threat, attackers)
    check_installed("evaluating", (name for names in named.values() for name in names))
    from meterveil.bench.evaluation.measure import Spec
    from meterveil.bench.evaluation.page import FILES
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs, settings
    from meterveil.defenders.defence import common_setup, find_defences
    from meterveil.plots import check_picture

    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, FILES)
    outputs.folder(results, ())
    found = find_defences(defences)
    if against and against not in [one.name for one in found]:
        raise InputError(f"--against {against} is not among the defences; name one of them")
    own_battery = settings.battery(battery) if battery else None
    own_tariff = settings.tariff(tariff) if tariff else None
    setup = common_setup(found, library, own_battery, own_tariff, seed)
    trial, houses = _trial(on, days, data, seed)
    spec = Spec(trial, setup, named, seeds, copies)
    measured = _measure(spec, found, houses, workers, results)
    if pictures:
        _save(measured, pictures)
    show_file("page", _show(measured, against, results, out))


def _attackers(threat: str, attackers: str) -> dict[ThreatModel, tuple[str, ...]]:
    """Say who attacks under each threat model."""
    from meterveil.attackers.registry import check_known
    from meterveil.bench.evaluation.readers import DEFAULT_ATTACKERS, EVERY_ATTACKER

    asked = _listed(threat)
    unknown = next((name for name in asked if name not in _THREATS), None)
    if unknown or not asked:
        raise InputError(f"there is no threat model {unknown or threat!r}; known are fixed and adaptive")
    names = EVERY_ATTACKER if attackers.strip() == "all" else _listed(attackers)
    for name in names:
        check_known(name)
    return {model: names or DEFAULT_ATTACKERS[model] for model in DEFAULT_ATTACKERS if model in asked}


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _trial(on: str, days: str, data: Path | None, seed: int) -> tuple[Trial, Houses]:
    """Find the house, and the days that teach and test."""
    from meterveil.bench.evaluation.days import check_days, synthetic_trial, trial_of
    from meterveil.data.load import load
    from meterveil.data.protocols import PROTOCOLS

    chosen = check_days(days)
    if on == opt.SYNTHETIC:
        household = load(opt.SYNTHETIC)
        trial = synthetic_trial(household, chosen, seed)
    elif on in PROTOCOLS:
        protocol = PROTOCOLS[on]
        household = load(data_folder(data) / protocol.dataset, protocol.house)
        trial = trial_of(protocol, household, chosen, seed)
    else:
        raise InputError(f"--on {on!r} is unknown; known are {', '.join(PROTOCOLS)} and {opt.SYNTHETIC}")
    return trial, {trial.test.key: household}


def _measure(
    spec: Spec, found: Sequence[Defence], houses: Houses, workers: int, results: Path
) -> list[Result]:
    """Measure one defence after the other, and keep the cards of each as soon as it is done."""
    from meterveil.bench import cards
    from meterveil.bench.evaluation.cards import cards_of
    from meterveil.bench.evaluation.measure import evaluate as measure
    from meterveil.bench.evaluation.measure import measure_bare
    from meterveil.defenders.defence import check_unseen

    for one in found:
        check_unseen(one, houses[spec.trial.test.key].name, spec.trial.test.days)
    measured = []
    with _progress(len(found)) as (on_begin, on_done):
        on_begin("attackers on the bare meter", 0)
        bare = measure_bare(spec, houses, workers, on_done)
        for number, one in enumerate(found):
            on_begin(one.name, number)
            measured.append(measure(bare, one, workers, on_done))
            cards.write(results, cards_of(measured[-1]))
    return measured


@contextmanager
def _progress(defences: int) -> Iterator[tuple[Callable[[str, int], None], Callable[[Job], None]]]:
    """Show which defence is being measured, and the last attacker that was fitted for it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=defences)
        doing = [""]

        def on_begin(what: str, done: int) -> None:
            doing[0] = what
            bar.update(task, completed=done, description=what)

        def on_done(job: Job) -> None:
            bar.update(task, description=f"{doing[0]}: fitted {job.name}")

        yield on_begin, on_done


def _save(measured: Sequence[Result], pictures: Path) -> None:
    from meterveil.bench.evaluation import page as drawn
    from meterveil.plots import save

    trial = measured[0].spec.trial
    stem = f"{trial.table}-{trial.test.dataset}"
    save(drawn.defences_chart(measured), pictures / f"{stem}-defences.png")
    for result in measured:
        name = result.contender.name.replace(":", "-")
        save(drawn.reading_chart(result), pictures / f"{stem}-{name}-read.png")
        save(drawn.day_chart(result), pictures / f"{stem}-{name}-day.png")


def _show(measured: Sequence[Result], against: str, results: Path, out: Path) -> Path:
    """Print the defences, and the gaps to one of them where it is named; write the page."""
    from meterveil.bench import cards
    from meterveil.bench.evaluation.compare import find, gap_cards, gap_rows
    from meterveil.bench.evaluation.page import defence_rows, title_of, write_evaluation
    from meterveil.cli.tables import MISLED, show_notes, show_table

    rows = defence_rows(measured)
    show_table(rows, title_of(measured[0]))
    leaks = [cell for head, *cells in zip(*rows, strict=True) if "leak" in head for cell in cells]
    if any(cell.startswith("-") for cell in leaks):
        show_notes([MISLED])
    other = find(measured, against) if against else None
    if other and len(measured) > 1:
        show_table(gap_rows(measured, other), f"more than with {against}")
        rest = (result for result in measured if result is not other)
        cards.write(results, (card for result in rest for card in gap_cards(result, other)))
    return write_evaluation(measured, out, other)
