"""`meterveil signatures`: build and show the library that the battery replays."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli.base import Verbs
from meterveil.errors import InputError

if TYPE_CHECKING:
    from meterveil.data.signatures import Collection, Signature

app = Verbs("Appliance signatures to replay: build a library, look at it.")


@app.command()
def build(
    *,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale, or UK-DALE itself; default: $METERVEIL_DATA.")
    ] = None,
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = Path("out/signatures.json"),
) -> None:
    """Build a library of ten signatures from the training days of UK-DALE houses 1 and 2."""
    from meterveil.cli.tables import show_file, show_line
    from meterveil.data import outputs
    from meterveil.data.files import data_folder
    from meterveil.data.signatures import SIZE, read_houses, save
    from meterveil.data.signatures import build as build_signatures

    if out.suffix.lower() != ".json":
        raise InputError(f"--out {str(out)!r} does not end in .json; name a JSON file")
    outputs.folder(out.parent, [out.name])
    collection = build_signatures(read_houses(data_folder(data, or_file=True)))
    save(collection, out)
    _show(collection)
    if len(collection.signatures) < SIZE:
        show_line(
            f"warning: only {len(collection.signatures)} of {SIZE} suitable signatures were found", "yellow"
        )
    show_file("library", out)


@app.command()
def show(
    file: Annotated[
        Path | None, typer.Argument(help="Library of signatures; default: the synthetic one.")
    ] = None,
    *,
    out: Annotated[Path, typer.Option(help="Picture to write: .html, .png or .svg.")] = Path(
        "out/signatures.html"
    ),
) -> None:
    """List the signatures of a library and draw them."""
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs
    from meterveil.data.signatures import read
    from meterveil.plots.html import check_picture, save
    from meterveil.plots.simulation import library_figure

    check_picture(out)
    outputs.folder(out.parent, [out.name] if out.suffix.lower() == ".html" else [])
    collection = read(file)
    origins = [_house(one) for one in collection.signatures]
    picture = save(library_figure(collection.library(), origins), out)
    _show(collection)
    show_file("picture", picture)


def _show(collection: Collection) -> None:
    from meterveil.cli.tables import show_line, show_table
    from meterveil.data.signatures import SUB_LIBRARIES

    head = ["signature", "recorded", "minutes", "median W", "std W", "peak W", "kWh"]
    rows = [[one.name, _recorded(one), *_figures(one)] for one in collection.signatures]
    show_table([head, *rows], collection.source, ["recorded"])
    smaller = [
        f"{name} ({size})" for name, size in SUB_LIBRARIES.items() if size <= len(collection.signatures)
    ]
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
