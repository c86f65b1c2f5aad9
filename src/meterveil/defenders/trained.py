"""Finished trainings of every kind, ready to act with NumPy alone: what plays or measures one asks here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy
from meterveil.core.tariff import PAPER_TARIFF, Tariff
from meterveil.data.run import Setup
from meterveil.data.signatures_file import library as read_library
from meterveil.defenders.bundle import MANIFEST, battery_from, load_bundle, tariff_from
from meterveil.errors import InputError
from meterveil.extras import how_to_install

MANAGER = "manager"
LOADERS: dict[str, str] = {
    "meterveil-run-1": "meterveil.defenders.manager.run:load_run",
    "meterveil-ddql-1": "meterveil.defenders.ddql.run:load_ddql",
}
"""Format of a run folder -> what reads it; for another kind of training, add a line."""


class Trained(NamedTuple):
    """A finished training."""

    policy: Policy
    library: Library | None  # the signatures that it can replay; None where it replays none
    document: dict[str, Any]  # what the run says of itself

    @property
    def method(self) -> str:
        """Name how it was trained; the paper's own is the manager."""
        return str(self.document["options"].get("method", MANAGER))

    @property
    def battery(self) -> Battery:
        """The battery that it was trained with."""
        return battery_from(self.document["battery"])

    def seen(self, household: str, days: Sequence[date]) -> list[date]:
        """List those of a household's days that it was trained on."""
        if self.document["household"] != household:
            return []
        return [day for day in days if str(day) in self.document["days"]]


def load_trained(folder: Path) -> Trained:
    """Read a run folder of any kind, without torch."""
    try:
        runs = import_module("meterveil.defenders.runs")
    except ImportError as error:
        raise InputError(f"a run needs safetensors; get it with {how_to_install('train')}") from error
    if runs.format_of(folder) not in LOADERS:
        if is_bundle(folder):
            raise InputError(
                f"{folder} is a bundle, which only meterveil simulate plays; give the run that it was "
                "exported from"
            )
        raise InputError(
            f"{folder} holds no training ({runs.RUN} of {' or '.join(LOADERS)}); "
            "write one with meterveil train"
        )
    module, function = LOADERS[runs.format_of(folder)].split(":")
    run = getattr(import_module(module), function)(folder)
    return Trained(run.policy, getattr(run, "library", None), run.document)


def is_bundle(folder: Path) -> bool:
    """Tell whether a folder holds what `meterveil export` wrote."""
    return (folder / MANIFEST).exists()


def trained_from_bundle(folder: Path) -> Trained:
    """Read a bundle as the training that it was exported from: its card is what the run said of itself."""
    bundle = load_bundle(folder)
    return Trained(bundle.policy, bundle.library, dict(bundle.card))


def setup_of(
    runs: Sequence[Trained],
    library: Path | None = None,
    battery: Battery | None = None,
    tariff: Tariff | None = None,
    seed: int = 0,
) -> Setup:
    """Put battery, tariff and signatures together for trainings that act side by side, or for none.

    What is not given is what the trainings had, or the default where nothing was trained. A policy can act
    only with the signatures that it learned; another battery or tariff is a fair question.
    """
    if battery is None:
        battery = battery_from(_agreed(runs, "battery")) if runs else Battery()
    if tariff is None:
        tariff = tariff_from(_agreed(runs, "tariff")) if runs else PAPER_TARIFF
    return Setup(_common_library(runs, library), battery, tariff, seed)


def _common_library(runs: Sequence[Trained], path: Path | None) -> Library:
    known = [run.library for run in runs if run.library is not None]
    chosen = known[0] if known and path is None else read_library(path)
    if any(one.digest() != chosen.digest() for one in known):
        raise InputError(
            "a run was trained with other signatures than the others, or than --library has; leave --library "
            "out, and take runs with different signatures one at a time"
        )
    return chosen


def _agreed(runs: Sequence[Trained], key: str) -> Any:
    first = runs[0].document[key]
    if any(run.document[key] != first for run in runs):
        raise InputError(
            f"the runs were trained with different settings of {key}; evaluate them one at a time"
        )
    return first
