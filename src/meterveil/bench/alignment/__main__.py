"""Condition A1, measured along trainings: `python -m meterveil.bench.alignment`.

Trains a manager as `meterveil train` does and keeps it after every update. At five snapshots it plays the
validation days again and again; on these rollouts the policy gradients of the probe's risk and of each
attacker's are estimated and compared. Writes the result cards and the picture that docs/alignment.md speaks
of. No test day is touched.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from meterveil.bench import cards
from meterveil.bench.alignment import origin
from meterveil.bench.alignment.estimate import check_plays
from meterveil.bench.alignment.measure import House, Panel, cards_of
from meterveil.bench.alignment.picture import draw
from meterveil.bench.alignment.snapshots import Asked, Snapshot, learn_with_snapshots
from meterveil.data.files import data_folder
from meterveil.data.settings import library as read_library
from meterveil.data.simulation import Setup
from meterveil.defenders.manager import probes
from meterveil.defenders.manager.ppo import own_randomness
from meterveil.defenders.training_settings import MANAGER_PRESETS, manager_settings
from meterveil.endings import ending_in_one_line

PLAYS = 64


def measure(house: House, asked: argparse.Namespace) -> None:
    """Measure one house, and keep the cards of each snapshot as soon as it is done."""
    options, folder = manager_settings(asked.preset), asked.runs / f"{house.name}-{asked.preset}"
    training = Asked(house.household, house.protocol.training, house.setup, options)
    snapshots = learn_with_snapshots(training, folder)
    panel, table = house.panel(probes.load(folder), options), _table(asked.preset)
    shared = _settings(house, panel, asked, snapshots[-1])
    with own_randomness():
        for snapshot in (*snapshots[::4], *snapshots[2::4], *snapshots[1::2]):  # the ends say most
            settings = {**origin.of_snapshot(snapshot), **shared}
            if not origin.is_known(asked.results / table / house.name, panel, settings):
                found = panel.measure(snapshot, asked.plays, house.setup.seed)
                cards.write(asked.results, cards_of(house.name, found, table, settings, panel.days.batch))


def _settings(house: House, panel: Panel, asked: argparse.Namespace, last: Snapshot) -> dict[str, Any]:
    """Say what the snapshots of a training share: in words, and as hashes of all that can change a figure."""
    fits = {job.name: job.key() for job in house.jobs()}
    return {
        "house": house.protocol.house,
        "library": house.setup.library.digest()[:12],
        "preset": asked.preset,
        "probe": panel.probe.kind,
        "loss": panel.preset.loss,
        "days": [str(day) for day in house.judging],
        "last_update": last.update,
        "run": last.digest[:12],
        **origin.shared(panel, fits, asked.plays, house.setup.seed),
    }


@ending_in_one_line()
def main() -> None:
    """Measure the houses that are named, and draw everything that is known."""
    parser = argparse.ArgumentParser(prog="python -m meterveil.bench.alignment", description=__doc__)
    parser.add_argument("houses", nargs="*", default=["redd", "ukdale"], help="protocols; default: both")
    parser.add_argument("--data", type=Path, help="folder of data sets; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: the synthetic ones")
    parser.add_argument(
        "--preset", choices=list(MANAGER_PRESETS), default="fast", help="how the manager learns"
    )
    parser.add_argument("--plays", type=int, default=PLAYS, help="how often the days are played")
    parser.add_argument(
        "--runs", type=Path, default=Path("out/alignment"), help="folder that keeps trainings"
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    data = data_folder(asked.data)
    check_plays(asked.plays)
    setup = Setup(read_library(asked.library))
    for house in [House.of(name, data, setup) for name in asked.houses]:
        measure(house, asked)
    table = _table(asked.preset)
    draw(cards.read(asked.results, table), asked.pictures, table.replace("_", "-"))


def _table(name: str) -> str:
    return f"alignment_{name}"


if __name__ == "__main__":
    main()
