"""`meterveil data` and `meterveil signatures`: readings, and the library that the battery replays."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import Verbs
from meterveil.cli.tables import show_file, show_line, show_notes, show_table
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.data.household import Household
    from meterveil.data.signatures import Collection, Signature

data = Verbs("Look at readings: coverage, gaps, pictures.")
signatures = Verbs("Appliance signatures to replay: build a library, look at it.")


@data.command("show")
def show_readings(
    path: opt.Source,
    *,
    house: opt.House = None,
    day: Annotated[str | None, typer.Option(help="Day to draw; default: the first with good coverage.")] = None,
    out: opt.Out = Path("out/data"),
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
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
    household = load(path, house, **options).metered_by(opt.load_source(aggregate))
    if wanted:
        check_recorded(household, [wanted])
    elif household.days():
        wanted = first_day(household)
    _describe(household)
    show_file("picture", write_household(household, wanted, out))


def _list_houses(path: str, houses: dict[int, tuple[str, ...]]) -> None:
    rows = [[str(number), ", ".join(names) or "(see --house)"] for number, names in houses.items()]
    show_table([["house", "sub-meters"], *rows], path, ["sub-meters"])
    show_line(f"choose one: meterveil data show {path} --house {next(iter(houses))}")


def _describe(household: Household) -> None:
    from meterveil.data.coverage import general_notes
    from meterveil.plots.household import channel_rows, gap_rows

    first, last = household.minutes[0], household.minutes[-1]
    title = f"{household.name}: {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, time zone {household.timezone}"
    show_table(channel_rows(household), title, ["unit", "notes"])
    show_notes(general_notes(household))
    if not household.days():
        show_line("warning: no day is recorded from midnight to midnight; the picture shows the whole record", "yellow")
    rows = gap_rows(household)
    if len(rows) > 1:
        show_table(rows, "longest gaps", ["from"])


@signatures.command()
def build(
    *,
    source: Annotated[
        Path | None, typer.Option("--data", help="Folder with ukdale, or UK-DALE itself; default: $METERVEIL_DATA.")
    ] = None,
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path("out/signatures.json"),
) -> None:
    """Build a library of ten signatures from the training days of UK-DALE houses 1 and 2."""
    from meterveil.data import outputs
    from meterveil.data.files import data_folder
    from meterveil.data.signatures import SIZE, read_houses, save
    from meterveil.data.signatures import build as build_signatures

    if out.suffix.lower() != ".json":
        raise InputError(f"--out {str(out)!r} does not end in .json; name a JSON file")
    outputs.folder(out.parent, [out.name])
    collection = build_signatures(read_houses(data_folder(source, or_file=True)))
    save(collection, out)
    _show_library(collection)
    if len(collection.signatures) < SIZE:
        show_line(f"warning: only {len(collection.signatures)} of {SIZE} suitable signatures were found", "yellow")
    show_file("library", out)


@signatures.command("show")
def show_library(
    file: Annotated[Path | None, typer.Argument(help="Library of signatures; default: the synthetic one.")] = None,
    *,
    out: Annotated[Path, typer.Option(help="Picture to write: .html, .png or .svg.")] = Path("out/signatures.html"),
) -> None:
    """List the signatures of a library and draw them."""
    from meterveil.data import outputs
    from meterveil.data.signatures import read
    from meterveil.plots.html import check_picture, save
    from meterveil.plots.simulation import library_figure

    check_picture(out)
    outputs.folder(out.parent, [out.name] if out.suffix.lower() == ".html" else [])
    collection = read(file)
    origins = [_house(one) for one in collection.signatures]
    picture = save(library_figure(collection.library(), origins), out)
    _show_library(collection)
    show_file("picture", picture)


def _show_library(collection: Collection) -> None:
    from meterveil.data.signatures import SUB_LIBRARIES

    head = ["signature", "recorded", "minutes", "median W", "std W", "peak W", "kWh"]
    rows = [[one.name, _recorded(one), *_figures(one)] for one in collection.signatures]
    show_table([head, *rows], collection.source, ["recorded"])
    smaller = [f"{name} ({size})" for name, size in SUB_LIBRARIES.items() if size <= len(collection.signatures)]
    if smaller:
        show_line(f"sub-libraries, the most varied first: {', '.join(smaller)}")
    show_line(f"digest: {collection.library().digest()}")


def _figures(one: Signature) -> list[str]:
    watts = [f"{value:,.0f}" for value in (one.median_w, one.std_w, max(one.watts))]
    return [str(len(one.watts)), *watts, f"{one.energy_kwh:.2f}"]


def _recorded(one: Signature) -> str:
    return " ".join(part for part in (_house(one), str(one.day or ""), one.start) if part)


def _house(one: Signature) -> str:
    return "" if one.house is None else f"house {one.house}"
