"""Draws the report's pictures of minutes: `python -m meterveil.bench.report.drawing RUN...`.

The paper's test day behind a training of UK-DALE or REDD, and the signatures that it replays. Pictures and a
sentence on each are small and may be passed on; the minutes stay where they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meterveil.bench.cards import current_commit
from meterveil.bench.evaluation.defences import Contender
from meterveil.bench.evaluation.play import example
from meterveil.bench.report.pictures import INDEX
from meterveil.data import outputs
from meterveil.data.folders import data_folder
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.protocols import PROTOCOLS, Protocol
from meterveil.data.run import Run, figures
from meterveil.data.signatures_file import read
from meterveil.defenders.trained import Trained, load_trained, setup_of
from meterveil.endings import ending_in_one_line
from meterveil.errors import InputError
from meterveil.plots.library import library_figure
from meterveil.plots.pictures import save_both
from meterveil.plots.simulation import day_figure

_SOURCES = {
    "ukdale": "Data: UK-DALE (Kelly and Knottenbelt, 2015), CC BY 4.0, minute means.",
    "redd": "Data: REDD (Kolter and Johnson, 2011), minute means.",
}


def draw_day(folder: Path, data: Path, pictures: Path) -> dict[str, Any]:
    """Play the paper's test day behind a training and draw it; return what is known of the picture."""
    trained = load_trained(folder)
    chosen, household = _home(trained, data)
    day = household.day(chosen.test[0])
    run = example(Contender("ours", (trained.policy,)), day, setup_of([trained]))
    save_both(day_figure(run), pictures / f"{_name(chosen)}.png")
    document = trained.document
    settings = {name: document[name] for name in ("household", "seed", "library", "weights")}
    settings["day"] = str(chosen.test[0])
    return {_name(chosen): _described(f"{_day_words(run)} {_SOURCES[chosen.dataset]}", settings)}


def draw_signatures(file: Path | None, pictures: Path) -> dict[str, Any]:
    """Draw a library of signatures; return what is known of the picture."""
    collection = read(file)
    library = collection.library()
    save_both(library_figure(library).update_layout(margin_b=60), pictures / "report-signatures.png")
    words = (
        f"The {library.size} signatures that the battery can replay, at least 35 minutes wide so that short "
        f"ones look short. {_SOURCES['ukdale'] if file else 'They are synthetic.'}"
    )
    return {"report-signatures": _described(words, {"library": library.digest()})}


def _home(trained: Trained, data: Path) -> tuple[Protocol, Household]:
    """Find the household that was trained on among those that the paper tests on."""
    for chosen in PROTOCOLS.values():
        household = load(data / chosen.dataset, chosen.house, appliances=[])
        if household.name == trained.document["household"]:
            return chosen, household
    raise InputError(
        f"the training is of {trained.document['household']}, on which the paper tests nothing; give one of "
        f"{' or '.join(PROTOCOLS)}"
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


def _described(words: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {"words": words, "settings": settings, "commit": current_commit()}


def _write_index(found: dict[str, Any], path: Path) -> None:
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    outputs.write_text(path, json.dumps({**known, **found}, indent=1) + "\n")


def draw(runs: Sequence[Path], library: Path | None, data: Path, pictures: Path) -> None:
    """Draw a day for each training, and the signatures, and write down what each picture shows."""
    found = draw_signatures(library, pictures)
    for folder in runs:
        found |= draw_day(folder, data, pictures)
    _write_index(found, pictures / INDEX)


@ending_in_one_line()
def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of trainings on UK-DALE or REDD")
    parser.add_argument("--data", type=Path, help="folder with ukdale and redd; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: synthetic ones")
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    data = data_folder(asked.data) if asked.runs else Path()
    draw(asked.runs, asked.library, data, asked.pictures)


if __name__ == "__main__":
    main()
