"""`meterveil simulate` and `meterveil demo`: let a defence drive the battery of a recorded household."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt

if TYPE_CHECKING:
    from datetime import date

    from meterveil.data.household import Household
    from meterveil.data.run import Run, Setup

_BATTERY = "Battery"
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
        str,
        typer.Option(
            help="none, random, flat, random_equal, rule_based, flat_decoys, best_effort, nill, "
            "stepping_ls1, stepping_ls2, stepping_lc or stepping_rc (docs/defences.md)."
        ),
    ] = "random",
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
        str, typer.Option(help="paper, flat:0.25, a .json file of bands or a .csv file of prices.")
    ] = "paper",
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
    from meterveil.data import outputs, settings, signatures_file
    from meterveil.data.run import Setup
    from meterveil.defenders import defender
    from meterveil.reports import RUN_FILES, write_run
    from meterveil.simulate import first_day, household_for

    defender(defence)
    power_w = opt.battery_value("--power-kw", power_kw, "charge_w", 1000)
    chosen = settings.battery(
        battery,
        capacity_kwh=opt.battery_value("--capacity-kwh", capacity_kwh, "capacity_kwh"),
        charge_w=power_w,
        discharge_w=power_w,
        budget_kwh=opt.battery_value("--budget-kwh", budget_kwh, "budget_kwh"),
        export_limit_w=opt.battery_value("--export-limit-w", export_limit_w, "export_limit_w"),
        import_limit_w=opt.battery_value("--import-limit-w", import_limit_w, "import_limit_w"),
    )
    setup = Setup(signatures_file.library(library), chosen, settings.tariff(tariff), seed)
    begin = opt.day_of(start, "--start") if start else None
    outputs.folder(out, RUN_FILES)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    household = household_for(path, house, begin, days, opt.from_submeters(aggregate), **options)
    run = _run(household, defence, begin or first_day(household), days, setup)
    _show_doubts(run)
    _show_days(run)
    _show_page("picture", write_run(run, out))


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    out: opt.Out = Path("out/demo"),
    picture: Annotated[
        Path | None, typer.Option(help="Also save the day with decoys as this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Compare three defences on a day of the embedded household, attack it, and write a report."""
    from meterveil import plots
    from meterveil.cli.tables import show_table
    from meterveil.data import outputs
    from meterveil.data.load import load
    from meterveil.demo import attack, attack_rows, attack_section
    from meterveil.reports import DEMO_FILES, write_demo
    from meterveil.simulate import demo_runs

    if picture:
        plots.check_picture(picture)
    outputs.folder(out, DEMO_FILES)
    runs = demo_runs(seed)
    _show_runs({run.defence: run for run in runs}, f"{runs[0].household}, {runs[0].days()[0]}")
    if picture:
        decoys = next(run for run in runs if run.defence == "random_equal")
        _show_page("picture", plots.save(plots.hero_figure(decoys), picture))
    found = attack(load(opt.SYNTHETIC), runs)
    show_table(attack_rows(found), "what attackers read")
    _show_page("report", write_demo(runs, out, [attack_section(found)]))


def _run(household: Household, defence: str, start: date, days: int, setup: Setup) -> Run:
    """Simulate, with a bar where it takes long."""
    from rich.console import Console
    from rich.progress import Progress

    from meterveil.simulate import simulate as run_simulation

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=days < _PROGRESS_FROM_DAYS) as progress:
        task = progress.add_task("days", total=days)
        return run_simulation(household, defence, start, days, setup, lambda: progress.advance(task))


def _show_doubts(run: Run) -> None:
    from meterveil.cli.tables import show_line, show_notes

    show_notes(run.notes)
    for doubt in run.doubts():
        show_line(f"warning: {doubt}", "yellow")


def _show_days(run: Run) -> None:
    days = run.days()
    rows = {str(day): run.day(day) for day in days} if len(days) > 1 else {}
    _show_runs({**rows, "all" if rows else str(days[0]): run}, f"{run.household}: {run.defence}")


def _show_runs(runs: dict[str, Run], title: str) -> None:
    from meterveil.cli.tables import show_table
    from meterveil.data.run import figures
    from meterveil.reports import figure_rows

    show_table(figure_rows({name: figures(run) for name, run in runs.items()}), title)


def _show_page(what: str, page: Path) -> None:
    from meterveil.cli.tables import show_file

    show_file(what, page)
