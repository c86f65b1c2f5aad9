"""How strong the attackers are: what each reads out of a bare meter, beside the paper's raw columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np

from meterveil.attackers.fitting import Job, fit
from meterveil.attackers.protocol import AGGREGATE, Attacker, Prediction, meter_of, truth_w
from meterveil.attackers.registry import FLOORS, PAPER_SIX
from meterveil.bench.cards import Card
from meterveil.bench.events import event_detection
from meterveil.bench.metrics import FloatArray, mae, power_detection, probability_detection, rmse, sae, seen
from meterveil.bench.reported import cases
from meterveil.data.household import Household
from meterveil.data.protocols import Protocol, on_threshold_w
from meterveil.data.splits import check_recorded, consecutive_pieces

DEFAULT_ATTACKERS = (*PAPER_SIX, "nilmformer", *FLOORS)


@dataclass(frozen=True)
class Trial:
    """Say what is learned from and what is read."""

    protocol: Protocol
    training: tuple[date, ...]
    test: tuple[date, ...]
    targets: tuple[str, ...]
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """Return what a card must say of it."""
        return {
            "house": self.protocol.house,
            "training_days": len(self.training),
            "training": [str(self.training[0]), str(self.training[-1])],
            "test": [str(self.test[0]), str(self.test[-1])],
            "aggregate": self.protocol.aggregate,
        }


def measure(
    trial: Trial,
    household: Household,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    workers: int = 2,
    on_done: Callable[[Job], None] | None = None,
) -> list[Card]:
    """Fit the attackers on the training days and score them on the test days."""
    check_recorded(household, (*trial.training, *trial.test))
    home = household.select(trial.targets)
    learning = consecutive_pieces(home, trial.training)
    targets = (*trial.targets, AGGREGATE)
    fitted = fit(attackers, learning, targets, trial.seed, workers, on_done)
    reported = _reported(trial)
    days = [home.day(day) for day in trial.test]
    cards = []
    for name, one in fitted.items():
        scores = score(one, days, targets)
        cards += _cards(trial, name, scores, reported)
    return cards


def score(
    attacker: Attacker, days: Sequence[Household], targets: Sequence[str]
) -> dict[tuple[str, str], FloatArray]:
    """Score every day by itself: (target, metric) -> (day,); NaN where a score is undefined."""
    read = [attacker.predict(meter_of(day)) for day in days]
    found: dict[tuple[str, str], list[float]] = {}
    for day, prediction in zip(days, read, strict=True):
        for target in targets:
            if target in prediction.watts:
                for metric, value in _day_scores(day, prediction, target).items():
                    found.setdefault((target, metric), []).append(value)
    return {case: np.asarray(values) for case, values in found.items()}


def _day_scores(day: Household, prediction: Prediction, target: str) -> dict[str, float]:
    truth, reading_w = truth_w(day, target), day.aggregate_w
    watts = seen(prediction.watts[target][0], reading_w)
    scores = {"rmse": rmse(truth, watts), "mae": mae(truth, watts), "sae": sae(truth, watts)}
    if target != AGGREGATE:
        threshold_w = on_threshold_w(target)
        scores["f1"] = power_detection(truth, watts, threshold_w).f1
        scores["event_f1"] = event_detection(truth, watts, threshold_w).f1
        if target in prediction.on:
            probability = seen(prediction.on[target][0], reading_w)
            scores["f1_head"] = probability_detection(truth, probability, threshold_w).f1
    return {metric: float(value) for metric, value in scores.items()}


def _cards(
    trial: Trial,
    name: str,
    scores: Mapping[tuple[str, str], FloatArray],
    reported: Mapping[tuple[str, str, str], float],
) -> list[Card]:
    cards = []
    for (target, metric), values in scores.items():
        known = values[~np.isnan(values)]
        several = len(known) > 1
        cards.append(
            Card(
                table=_table(trial),
                row=f"{name} {target}",
                column=metric,
                dataset=trial.protocol.dataset,
                measured=float(known.mean()) if len(known) else None,
                reported=reported.get((name, target, metric)),
                spread=float(known.std(ddof=1)) if several else None,
                seeds=(trial.seed,),
                n_days=len(known),
                settings=trial.settings(),
                note="" if len(known) else "undefined: the appliance stood still",
            )
        )
    return cards


def _table(trial: Trial) -> str:
    days = "paper_day" if trial.test == trial.protocol.test[:1] else f"{len(trial.test)}_days"
    return f"strength_{len(trial.training)}_training_{days}"


def _reported(trial: Trial) -> dict[tuple[str, str, str], float]:
    """Look the paper's raw columns up; they speak of its own day only."""
    if trial.test != trial.protocol.test[:1] or trial.training != trial.protocol.training:
        return {}
    printed = cases(trial.protocol.dataset).dropna(subset="raw")
    keys = zip(printed["attacker"], printed["target"], printed["metric"], strict=True)
    return dict(zip(keys, printed["raw"].astype(float), strict=True))


def longer_training(protocol: Protocol, household: Household, days: int) -> tuple[date, ...]:
    """Go on behind the protocol's training days until there are as many as asked for."""
    recorded = set(household.days())
    found = list(protocol.training)
    day = found[-1]
    while len(found) < days and day < max(recorded):
        day += timedelta(days=1)
        if day in recorded and day not in protocol.test:
            found.append(day)
    return tuple(found)
