"""Condition A1, measured along trainings: `python -m meterveil.bench.alignment`.

Trains a manager as `meterveil train` does and keeps it after every update. At five snapshots it plays the
validation days again and again; on these rollouts the policy gradients of the probe's risk and of each
attacker's are estimated and compared. Writes the result cards and the picture that docs/alignment.md speaks
of. No test day is touched.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from meterveil.bench import cards
from meterveil.bench.alignment.measure import House, Panel, cards_of
from meterveil.bench.alignment.picture import draw
from meterveil.bench.alignment.snapshots import learn_with_snapshots
from meterveil.core.env import EnvParams
from meterveil.data.run import Setup
from meterveil.data.settings import library as read_library
from meterveil.defenders.manager import probes
from meterveil.defenders.manager.presets import PRESETS, preset
from meterveil.defenders.manager.run import Options
from meterveil.defenders.manager.training import own_randomness
from meterveil.errors import InputError

PLAYS = 64


def measure(house: House, asked: argparse.Namespace) -> None:
    """Measure one house, and keep the cards of each snapshot as soon as it is done."""
    options = Options(preset(asked.preset))
    folder = asked.runs / f"{house.name}-{asked.preset}"
    snapshots = learn_with_snapshots(house.household, house.protocol.training, house.setup, options, folder)
    params = EnvParams(house.setup.battery, house.setup.library)
    fitted, probe = house.attackers(), probes.load(folder)
    panel = Panel(params, house.scenario(), probe, options.preset, fitted, house.truth())
    settings = {
        "house": house.protocol.house,
        "library": house.setup.library.digest()[:12],
        "preset": asked.preset,
        "probe": probe.kind,
        "loss": options.preset.loss,
        "plays": asked.plays,
        "last_update": snapshots[-1].update,
        "days": [str(day) for day in house.judging],
    }
    table = _table(asked.preset)
    with own_randomness():
        for snapshot in (*snapshots[::4], *snapshots[2::4], *snapshots[1::2]):  # the ends say most
            if not _is_known(asked.results / table / house.name, {"update": snapshot.update, **settings}):
                found = panel.measure(snapshot, asked.plays, house.setup.seed)
                cards.write(asked.results, cards_of(house.name, found, table, settings, panel.days.batch))


def _is_known(folder: Path, settings: dict[str, Any]) -> bool:
    """Tell whether a snapshot was measured under these settings: an interrupted measurement goes on."""
    return folder.is_dir() and any(card["settings"] == settings for card in cards.read(folder))


def main() -> None:
    """Measure the houses that are named, and draw everything that is known."""
    parser = argparse.ArgumentParser(prog="python -m meterveil.bench.alignment", description=__doc__)
    parser.add_argument("houses", nargs="*", default=["redd", "ukdale"], help="protocols; default: both")
    parser.add_argument("--data", type=Path, default=os.environ.get("METERVEIL_DATA"))
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: the synthetic ones")
    parser.add_argument("--preset", choices=list(PRESETS), default="fast", help="how the manager learns")
    parser.add_argument("--plays", type=int, default=PLAYS, help="how often the days are played")
    parser.add_argument(
        "--runs", type=Path, default=Path("out/alignment"), help="folder that keeps trainings"
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--pictures", type=Path, default=Path("docs/img"))
    asked = parser.parse_args()
    if asked.data is None or not Path(asked.data).is_dir():
        raise InputError(f"{asked.data} is no folder of data sets; pass --data or set METERVEIL_DATA")
    setup = Setup(read_library(asked.library))
    for name in asked.houses:
        measure(House.of(name, Path(asked.data), setup), asked)
    table = _table(asked.preset)
    draw(cards.read(asked.results, table), asked.pictures, table.replace("_", "-"))


def _table(name: str) -> str:
    return f"alignment_{name}"


if __name__ == "__main__":
    main()
