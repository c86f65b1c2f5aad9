"""`meterveil plan`: which battery hides how much, and what it costs."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.simulate import (
    BudgetKwh,
    CapacityKwh,
    ExportLimitW,
    ImportLimitW,
    PowerKw,
    Protect,
    battery_limits,
    battery_of,
    show_found,
)

if TYPE_CHECKING:
    from datetime import date

    from meterveil.bench.battery_plan import Plan
    from meterveil.bench.battery_plan import Size as BatterySize


def plan(
    path: opt.Source = opt.SYNTHETIC,
    *,
    protect: Protect = None,
    start: Annotated[str | None, typer.Option(help="First day; default: the latest month, less for history.")] = None,
    days: Annotated[int | None, typer.Option(help="Number of days; default: up to 30.")] = None,
    house: opt.House = None,
    seed: opt.Seed = 0,
    battery: opt.BatteryFile = None,
    capacity_kwh: CapacityKwh = None,
    power_kw: PowerKw = None,
    budget_kwh: BudgetKwh = None,
    export_limit_w: ExportLimitW = None,
    import_limit_w: ImportLimitW = None,
    tariff: opt.Tariff = None,
    out: opt.OutPerInput = None,
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Compare about 60 batteries on your meter: what they hide and cost; write plan.html, plan.json and plan.csv.

    The options of the battery describe yours. No sub-meters are needed.
    """
    from meterveil.bench.battery_plan import MOST_DAYS, span_of
    from meterveil.bench.battery_plan import plan as compare
    from meterveil.bench.battery_plan_page import check_folder, recommended, write_plan
    from meterveil.bench.simulation import HISTORY_DAYS, household_for
    from meterveil.cli.tables import show_defaults, show_file, steps
    from meterveil.core.battery import Battery
    from meterveil.core.certificate import Rules, hours_of
    from meterveil.core.tariff import PAPER_TARIFF
    from meterveil.data import settings
    from meterveil.data.simulation import Setup
    from meterveil.defenders.veil.policy import Veil

    limits = battery_limits(capacity_kwh, power_kw, budget_kwh, export_limit_w, import_limit_w)
    yours = battery_of(None, battery, limits) or Battery()
    prices = PAPER_TARIFF if tariff is None else settings.tariff(tariff)
    setup = Setup(settings.library(None), yours, prices, seed)
    veil = Veil(Rules(protect=hours_of(protect) if protect else ()))
    begin = opt.day_of(start, "--start") if start else None
    folder = opt.out_folder(out, "plan", path, house)
    check_folder(folder)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    drawn_days = days or (MOST_DAYS if begin else HISTORY_DAYS + MOST_DAYS)
    household = household_for(path, house, begin, drawn_days, opt.load_source(aggregate), **options)
    first, count = span_of(household, begin, days)
    size = "" if battery or any(limits.values()) else "8 kWh, 4 kW, 8 kWh a day"
    show_defaults({"a battery of": size, "--start": "" if begin else f"{first}", "--days": "" if days else f"{count}"})
    with steps(count, "days, with every battery") as on_day:
        planned = compare(household, setup, first, count, on_day, veil=veil)
    given = {
        "protect": protect,
        "house": house,
        "tariff": tariff,
        **options,
        "start": planned.days[0],
        "days": len(planned.days),
    }
    given |= {"appliances": appliances, "aggregate": None if aggregate == "mains" else aggregate}
    command = _command(path, recommended(planned).size, given)
    _show(planned, command)
    read, _ = show_found(planned.load_w, planned.meter_w)
    show_file("page", write_plan(planned, command, folder, read))


def _command(path: str, size: BatterySize, given: dict[str, str | int | date | object | None]) -> str:
    """Write the command that simulates a battery of this size on the same days."""
    words = ["meterveil", "simulate", path, "--defence", "veil"]
    words += ["--capacity-kwh", f"{size.capacity_kwh:g}", "--power-kw", f"{size.power_kw:g}"]
    words += ["--budget-kwh", f"{size.budget_kwh:g}"]
    for name, value in given.items():
        words += [] if value is None else [f"--{name}", str(value)]
    return shlex.join(words)


def _show(planned: Plan, command: str) -> None:
    from meterveil.bench.battery_plan_page import answers, day_count, doubts, short_rows
    from meterveil.cli.tables import show_line, show_notes, show_table

    show_notes([*planned.notes, *doubts(planned)])
    show_table(short_rows(planned), f"{planned.household}: {day_count(planned)} from {planned.days[0]} on")
    for answer in answers(planned)[:-1]:
        show_line(answer)
    show_line(f"settings: {command}")
