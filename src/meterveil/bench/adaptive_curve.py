"""How much an adaptive attacker has to learn: its score against masked copies, and against epochs (D11).

An undertrained adaptive attacker overstates protection. Where these curves still rise, a defence is not yet
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from meterveil.attackers import store
from meterveil.attackers.fitting import Job, fit
from meterveil.attackers.protocol import AGGREGATE, Attacker
from meterveil.attackers.registry import FLOORS, JOINT, attacker
from meterveil.attackers.threat import COPIES, Defence, adaptive, masked
from meterveil.bench.cards import Card
from meterveil.bench.floors import mean_over_appliances
from meterveil.bench.scoring import Scores, score
from meterveil.bench.strength import Houses, Trial, card_of, lesson, measure
from meterveil.data.household import Household
from meterveil.data.settings import battery_values
from meterveil.data.splits import consecutive_pieces
from meterveil.errors import InputError

DEFAULT_COPIES = (0, 1, 3, 6, 12, 24)
DRAWS = 5
"""Masked forms of the test days that are read, each with dice that no attacker has seen."""

FLOOR = "prior"
CLEAN = "without defence"

OnDone = Callable[[Job], None]


@dataclass(frozen=True)
class Point:
    """Say how much an attacker may learn from."""

    copies: int = COPIES
    """Masked copies of the training days; with 0 it learns from the bare days and never saw the defence."""
    epochs: int | None = None
    """Of training; None lets it stop by itself."""

    @property
    def words(self) -> str:
        """Name the point in a row of a table."""
        epochs = "" if self.epochs is None else f", {self.epochs} epochs"
        return f"{self.copies} copies{epochs}"


@dataclass(frozen=True)
class Curve:
    """Say which house is attacked, and through which defence."""

    trial: Trial
    """Its training is of one house, the one that is read."""
    name: str
    defence: Defence
    draws: int = DRAWS

    @property
    def targets(self) -> tuple[str, ...]:
        """Name the appliances, and the household's load."""
        return (*self.trial.targets, AGGREGATE)

    @property
    def settings(self) -> dict[str, Any]:
        """Return what a card must say of it."""
        return {
            **self.trial.settings,
            "defence": self.name,
            "battery": battery_values(self.defence.battery),
            "library": self.defence.library.digest(),
        }


def references(
    curve: Curve, houses: Houses, names: Sequence[str], workers: int = 2, on_done: OnDone | None = None
) -> list[Card]:
    """Score the attackers and the prior on the bare test days: the ceiling and the floor of the curve."""
    made = measure(curve.trial, houses, [*names, FLOOR], workers, on_done)
    return [
        replace(card, table=_table(curve), row=f"{card.row}, {CLEAN}", reported=None, settings=curve.settings)
        for card in made
    ]


def measure_point(
    curve: Curve,
    point: Point,
    houses: Houses,
    names: Sequence[str],
    workers: int = 2,
    on_done: OnDone | None = None,
) -> list[Card]:
    """Fit the attackers to what the defence made of the training days; score them on masked test days."""
    home = houses[curve.trial.test.key].select(curve.trial.targets)
    taught = lesson(home, curve.trial.training[0].days)
    fitted = _fit(curve, point, taught, names, workers, on_done)
    days = masked_test_days(curve, home)
    return [
        card
        for name, one in fitted.items()
        for card in _cards(curve, point, name, score(one, days, curve.targets))
    ]


def masked_test_days(curve: Curve, home: Household) -> list[Household]:
    """Run the defence over the test days, with dice that no attacker has seen; SoC carried over midnight."""
    rngs = [np.random.default_rng([curve.trial.seed, draw, 0x7E57]) for draw in range(curve.draws)]
    pieces = consecutive_pieces(home, curve.trial.test.days)
    copies = [copy for piece in pieces for copy in masked(curve.defence, piece, rngs)]
    return [copy.day(day) for copy in copies for day in copy.days()]


def lines(cards: Sequence[Card], column: str, steps: str) -> dict[str, dict[int, tuple[float, float]]]:
    """Gather a score as attacker -> steps -> (mean over appliances, mean spread).

    `steps` is the setting that the curve runs along: copies or epochs.
    """
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for step in sorted({card.settings[steps] for card in cards if card.settings.get(steps) is not None}):
        here = [card for card in cards if card.settings.get(steps) == step]
        spreads = mean_over_appliances([replace(card, measured=card.spread or 0.0) for card in here], column)
        for name, value in mean_over_appliances(here, column).items():
            found.setdefault(name, {})[step] = (value, spreads[name])
    return found


def is_reference(card: Card) -> bool:
    """Tell whether a card is about the bare meter."""
    return card.row.endswith(CLEAN)


def _fit(
    curve: Curve, point: Point, taught: Household, names: Sequence[str], workers: int, on_done: OnDone | None
) -> dict[str, Attacker]:
    targets, seed, defence = curve.targets, curve.trial.seed, curve.defence
    if point.epochs is not None:
        rngs = [np.random.default_rng([seed, copy, 0xADA9]) for copy in range(point.copies)]
        seen = masked(defence, taught, rngs) if rngs else [taught]
        return {name: _fit_epochs(name, seen, targets, seed, point.epochs, workers) for name in names}
    if point.copies == 0:
        return fit(names, [taught], targets, seed, workers, on_done)
    return adaptive(names, [taught], targets, seed, defence, point.copies, on_done)


def _fit_epochs(
    name: str, seen: Sequence[Household], targets: Sequence[str], seed: int, epochs: int, workers: int
) -> Attacker:
    """Train for so many epochs at most; like every fit, each is kept and never done twice."""
    if name in (*JOINT, *FLOORS):
        raise InputError(f"{name} is not trained in epochs; give the names of neural attackers")
    jobs = [Job(f"{name}-{epochs}-epochs", (target,), tuple(seen), seed) for target in targets]
    folders: list[Path] = Parallel(n_jobs=workers)(delayed(_run_epochs)(name, job, epochs) for job in jobs)
    arrays = [store.load(folder)[0].arrays() for folder in folders]
    return attacker(name).restored(targets, {key: value for part in arrays for key, value in part.items()})


def _run_epochs(name: str, job: Job, epochs: int) -> Path:
    import torch  # noqa: PLC0415  curves over copies of classical attackers run without it

    folder = job.folder
    if not (folder / store.CARD).exists():
        torch.set_num_threads(1)
        base: Any = attacker(name)
        rng = np.random.default_rng([job.seed, epochs, *job.targets[0].encode()])
        shorter = replace(base, recipe=replace(base.recipe, epochs=epochs))
        store.save(
            folder, name, job.targets, shorter.fit(job.households, job.targets, rng), {"epochs": epochs}
        )
    return folder


def _cards(curve: Curve, point: Point, name: str, scores: Scores) -> list[Card]:
    settings = {**curve.settings, "copies": point.copies, "epochs": point.epochs}
    made = []
    for (target, metric), values in scores.items():
        card = card_of(curve.trial, name, target, metric, values)
        made.append(
            replace(
                card,
                table=_table(curve),
                row=f"{card.row}, {point.words}",
                reported=None,
                seeds=tuple(range(curve.draws)),
                n_days=len(curve.trial.test.days),
                threat_model="adaptive" if point.copies else "fixed",
                settings=settings,
            )
        )
    return made


def _table(curve: Curve) -> str:
    return f"adaptive_{curve.name}_{len(curve.trial.test.days)}_days"
