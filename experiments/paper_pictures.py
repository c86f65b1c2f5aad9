"""Pictures of the paper's test day and of the signatures: `python -m experiments.paper_pictures RUN...`.

UK-DALE is CC BY 4.0 and REDD is for research only: the repository holds pictures of their minutes, never the
minutes. `report-pictures.json` beside the pictures records text, settings and commit of each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meterveil.bench.evaluate import example_day
from meterveil.bench.results import current_commit
from meterveil.core.decoys import Library
from meterveil.data import outputs
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import figures
from meterveil.defenders.defence import Defence, common_setup
from meterveil.defenders.run_folder import load_trained
from meterveil.errors import InputError
from meterveil.plots.html import save
from meterveil.plots.simulation import day_figure, library_figure

INDEX = "report-pictures.json"
WIDTH_PX = 1000
_SOURCES = {
    "ukdale": "Data: UK-DALE (Kelly and Knottenbelt, 2015), CC BY 4.0, minute means.",
    "redd": "Data: REDD (Kolter and Johnson, 2011), minute means.",
}


def draw_day(folder: Path, data: Path, pictures: Path) -> None:
    """Simulate the paper's test day with a trained defence and draw it."""
    trained = load_trained(folder)
    document = trained.document
    for protocol in PROTOCOLS.values():
        if not (data / protocol.dataset).exists():
            continue
        household = load(data / protocol.dataset, protocol.house, appliances=[])
        if household.name == document["household"]:
            break
    else:
        raise InputError(f"{data} has no test day of {document['household']}, the household of {folder}")
    ours = Defence("ours", (trained.policy,), (trained,))
    run = example_day(ours, household.day(protocol.test[0]), common_setup([ours]))
    name, sums = f"report-day-{protocol.dataset}", figures(run)
    save(day_figure(run), pictures / f"{name}.png", WIDTH_PX)
    text = (
        f"{run.household.replace('_', ' ')}, {run.minutes[0]:%d %B %Y}, with our learned defence: load in "
        f"grey, meter in blue. The battery moves {sums.throughput_kwh:.1f} kWh and its charge goes from "
        f"{run.soc_start:.0%} to {sums.soc_end:.0%}. {_SOURCES[protocol.dataset]}"
    )
    settings = {key: document[key] for key in ("household", "seed", "library", "weights")}
    _record(pictures, name, text, {**settings, "day": str(protocol.test[0])})


def draw_signatures(library: Library, pictures: Path) -> None:
    """Draw the signatures that a battery can replay."""
    name = "report-signatures"
    save(library_figure(library).update_layout(margin_b=60), pictures / f"{name}.png", WIDTH_PX)
    source = _SOURCES["ukdale"] if library.source.startswith("UK-DALE") else f"Data: {library.source}."
    text = f"The {library.size} signatures that the battery can replay, at least 35 minutes wide. {source}"
    _record(pictures, name, text, {"library": library.digest()})


def _record(pictures: Path, name: str, text: str, settings: dict[str, Any]) -> None:
    path = pictures / INDEX
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[name] = {"words": text, "settings": settings, "commit": current_commit()}
    outputs.write_text(path, json.dumps(known, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the signatures, and a day for each training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of trainings on UK-DALE or REDD")
    parser.add_argument("--data", type=Path, help="folder with ukdale and redd; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: those of the runs")
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    options = parser.parse_args(arguments)
    own = (load_trained(folder).library for folder in options.runs)
    given = read_library(options.library) if options.library or not options.runs else None
    replayed = given or next((library for library in own if library), None)
    if replayed:
        draw_signatures(replayed, options.pictures)
    for folder in options.runs:
        draw_day(folder, data_folder(options.data), options.pictures)


if __name__ == "__main__":
    main()
