"""Steps that learn: a probe for a household, and a defence, one seed each."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from meterveil.bench.cards import current_commit
from meterveil.bench.reproduce.days import training_days
from meterveil.bench.reproduce.place import Place, digest, fingerprint, versions
from meterveil.bench.reproduce.specs import MANAGER, Changes, Training
from meterveil.core.battery import Battery
from meterveil.data import outputs
from meterveil.data.simulation import Setup
from meterveil.fingerprint import code_hash

_PROBE_FILES = ("probe.safetensors", "probe.json")
_SECONDS = "seconds.json"
_CODE = {
    MANAGER: "meterveil.defenders.manager.run",
    "ddql_flat": "meterveil.defenders.ddql.run",
    "ddql_mi": "meterveil.defenders.ddql.run",
}
"""Method -> the module whose code trains it."""


@dataclass(frozen=True)
class Probe:
    """Fit a probe to a household's own load: all trainings of this kind and seed share it."""

    dataset: str
    house: int
    kind: str
    seed: int
    epochs: int

    @property
    def seconds(self) -> float:
        """A transformer takes longest."""
        return 30.0

    def key(self, place: Place) -> str:
        """Hash all that can change it."""
        days = training_days(self.dataset, place.household(self.dataset, self.house))
        data = fingerprint(place, self.dataset, self.house)
        code = code_hash("meterveil.defenders.manager.probe_training")
        return digest("probe", asdict(self), days, data, code, versions())

    def is_finished(self, place: Place, key: str) -> bool:
        """Look for the card, which is written last."""
        return (place.probe(key) / _PROBE_FILES[-1]).exists()

    def run(self, place: Place, key: str) -> None:
        """Fit it as a training without a ready probe would."""
        from meterveil.defenders.manager import probe_training, probes, training  # noqa: PLC0415  torch waits

        began, home = time.perf_counter(), place.household(self.dataset, self.house)
        days, recipe = training_days(self.dataset, home), probe_training.Recipe(epochs=self.epochs)
        with training.own_randomness():
            fitted = probe_training.train_probe(self.kind, home, days, self.seed, recipe)
        outputs.write_text(place.probe(key) / _SECONDS, json.dumps(time.perf_counter() - began))
        probes.save(fitted, place.probe(key))


@dataclass(frozen=True)
class Train:
    """Train a defence under one seed, or go on where its training was stopped."""

    dataset: str
    house: int
    training: Training
    battery: Changes
    seed: int
    probe: str | None = None
    """Key of the probe; a defence of another method has none."""

    @property
    def seconds(self) -> float:
        """Tell the methods apart; a budget of few days takes little."""
        whole = 110.0 if self.training.method == MANAGER else 70.0
        return whole if self.training.budget_days is None else 10.0

    def key(self, place: Place) -> str:
        """Hash all that can change what is learned."""
        days = training_days(self.dataset, place.household(self.dataset, self.house))
        data = fingerprint(place, self.dataset, self.house)
        signatures = place.signatures(self.training.signatures).digest()
        options, code = asdict(self._options()), code_hash(_CODE[self.training.method])
        return digest("train", asdict(self), options, days, data, signatures, code, versions())

    def is_finished(self, place: Place, key: str) -> bool:
        """Read what the run says of itself."""
        return read_run(place.run(key)).get("status") == "finished"

    def run(self, place: Place, key: str) -> None:
        """Train in the folder of the key."""
        home, folder = place.household(self.dataset, self.house), place.run(key)
        days = training_days(self.dataset, home)
        library = place.signatures(self.training.signatures)
        setup = Setup(library, Battery(**dict(self.battery)), seed=self.seed)
        notes: dict[str, Any] = {"asked": asdict(self), "commit": current_commit()}
        if self.training.method != MANAGER:
            from meterveil.defenders.ddql.run import learn as learn_ddql  # noqa: PLC0415  torch waits

            learn_ddql(home, days, setup, self._options(), folder, notes)
            return
        from meterveil.defenders.manager.run import learn  # noqa: PLC0415  torch waits

        if self.probe:
            notes["probe_seconds"] = _take_probe(place.probe(self.probe), folder)
        learn(home, days, setup, self._options(), folder, notes)

    def _options(self) -> Any:
        """Say it in the words of the method that trains."""
        if self.training.method != MANAGER:
            return self._ddql_options()
        from meterveil.defenders.manager.presets import preset  # noqa: PLC0415  torch waits
        from meterveil.defenders.manager.run import Options  # noqa: PLC0415  torch waits

        asked, chosen = self.training, preset(self.training.preset)
        if asked.budget_days is not None:
            chosen = replace(chosen, budget_days=asked.budget_days)
        return Options(chosen, asked.probe, asked.weight, clip_signatures=self._is_clipped)

    @property
    def _is_clipped(self) -> bool:
        """A battery of another power plays signatures with their tops cut off, as the paper's must have."""
        return any(name == "charge_w" for name, _ in self.battery)

    def _ddql_options(self) -> Any:
        from meterveil.defenders.ddql.run import Options  # noqa: PLC0415  torch waits
        from meterveil.defenders.ddql.settings import preset  # noqa: PLC0415  torch waits

        asked, chosen = self.training, preset(self.training.preset)
        settings = chosen if asked.budget_days is None else chosen.within(asked.budget_days)
        return Options(asked.method, settings, asked.weight)


def read_run(folder: Path) -> dict[str, Any]:
    """Read what a training says of itself; nothing where there is none yet."""
    try:
        document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _take_probe(source: Path, folder: Path) -> float:
    """Give a training the ready probe; return how long that took to fit."""
    outputs.write_all({folder / name: partial(shutil.copyfile, source / name) for name in _PROBE_FILES})
    return float(json.loads((source / _SECONDS).read_text()))
