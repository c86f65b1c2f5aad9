"""How much an adaptive attacker has to learn: its score against masked copies, and against epochs (D11).

An undertrained adaptive attacker overstates protection. Where these curves still rise, a defence is not yet
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meterveil.attackers.fitting import Job, Options
from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import ATTACKERS, attacker
from meterveil.attackers.threat import COPIES, adaptive, fixed
from meterveil.bench.cards import Card
from meterveil.bench.curves import CLEAN, FLOOR
from meterveil.bench.scoring import Scores, score
from meterveil.bench.strength import Houses, Trial, card_of, measure
from meterveil.core.rollout import Policy
from meterveil.data.household import Household
from meterveil.data.settings import battery_values
from meterveil.data.simulation import Setup, mask
from meterveil.data.splits import consecutive_pieces
from meterveil.errors import InputError

DEFAULT_COPIES = (0, 1, 3, 6, 12, 24)
DRAWS = 5
"""Masked forms of the test days that are read, each with dice that no attacker has seen."""

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
    policy: Policy
    setup: Setup
    draws: int = DRAWS

    @property
    def settings(self) -> dict[str, Any]:
        """Return what a card must say of it."""
        return {
            **self.trial.settings,
            "defence": self.name,
            "seed": self.trial.seed,
            "battery": battery_values(self.setup.battery),
            "library": self.setup.library.digest(),
        }


def check_epochs(names: Sequence[str]) -> None:
    """Refuse attackers that are not trained in epochs, before anything is fitted."""
    others = [name for name in names if name not in networks(names)]
    if others:
        raise InputError(
            f"{', '.join(others)} is not trained in epochs; networks are {', '.join(networks(ATTACKERS))}"
        )


def networks(names: Iterable[str]) -> tuple[str, ...]:
    """Keep the attackers that are trained in epochs: those with a recipe."""
    return tuple(name for name in names if hasattr(attacker(name), "recipe"))


def references(
    curve: Curve, houses: Houses, names: Sequence[str], workers: int = 2, on_done: OnDone | None = None
) -> list[Card]:
    """Score the attackers and the prior on the bare test days: the ceiling and the floor of the curve."""
    made = measure(curve.trial, houses, tuple(dict.fromkeys((*names, FLOOR))), workers, on_done)
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
    home = houses[curve.trial.test.key].select(curve.trial.learned)
    [taught] = curve.trial.taught(houses)
    fitted = _fit(curve, point, taught, names, workers, on_done)
    days = masked_test_days(curve, home)
    return [
        card
        for name, one in fitted.items()
        for card in _cards(curve, point, name, score(one, days, curve.trial.read))
    ]


def masked_test_days(curve: Curve, home: Household) -> list[Household]:
    """Run the defence over the test days, with dice that no attacker has seen; SoC carried over midnight."""
    rngs = [np.random.default_rng([curve.trial.seed, draw, 0x7E57]) for draw in range(curve.draws)]
    pieces = consecutive_pieces(home, curve.trial.test.days)
    copies = [copy for piece in pieces for copy in mask(curve.policy, curve.setup, piece, rngs).households]
    return [copy.day(day) for copy in copies for day in copy.days()]


def _fit(
    curve: Curve, point: Point, taught: Household, names: Sequence[str], workers: int, on_done: OnDone | None
) -> dict[str, Attacker]:
    targets, seed = curve.trial.fitted, curve.trial.seed
    options: Options = {"workers": workers, "on_done": on_done, "epochs": point.epochs}
    if point.copies == 0:
        return fixed(names, [taught], targets, seed, **options)
    return adaptive(names, [taught], targets, seed, curve.policy, curve.setup, point.copies, **options)


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
                seeds=tuple(range(curve.draws)),  # of the dice; that of the fit is a setting
                n_days=len(curve.trial.test.days),
                threat_model="adaptive" if point.copies else "fixed",
                settings=settings,
            )
        )
    return made


def _table(curve: Curve) -> str:
    training = len(curve.trial.training[0].days)
    return f"adaptive_{curve.name}_{training}_training_{len(curve.trial.test.days)}_days"
