"""`meterveil simulate`: run a defence on days of a household."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.errors import how_to_install

if TYPE_CHECKING:
    from meterveil.core.arrays import FloatArray
    from meterveil.core.battery import Battery
    from meterveil.data.simulation import Run
    from meterveil.defenders.run_folder import TrainedRun
    from meterveil.plots.html import Section

_BATTERY = "Battery"
_PROGRESS_FROM_DAYS = 8


def _defence_names(incomplete: str) -> list[str]:
    from meterveil.defenders import known_defences

    return [name for name in known_defences() if name.startswith(incomplete)]


CapacityKwh = Annotated[float | None, typer.Option(help="Capacity in kWh.", rich_help_panel=_BATTERY)]
PowerKw = Annotated[
    float | None, typer.Option(help="Highest charging and discharging power in kW.", rich_help_panel=_BATTERY)
]
BudgetKwh = Annotated[
    float | None, typer.Option(help="kWh moved a day, in and out; inf for no limit.", rich_help_panel=_BATTERY)
]
ExportLimitW = Annotated[
    float | None, typer.Option(help="W that it may feed into the grid; inf for no limit.", rich_help_panel=_BATTERY)
]
ImportLimitW = Annotated[
    float | None, typer.Option(help="Meter reading in W above which it must not charge.", rich_help_panel=_BATTERY)
]

Protect = Annotated[
    str | None,
    typer.Option(help="Hours that the veil saves its energy for: evenings, nights, away or 17:00-23:00,06:30-08:00."),
]


def simulate(
    path: opt.Source = opt.SYNTHETIC,
    *,
    defence: Annotated[
        str | None,
        typer.Option(
            autocompletion=_defence_names,
            help="veil (default), none, random, flat, random_equal, rule_based, flat_decoys, best_effort, nill, "
            "stepping_ls1, stepping_ls2, stepping_lc or stepping_rc (docs/defences.md); or a folder of "
            "meterveil train or export, with its signatures, battery and tariff.",
        ),
    ] = None,
    protect: Protect = None,
    ration: Annotated[
        bool, typer.Option("--ration", help="Spread the day's energy budget evenly over the day.")
    ] = False,
    start: Annotated[
        str | None, typer.Option(help="First day; default: the first with a fortnight of history, else the latest.")
    ] = None,
    days: Annotated[int, typer.Option(help="Number of days; the charge is carried over midnight.")] = 1,
    house: opt.House = None,
    seed: opt.Seed = 0,
    battery: opt.BatteryFile = None,
    capacity_kwh: CapacityKwh = None,
    power_kw: PowerKw = None,
    budget_kwh: BudgetKwh = None,
    export_limit_w: ExportLimitW = None,
    import_limit_w: ImportLimitW = None,
    tariff: opt.Tariff = None,
    library: opt.Library = None,
    out: opt.OutPerInput = None,
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
    from meterveil.bench.simulation import HISTORY_DAYS, day_with_history, defence_for, household_for
    from meterveil.bench.simulation import simulate as run_simulation
    from meterveil.bench.simulation_page import RUN_FILES, write_run
    from meterveil.cli.tables import show_defaults, show_file, steps
    from meterveil.data import outputs, settings
    from meterveil.defenders import DEFAULT_DEFENCE
    from meterveil.defenders.defence import common_setup, protecting
    from meterveil.defenders.rationed import Rationed

    limits = battery_limits(capacity_kwh, power_kw, budget_kwh, export_limit_w, import_limit_w)
    name = defence or DEFAULT_DEFENCE
    chosen = defence_for(name) if protect is None else protecting(defence_for(name), protect)
    trained = next(iter(chosen.trainings), None)
    tariff_read = None if tariff is None else settings.tariff(tariff)
    setup = common_setup([chosen], library, battery_of(trained, battery, limits), tariff_read, seed)
    begin = opt.day_of(start, "--start") if start else None
    folder = opt.out_folder(out, "simulate", path, house, f"{name}-rationed" if ration else name)
    outputs.folder(folder, RUN_FILES)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    drawn_days = days if begin else HISTORY_DAYS + days
    household = household_for(path, house, begin, drawn_days, opt.load_source(aggregate), **options)
    first = begin or day_with_history(household, days)
    show_defaults({"--defence": "" if defence else name, "--start": "" if begin else str(first)})
    title = f"{name}, rationed" if ration else name
    policy = Rationed(chosen.policies[0]) if ration else chosen.policies[0]
    with steps(days, "days", is_shown=days >= _PROGRESS_FROM_DAYS) as on_day:
        run = run_simulation(household, title, first, days, setup, on_day, policy)
    _show(run, trained)
    show_file("page", write_run(run, folder, *show_found(run.load_w, run.meter_w)))


def battery_limits(
    capacity_kwh: float | None,
    power_kw: float | None,
    budget_kwh: float | None,
    export_limit_w: float | None,
    import_limit_w: float | None,
) -> dict[str, float | None]:
    """Return the fields of the battery that options give, each checked under the option's name."""
    power_w = opt.battery_value("--power-kw", power_kw, "charge_w", 1000)
    return {
        "capacity_kwh": opt.battery_value("--capacity-kwh", capacity_kwh, "capacity_kwh"),
        "charge_w": power_w,
        "discharge_w": power_w,
        "budget_kwh": opt.battery_value("--budget-kwh", budget_kwh, "budget_kwh"),
        "export_limit_w": opt.battery_value("--export-limit-w", export_limit_w, "export_limit_w"),
        "import_limit_w": opt.battery_value("--import-limit-w", import_limit_w, "import_limit_w"),
    }


def battery_of(trained: TrainedRun | None, file: Path | None, limits: dict[str, float | None]) -> Battery | None:
    """Build the battery of the options, if any are given: changes to the file's, or to the training's."""
    from meterveil.data import settings

    given = {name: value for name, value in limits.items() if value is not None}
    if file is None and not given:
        return None
    own = asdict(trained.battery) if trained and file is None else {}
    return settings.battery(file, **{**own, **given})


def _show(run: Run, trained: TrainedRun | None) -> None:
    from meterveil.bench.simulation_page import figure_rows
    from meterveil.cli.tables import show_line, show_notes, show_table
    from meterveil.data.simulation import figures

    days = run.days()
    show_notes([*run.notes, *(_seen(trained, run) if trained else [])])
    if not run.battery_w.any() and not run.defence.startswith("none"):
        show_notes([f"the battery did not move: {run.defence} saw no occasion; try more days"])
    for doubt in run.doubts():
        show_line(f"warning: {doubt}", "yellow")
    rows = {str(day): run.day(day) for day in days} if len(days) > 1 else {}
    rows["all" if rows else str(days[0])] = run
    table = figure_rows({name: figures(part) for name, part in rows.items()})
    show_table(table, f"{run.household}: {run.defence}, local time {run.minutes.tz}")


def show_found(load_w: FloatArray, meter_w: FloatArray) -> tuple[Section | None, dict[str, dict[str, int]] | None]:
    """Print what the shipped model finds before and after, and return it for the page and the summary."""
    import numpy as np

    from meterveil.audit import before_after as reader
    from meterveil.audit.model import load_model
    from meterveil.cli.tables import show_line, show_notes, show_table
    from meterveil.plots.html import Section

    if find_spec("onnxruntime") is None:
        show_notes([f"to see what a reader finds before and after, install one: {how_to_install('audit')}"])
        return None, None
    if np.isnan(load_w).all():
        return None, None
    found = reader.compare(load_model(), load_w, meter_w)
    rows = reader.found_rows(found, load_w)
    if len(rows) > 1:
        show_table(rows, reader.TITLE)
    else:
        show_line(f"{reader.TITLE}: no appliance of which it is sure, neither before nor after.")
    show_line(reader.CAUTION)
    return Section(reader.TITLE, reader.EXPLANATION, rows), {name: part._asdict() for name, part in found.items()}


def _seen(trained: TrainedRun, run: Run) -> list[str]:
    """Warn where a defence is shown days that it was trained on: it may do worse on others."""
    seen = trained.seen(run.household, run.days())
    if not seen:
        return []
    days = f"{len(seen)} of these {len(run.days())} days" if len(run.days()) > 1 else f"{seen[0]}"
    last = max(trained.document["days"])
    return [f"this defence was trained on {days}; its last training day is {last}, so choose a later --start"]
