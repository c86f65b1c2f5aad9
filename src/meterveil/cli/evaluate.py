"""`meterveil evaluate`: measure defences side by side, against fixed and adaptive attackers."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_can_fit
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.bench.evaluate import Result, Spec
    from meterveil.bench.results import ThreatModel
    from meterveil.bench.trial import Houses, Trial
    from meterveil.data.household import Aggregate, Household
    from meterveil.defenders.defence import Defence


def evaluate(
    defences: Annotated[
        list[str],
        typer.Argument(
            metavar="DEFENCE...",
            help="Names such as flat or random_equal:7.5 (kWh a day), a run or bundle folder, or a folder of "
            "runs, one per seed.",
        ),
    ],
    *,
    on: Annotated[
        str,
        typer.Option(
            help="redd or ukdale for the paper's house of a data set, synthetic, or the path of your own house: "
            "a table with the meter and its appliances, or any source of `meterveil data show`."
        ),
    ] = opt.SYNTHETIC,
    days: Annotated[
        str,
        typer.Option(
            help="paper for its test day; many for all held-out days, SoC carried over. In your own house always many."
        ),
    ] = "paper",
    threat: Annotated[
        str, typer.Option(help="fixed (attackers never saw the defence), adaptive, or both.")
    ] = "fixed,adaptive",
    attackers: Annotated[
        str, typer.Option(help="Names separated by commas, or all. Default: the paper's six fixed, informed adaptive.")
    ] = "",
    choice: Annotated[
        str | None, typer.Option(help="How managers act: sampled or greedy; default: as they were trained.")
    ] = None,
    soc_start: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="State of charge at the start, 0 to 1; default: 0.5.")
    ] = None,
    copies: Annotated[int, typer.Option(min=1, help="Masked copies that adaptive attackers train on.")] = 12,
    against: Annotated[str, typer.Option(metavar="DEFENCE", help="Also show the differences to this defence.")] = "",
    seeds: Annotated[int, typer.Option(min=2, help="Seeds of each defence; a folder of runs has one per run.")] = 5,
    seed: opt.Seed = 0,
    data: opt.Data = None,
    library: opt.Library = None,
    battery: opt.BatteryFile = None,
    tariff: opt.Tariff = None,
    workers: opt.Workers = 2,
    results: Annotated[Path, typer.Option(help="Folder of the results table.")] = Path("out/results"),
    out: opt.Out = Path("out/evaluate"),
    pictures: opt.Pictures = None,
    house: opt.House = None,
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Measure defences: what attackers still read with each, and what the battery does.

    Battery, tariff and signatures are those of the runs unless they are given.
    """
    check_can_fit("evaluating")
    named = _attackers(threat, attackers)
    check_can_fit("evaluating", (name for names in named.values() for name in names))
    from meterveil.bench.evaluate import Spec
    from meterveil.bench.evaluation_page import FILES
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs, settings
    from meterveil.defenders.defence import choosing, common_setup, find_defences
    from meterveil.plots import check_picture

    if pictures:
        check_picture(pictures / "day.png")
    outputs.folder(out, FILES)
    outputs.folder(results, ())
    tested = find_defences(defences)
    if choice:
        tested = choosing(tested, choice)
    if against and against not in [defence.name for defence in tested]:
        raise InputError(f"--against {against} is not among the defences; name one of them")
    own_battery = settings.battery(battery) if battery else None
    own_tariff = settings.tariff(tariff) if tariff else None
    setup = common_setup(tested, library, own_battery, own_tariff, seed)
    if soc_start is not None:
        setup = replace(setup, soc_start=soc_start)
    reading = opt.reading(timestamp, power, unit, timezone, appliances)
    trial, houses = _trial(on, days, data, seed, house, reading, opt.load_source(aggregate))
    measured = _measure(Spec(trial, setup, named, seeds, copies), tested, houses, workers, results)
    if pictures:
        _save(measured, pictures)
    show_file("page", _show(measured, against, results, out))


def _attackers(threat: str, attackers: str) -> dict[ThreatModel, tuple[str, ...]]:
    """Choose the attackers of each threat model."""
    from meterveil.attackers.registry import check_known
    from meterveil.bench.evaluate import DEFAULT_ATTACKERS, EVERY_ATTACKER

    threats = opt.listed(threat)
    unknown = next((name for name in threats if name not in DEFAULT_ATTACKERS), None)
    if unknown or not threats:
        raise InputError(f"there is no threat model {unknown or threat!r}; known are fixed and adaptive")
    names = EVERY_ATTACKER if attackers.strip() == "all" else opt.listed(attackers)
    for name in names:
        check_known(name)
    return {model: names or default for model, default in DEFAULT_ATTACKERS.items() if model in threats}


def _trial(
    on: str,
    days: str,
    data: Path | None,
    seed: int,
    house: int | None,
    reading: Mapping[str, object],
    aggregate: Aggregate,
) -> tuple[Trial, Houses]:
    """Load the house and choose training and test days."""
    from meterveil.bench.trial import check_days, own_trial, protocol_trial, synthetic_trial
    from meterveil.data.load import load, load_protocol
    from meterveil.data.protocols import PROTOCOLS

    chosen = check_days(days)
    if on not in (opt.SYNTHETIC, *PROTOCOLS):
        household = _own_house(on, house, reading).metered_by(aggregate)
        trial = own_trial(household, seed)
        _describe(trial, household)
    elif house is not None or reading:
        raise InputError(f"--on {on} needs neither --house nor columns; they are for your own house, --on PATH")
    elif on == opt.SYNTHETIC:
        household = load(opt.SYNTHETIC).metered_by(aggregate)
        trial = synthetic_trial(household, chosen, seed)
    else:
        protocol = replace(PROTOCOLS[on], aggregate=aggregate)
        household = load_protocol(data_folder(data), protocol)
        trial = protocol_trial(protocol, household, chosen, seed)
    return trial, {trial.test.key: household}


def _own_house(path: str, house: int | None, reading: Mapping[str, object]) -> Household:
    """Read a meter and its appliances; every further column of a table is one unless they are named."""
    from meterveil.data.load import find_kind, load
    from meterveil.data.protocols import PROTOCOLS
    from meterveil.data.submeters import name_appliances

    if not Path(path).exists():
        known = f"known are {', '.join(PROTOCOLS)}, {opt.SYNTHETIC} and the path of your own house"
        raise InputError(f"--on {path!r} is unknown and no file or folder; {known}")
    opt.check_applies(path, house, reading)
    every = {"appliances": "all"} if find_kind(path) == "table" else {}
    return name_appliances(load(path, house, **every | dict(reading)))


def _describe(trial: Trial, household: Household) -> None:
    """Print which appliances are read on which days, and which are left out."""
    from meterveil.cli.tables import show_line, show_notes

    days = f"{len(trial.training[0].days)} days and read the {len(trial.test.days)} later ones"
    show_notes(household.notes)
    show_line(f"Attackers learn {', '.join(trial.targets)} from {days}.")
    rest = [name for name in household.appliances_w if name not in trial.targets]
    if rest:
        why = "little used or known on the days to learn from, or more than six; --appliances chooses"
        show_notes([f"left out: {', '.join(rest)} ({why})"])


def _measure(spec: Spec, tested: Sequence[Defence], houses: Houses, workers: int, folder: Path) -> list[Result]:
    """Measure one defence after the other, and record the figures of each as soon as it is done."""
    from meterveil.bench import results
    from meterveil.bench.evaluate import evaluate as measure
    from meterveil.bench.evaluate import measure_undefended
    from meterveil.bench.figures import check_recordable, figures_of, run_of
    from meterveil.cli.tables import steps
    from meterveil.defenders.defence import check_unseen

    for defence in tested:
        check_unseen(defence, houses[spec.trial.test.key].name, spec.trial.test.days)
        check_recordable(folder, spec, defence)
    measured = []
    adaptive = len(spec.attackers.get("adaptive", ()))
    over = [len(spec.names) + 1, *(len(defence.policies) * adaptive + 1 for defence in tested)]  # fits, and scores
    with steps(sum(over), "attacking") as done:
        undefended = measure_undefended(spec, houses, workers, lambda job: done(f"{job.name} fitted"))
        done("no defence", over[0])
        for number, defence in enumerate(tested, 1):
            measured.append(measure(undefended, defence, workers, lambda job: done(f"{job.name} fitted")))
            run = run_of(measured[-1])
            results.write(folder, figures_of(measured[-1], run.key), [run])
            done(defence.name, sum(over[: number + 1]))
    return measured


def _save(measured: Sequence[Result], pictures: Path) -> None:
    from meterveil.bench import evaluation_page as drawn
    from meterveil.plots import save

    trial = measured[0].spec.trial
    stem = f"{trial.test.dataset}-{trial.test.house}-{trial.days}"
    save(drawn.defences_chart(measured), pictures / f"{stem}-defences.png")
    for result in measured:
        name = result.defence.name.replace(":", "-")
        save(drawn.reading_chart(result), pictures / f"{stem}-{name}-read.png")
        save(drawn.day_chart(result), pictures / f"{stem}-{name}-day.png")


def _show(measured: Sequence[Result], against: str, folder: Path, out: Path) -> Path:
    """Print the defences, and the differences to one of them if it is named; write the page."""
    from meterveil.bench import results
    from meterveil.bench.evaluation_page import defence_rows, notes_of, title_of, write_evaluation
    from meterveil.bench.figures import gap_figures, gap_rows, run_of
    from meterveil.cli.tables import show_notes, show_table

    rows = defence_rows(measured)
    show_table(rows, title_of(measured[0]))
    show_notes(notes_of(measured[0], rows))
    other = next((result for result in measured if result.defence.name == against), None)
    if other and len(measured) > 1:
        show_table(gap_rows(measured, other), f"difference to {against}")
        for result in measured:
            if result is not other:
                run = run_of(result, against=against)
                results.write(folder, gap_figures(result, other, run.key), [run])
    return write_evaluation(measured, out, other)
