"""`meterveil data`: coverage, gaps and pictures of readings."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import Verbs

if TYPE_CHECKING:
    from meterveil.data.household import Household

app = Verbs("Look at readings: coverage, gaps, pictures.")


@app.command()
def show(
    path: opt.Source,
    *,
    house: opt.House = None,
    day: Annotated[
        str | None, typer.Option(help="Day to draw; default: the first with good coverage.")
    ] = None,
    out: opt.Out = Path("out/data"),
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    appliances: opt.Appliances = None,
) -> None:
    """Show the coverage of a household, channel by channel, its time zone, and a picture of one day."""
    from meterveil.bench.simulation import first_day
    from meterveil.data import outputs
    from meterveil.data.load import houses, load
    from meterveil.data.splits import check_recorded
    from meterveil.plots.household import write_household

    several = houses(path) if house is None else {}
    if len(several) > 1:
        _list_houses(path, several)
        return
    wanted = opt.day_of(day, "--day") if day else None
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    outputs.folder(out, [])
    household = load(path, house, **options)
    if wanted:
        check_recorded(household, [wanted])
    elif household.days():
        wanted = first_day(household)
    _describe(household)
    _show_page(write_household(household, wanted, out))


def _list_houses(path: str, houses: dict[int, tuple[str, ...]]) -> None:
    from meterveil.cli.tables import show_line, show_table

    rows = [[str(number), ", ".join(names) or "(see --house)"] for number, names in houses.items()]
    show_table([["house", "sub-meters"], *rows], path, ["sub-meters"])
    show_line(f"choose one: meterveil data show {path} --house {next(iter(houses))}")


def _describe(household: Household) -> None:
    from meterveil.cli.tables import show_line, show_notes, show_table
    from meterveil.data.coverage import general_notes
    from meterveil.plots.household import channel_rows, gap_rows

    first, last = household.minutes[0], household.minutes[-1]
    title = (
        f"{household.name}: {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, time zone {household.timezone}"
    )
    show_table(channel_rows(household), title, ["unit", "notes"])
    show_notes(general_notes(household))
    if not household.days():
        show_line(
            "warning: no day is recorded from midnight to midnight; the picture shows the whole record",
            "yellow",
        )
    rows = gap_rows(household)
    if len(rows) > 1:
        show_table(rows, "longest gaps", ["from"])


def _show_page(page: Path) -> None:
    from meterveil.cli.tables import show_file

    show_file("picture", page)
