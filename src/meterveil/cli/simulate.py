"""`meterveil simulate`: let a defence drive the battery of a recorded household."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt

if TYPE_CHECKING:
    from datetime import date

    from meterveil.core.battery import Battery
    from meterveil.core.rollout import Policy
    from meterveil.data.household import Household
    from meterveil.data.simulation import Run, Setup
    from meterveil.defenders.defence import TrainedRun

_BATTERY = "Battery"
_DEFENCE = "random"
_PROGRESS_FROM_DAYS = 8

BatteryFile = Annotated[
    Path | None,
    typer.Option("--battery", help='JSON file, such as {"capacity_kwh": 5}.', rich_help_panel=_BATTERY),
]
CapacityKwh = Annotated[float | None, typer.Option(help="Capacity in kWh.", rich_help_panel=_BATTERY)]
PowerKw = Annotated[
    float | None, typer.Option(help="Highest charging and discharging power in kW.", rich_help_panel=_BATTERY)
]
BudgetKwh = Annotated[
    float | None,
    typer.Option(help="kWh moved a day, in and out; inf for no limit.", rich_help_panel=_BATTERY),
]
ExportLimitW = Annotated[
    float | None,
    typer.Option(help="W that it may feed into the grid; inf for no limit.", rich_help_panel=_BATTERY),
]
ImportLimitW = Annotated[
    float | None,
    typer.Option(help="Meter reading in W above which it must not charge.", rich_help_panel=_BATTERY),
]


def simulate(
    path: opt.Source = opt.SYNTHETIC,
    *,
    defence: Annotated[
        str | None,
        typer.Option(
            help="none, random (default), flat, random_equal, rule_based, flat_decoys, best_effort, nill, "
            "stepping_ls1, stepping_ls2, stepping_lc or stepping_rc (docs/defences.md); or a folder that "
            "meterveil train or export wrote, with its signatures, battery and tariff where none are given."
        ),
    ] = None,
    ration: Annotated[
        bool, typer.Option("--ration", help="Give the day's budget out as the day passes, so that it lasts.")
    ] = False,
    start: Annotated[str | None, typer.Option(help="First day; default: the first well known one.")] = None,
    days: Annotated[int, typer.Option(help="How many days; the charge is carried over midnight.")] = 1,
    house: opt.House = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    battery: BatteryFile = None,
    capacity_kwh: CapacityKwh = None,
    power_kw: PowerKw = None,
    budget_kwh: BudgetKwh = None,
    export_limit_w: ExportLimitW = None,
    import_limit_w: ImportLimitW = None,
    tariff: Annotated[
        str | None,
        typer.Option(help="paper (default), flat:0.25, a .json file of bands or a .csv file of prices."),
    ] = None,
    library: Annotated[Path | None, typer.Option(help="JSON file of signatures to replay.")] = None,
    out: opt.Out = Path("out/simulate"),
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Run a defence on days of a household; write trace.parquet, summary.json and day.html.

    docs/formats.md shows the files of --battery, --tariff and --library.
    """
    from meterveil.cli.tables import show_file, show_notes
    from meterveil.data import outputs, settings
    from meterveil.defenders.defence import common_setup
    from meterveil.defenders.rationed import Rationed
    from meterveil.reports import RUN_FILES, write_run
    from meterveil.simulate import defence_for, first_day, household_for

    acting = _DEFENCE if defence is None else defence
    chosen_defence = defence_for(acting)
    [policy], trained = chosen_defence.policies, next(iter(chosen_defence.trainings), None)
    power_w = opt.battery_value("--power-kw", power_kw, "charge_w", 1000)
    limits = {
        "capacity_kwh": opt.battery_value("--capacity-kwh", capacity_kwh, "capacity_kwh"),
        "charge_w": power_w,
        "discharge_w": power_w,
        "budget_kwh": opt.battery_value("--budget-kwh", budget_kwh, "budget_kwh"),
        "export_limit_w": opt.battery_value("--export-limit-w", export_limit_w, "export_limit_w"),
        "import_limit_w": opt.battery_value("--import-limit-w", import_limit_w, "import_limit_w"),
    }
    chosen = _battery(trained, battery, limits)
    own_tariff = None if tariff is None else settings.tariff(tariff)
    setup = common_setup([chosen_defence], library, chosen, own_tariff, seed)
    begin = opt.day_of(start, "--start") if start else None
    outputs.folder(out, RUN_FILES)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    household = household_for(path, house, begin, days, opt.from_submeters(aggregate), **options)
    first = begin or first_day(household)
    unsaid = [f"--defence {acting}"] * (defence is None) + [f"--start {first}"] * (begin is None)
    show_notes([f"chosen, since it was not said: {', '.join(unsaid)}"] if unsaid else [])
    name, policy = (f"{acting}, rationed", Rationed(policy)) if ration else (acting, policy)
    run = _run(household, name, policy, first, days, setup)
    show_notes(_seen(trained, run) if trained else [])
    _show_doubts(run)
    _show_days(run)
    show_file("picture", write_run(run, out))


def _battery(
    trained: TrainedRun | None, file: Path | None, limits: dict[str, float | None]
) -> Battery | None:
    """Build the battery that was asked for, if any: upon that of a training where no file is given."""
    from dataclasses import asdict

    from meterveil.data import settings

    asked = {name: value for name, value in limits.items() if value is not None}
    if file is None and not asked:
        return None
    own = asdict(trained.battery) if trained and file is None else {}
    return settings.battery(file, **{**own, **asked})


def _run(household: Household, defence: str, policy: Policy, start: date, days: int, setup: Setup) -> Run:
    """Simulate, with a bar where it takes long."""
    from rich.console import Console
    from rich.progress import Progress

    from meterveil.simulate import simulate as run_simulation

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=days < _PROGRESS_FROM_DAYS) as progress:
        task = progress.add_task("days", total=days)
        return run_simulation(household, defence, start, days, setup, lambda: progress.advance(task), policy)


def _seen(trained: TrainedRun, run: Run) -> list[str]:
    """Say so where a training is shown days that it learned from: it may do worse on others."""
    seen = trained.seen(run.household, run.days())
    if not seen:
        return []
    days = f"{len(seen)} of these {len(run.days())} days" if len(run.days()) > 1 else f"{seen[0]}"
    last = max(trained.document["days"])
    return [f"this defence was trained on {days}; its last training day is {last}, so choose a later --start"]


def _show_doubts(run: Run) -> None:
    from meterveil.cli.tables import show_line, show_notes

    show_notes(run.notes)
    if not run.battery_w.any() and not run.defence.startswith("none"):
        show_notes(
            [f"the battery moved nothing: {run.defence} saw no occasion; try more days or another defence"]
        )
    for doubt in run.doubts():
        show_line(f"warning: {doubt}", "yellow")


def _show_days(run: Run) -> None:
    days = run.days()
    rows = {str(day): run.day(day) for day in days} if len(days) > 1 else {}
    show_runs({**rows, "all" if rows else str(days[0]): run}, f"{run.household}: {run.defence}")


def show_runs(runs: dict[str, Run], title: str) -> None:
    """Print what the battery did in each run."""
    from meterveil.cli.tables import show_table
    from meterveil.data.simulation import figures
    from meterveil.reports import figure_rows

    show_table(figure_rows({name: figures(run) for name, run in runs.items()}), title)
