"""Attackers that learn from a home's own sub-meters, scored on its last days beside the shipped model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from meterveil.attackers.registry import needed_packages
from meterveil.audit.model import OTHER, SHAPES, Model, agreeing, bridged, runs_of
from meterveil.bench.metrics import detection, event_counts, probability_detection
from meterveil.core.arrays import FloatArray
from meterveil.data.household import Household, kind
from meterveil.data.protocols import ON_THRESHOLD_W, on_threshold_w
from meterveil.data.splits import Days, only_days
from meterveil.data.submeters import name_appliances

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Options
    from meterveil.attackers.protocol import Attacker, Prediction

QUICK, THOROUGH = ("fhmm",), ("fhmm", "seq2point")
"""Strongest classical attacker (under a minute), and the cheapest strong network (a few minutes)."""
SHIPPED = "shipped"
"""Name of the shipped model among the attackers."""

TRAINING_DAYS = 10
TEST_DAYS = 7
MOST_TARGETS = 6
KNOWN_SHARE = 0.8
LEAST_ON_MINUTES = 5


class Score(NamedTuple):
    """F1 of minutes (D10), of beginnings within two minutes and of whole uses; number of true uses.

    NaN where the appliance was never used.
    """

    f1: float
    event_f1: float
    use_f1: float
    uses: int


class Trained(NamedTuple):
    """Scores by (attacker, appliance) over all test days, and the predictions and truth of the last one.

    Predictions are 0..1 for each minute, on from 0.5; the truth is 1 where an appliance was on.
    """

    training: Days
    test: Days
    scores: Mapping[tuple[str, str], Score]
    last_day: Mapping[tuple[str, str], FloatArray]
    truth: Mapping[str, FloatArray]


def score(name: str, truth_w: FloatArray, on: FloatArray, cut: float = 0.5) -> Score:
    """Compare predictions, on from `cut`, with a sub-meter; NaN where either is unknown."""
    threshold_w = on_threshold_w(name)
    minutes = probability_detection(truth_w, on, threshold_w, cut).f1
    events = detection(event_counts(truth_w, on, threshold_w, cut=cut)).f1
    known, shape = ~np.isnan(truth_w + on), SHAPES.get(kind(name), OTHER)
    true, detected = runs_of((truth_w >= threshold_w) & known, shape), runs_of((on >= cut) & known, shape)
    precision = int(agreeing(detected, true, len(on)).sum()) / max(len(detected), 1)
    recall = int(agreeing(true, detected, len(on)).sum()) / max(len(true), 1)
    use_f1 = 2 * precision * recall / max(precision + recall, 1e-12) if true else float("nan")
    return Score(float(minutes), float(events), use_f1, len(true))


def missing_extra(names: Sequence[str] = QUICK) -> str:
    """Return the extra that these attackers need; "" where its packages are installed."""
    packages, extra = needed_packages(names)
    return "" if all(find_spec(name) for name in packages) else extra


def choose_days(household: Household) -> tuple[Days, Days]:
    """Choose the first well covered days for training and the last for testing; none if too few."""
    days = [day for day in household.days() if min(household.day(day).coverage().values()) >= KNOWN_SHARE]
    test = days[-min(TEST_DAYS, max(len(days) // 4, 1)) :]
    training = days[: min(TRAINING_DAYS, len(days) - len(test))]
    return (tuple(training), tuple(test)) if len(training) >= 2 else ((), ())


def metered(household: Household) -> Household:
    """Keep the well covered and used sub-meters with a known on-threshold; the most used first."""
    named = name_appliances(household)
    used = {
        name: int(np.sum(watts >= on_threshold_w(name)))
        for name, watts in named.appliances_w.items()
        if kind(name) in ON_THRESHOLD_W and np.mean(~np.isnan(watts)) >= KNOWN_SHARE / 2
    }
    names = sorted((name for name in used if used[name] >= LEAST_ON_MINUTES), key=lambda name: -used[name])
    return named.select(names[:MOST_TARGETS])


def train_and_score(
    household: Household, model: Model, seed: int = 0, names: Sequence[str] = QUICK, **options: Unpack[Options]
) -> Trained | None:
    """Learn from the first days and score on the last; None where there is too little to learn from.

    The training days form one household, whose last days decide when to stop.
    """
    from meterveil.attackers.fitting import fit  # noqa: PLC0415  heavy, and not installed everywhere

    home = metered(household)
    training, test = choose_days(home) if home.appliances_w else ((), ())
    targets = tuple(
        name
        for name in home.appliances_w
        if any(np.any(home.day(day).appliances_w[name] >= on_threshold_w(name)) for day in training)
    )
    if not targets:
        return None
    home = home.select(targets)
    fitted = fit(names, [only_days(home, training)], targets, seed, **options)
    predicted = _predict(home, test, fitted, model)
    truth_w = {name: [home.day(day).appliances_w[name] for day in test] for name in targets}
    scores = {
        (name, target): score(target, np.concatenate(truth_w[target]), np.concatenate(parts))
        for (name, target), parts in predicted.items()
    }
    truth = {name: (days_w[-1] >= on_threshold_w(name)).astype(np.float64) for name, days_w in truth_w.items()}
    return Trained(training, test, scores, {case: parts[-1] for case, parts in predicted.items()}, truth)


def _predict(
    home: Household, test: Days, fitted: Mapping[str, Attacker], model: Model
) -> dict[tuple[str, str], list[FloatArray]]:
    """Return (attacker, appliance) -> one array for each test day; NaN over gaps."""
    from meterveil.attackers.protocol import meter_of  # noqa: PLC0415

    logits = model.logits(bridged(home.aggregate_w))
    shipped = {
        name: (logits[name] >= model.decisions[name].cut).astype(np.float64)
        for name in home.appliances_w
        if name in logits
    }
    predicted: dict[tuple[str, str], list[FloatArray]] = {}
    for day in (home.day(day) for day in test):
        start = int(home.minutes.searchsorted(day.minutes[0]))
        answers = {(SHIPPED, target): on[start : start + len(day.minutes)] for target, on in shipped.items()}
        for name, attacker in fitted.items():
            prediction = attacker.predict(meter_of(day))
            answers |= {(name, target): _on(prediction, target) for target in home.appliances_w}
        for case, answer in answers.items():
            predicted.setdefault(case, []).append(np.where(np.isnan(day.aggregate_w), np.nan, answer))
    return predicted


def _on(prediction: Prediction, target: str) -> FloatArray:
    """Take the on/off head where there is one, and the power otherwise."""
    if target in prediction.on:
        return np.asarray(prediction.on[target][0])
    return np.asarray(prediction.watts[target][0] >= on_threshold_w(target), dtype=np.float64)
