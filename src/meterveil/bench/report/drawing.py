"""Draws the report's pictures of minutes: `python -m meterveil.bench.report.drawing RUN...`.

The paper's test day behind a training of UK-DALE or REDD, and the signatures that it replays.
UK-DALE is CC BY 4.0 and REDD is for research only: minutes of a household are not kept here as data, pictures
of them are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meterveil.bench.cards import current_commit
from meterveil.bench.evaluation.play import example
from meterveil.bench.report.pictures import INDEX, Drawn, read_index
from meterveil.core.decoys import Library
from meterveil.data import outputs
from meterveil.data.files import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS, Protocol
from meterveil.data.signatures import library as read_library
from meterveil.data.simulation import Run, figures
from meterveil.defenders.defence import Defence, common_setup
from meterveil.defenders.run_folder import TrainedRun, load_trained
from meterveil.endings import ending_in_one_line
from meterveil.errors import InputError
from meterveil.plots.library import library_figure
from meterveil.plots.saving import save_both
from meterveil.plots.simulation import day_figure

_SOURCES = {
    "ukdale": "Data: UK-DALE (Kelly and Knottenbelt, 2015), CC BY 4.0, minute means.",
    "redd": "Data: REDD (Kolter and Johnson, 2011), minute means.",
}


def draw_day(folder: Path, data: Path, pictures: Path) -> dict[str, Drawn]:
    """Play the paper's test day behind a training and draw it; return what is known of the picture."""
    trained = load_trained(folder)
    chosen, household = _home(trained, data)
    day = household.day(chosen.test[0])
    ours = Defence("ours", (trained.policy,), (trained,))
    run = example(ours, day, common_setup([ours]))
    save_both(day_figure(run), pictures / f"{_name(chosen)}.png")
    document = trained.document
    settings = {name: document[name] for name in ("household", "seed", "library", "weights")}
    settings["day"] = str(chosen.test[0])
    return {_name(chosen): _described(f"{_day_words(run)} {_SOURCES[chosen.dataset]}", settings)}


def draw_signatures(library: Library, pictures: Path) -> dict[str, Drawn]:
    """Draw a library of signatures; return what is known of the picture."""
    save_both(library_figure(library).update_layout(margin_b=60), pictures / "report-signatures.png")
    words = (
        f"The {library.size} signatures that the battery can replay, at least 35 minutes wide so that short "
        f"ones look short. {_origin(library.source)}"
    )
    return {"report-signatures": _described(words, {"library": library.digest()})}


def _origin(source: str) -> str:
    if source.startswith("UK-DALE"):
        return _SOURCES["ukdale"]
    return "They are synthetic." if source.startswith("synthetic") else f"Data: {source}."


def _home(trained: TrainedRun, data: Path) -> tuple[Protocol, Household]:
    """Find the household that was trained on among those that the paper tests on and whose data are here."""
    for chosen in PROTOCOLS.values():
        if not (data / chosen.dataset).exists():
            continue
        household = load(data / chosen.dataset, chosen.house, appliances=[])
        if household.name == trained.document["household"]:
            return chosen, household
    raise InputError(
        f"the training is of {trained.document['household']}, which is no household of {data} that the paper "
        f"tests on; give a training of {' or '.join(PROTOCOLS)}, and the folder that holds that data set"
    )


def _name(chosen: Protocol) -> str:
    return f"report-day-{chosen.dataset}"


def _day_words(run: Run) -> str:
    sums = figures(run)
    return (
        f"{run.household.replace('_', ' ')}, {run.minutes[0]:%d %B %Y}, behind our learned defence: grey is "
        f"the load, blue what the meter shows. It moves {sums.throughput_kwh:.1f} kWh and ends the day with "
        f"{sums.soc_end:.0%} of charge, having begun with {run.soc_start:.0%}."
    )


def _described(words: str, settings: dict[str, Any]) -> Drawn:
    return Drawn(words=words, settings=settings, commit=current_commit())


def _add(found: dict[str, Drawn], path: Path) -> None:
    """Write down what a picture shows beside what is known of the others; a damaged file tells nothing."""
    try:
        known = read_index(path)
    except InputError:
        known = {}
    documents = {name: one.model_dump() for name, one in {**known, **found}.items()}
    outputs.write_text(path, json.dumps(documents, indent=1) + "\n")


def draw(runs: Sequence[Path], library: Path | None, data: Path, pictures: Path) -> None:
    """Draw the signatures and a day for each training, and write down at once what each picture shows.

    Without a library the signatures are those of the first training that has any, and without a training the
    synthetic ones that ship.
    """
    own = (load_trained(folder).library for folder in runs)
    replayed = read_library(library) if library or not runs else next((one for one in own if one), None)
    if replayed:
        _add(draw_signatures(replayed, pictures), pictures / INDEX)
    for folder in runs:
        _add(draw_day(folder, data, pictures), pictures / INDEX)


@ending_in_one_line()
def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of trainings on UK-DALE or REDD")
    parser.add_argument("--data", type=Path, help="folder with ukdale and redd; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: the first run's")
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    data = data_folder(asked.data) if asked.runs else Path()
    draw(asked.runs, asked.library, data, asked.pictures)


if __name__ == "__main__":
    main()
