"""What an attacker learns from this home's own sub-meters: the first days teach, the last are read.

FHMM, the strongest of the classical attackers, learns in under a minute. Seq2Point, the cheapest of the
networks that score well, takes a few minutes of processor time and is asked for by name. A fit is kept,
so a second audit of the same days takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Unpack

import numpy as np

from meterveil.audit.features import FloatArray
from meterveil.audit.model import Model, bridged
from meterveil.audit.scoring import Score, score
from meterveil.data.household import Household
from meterveil.data.names import canonical, kind
from meterveil.data.protocols import ON_THRESHOLD_W, on_threshold_w
from meterveil.data.splits import Days, only_days

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Options
    from meterveil.attackers.protocol import Attacker, Prediction

QUICK = ("fhmm",)
THOROUGH = ("fhmm", "seq2point")
SHIPPED = "shipped"
"""Row of the model that never saw this home."""

TRAINING_DAYS = 10
TEST_DAYS = 7
MOST_TARGETS = 6
UNIT_AT_END = re.compile(r"([ _]*\([kK]?(W|VA)\)|[ _][kK]?([wW]|VA|va))$")
KNOWN_SHARE = 0.8
LEAST_ON_MINUTES = 5


@dataclass(frozen=True)
class Trained:
    """Hold scores on the last days and what was said of them."""

    training: Days
    test: Days
    scores: Mapping[tuple[str, str], Score]
    """(attacker, appliance) -> scores over all test days."""
    said: Mapping[tuple[str, str], FloatArray]
    """(attacker, appliance) -> (minute of the last test day,) 0..1, on from one half."""
    truth: Mapping[str, FloatArray]
    """Appliance -> (minute of the last test day,) 1 where it was on."""


def can_train(names: Sequence[str] = QUICK) -> bool:
    """Whether what these attackers need is installed."""
    needed = ("joblib", "safetensors", *(() if names == QUICK else ("torch",)))
    return all(find_spec(name) for name in needed)


def choose_days(household: Household) -> tuple[Days, Days]:
    """Take the first well known days to learn from and the last to read; none where there are too few."""
    days = [day for day in household.days() if min(household.day(day).coverage().values()) >= KNOWN_SHARE]
    test = days[-min(TEST_DAYS, max(len(days) // 4, 1)) :]
    training = days[: min(TRAINING_DAYS, len(days) - len(test))]
    return (tuple(training), tuple(test)) if len(training) >= 2 else ((), ())


def metered(household: Household) -> Household:
    """Keep the sub-meters that are known, used, and of a kind whose on-power is set; the most used first."""
    named = dict(zip(_all_apart(household.appliances_w), household.appliances_w.values(), strict=True))
    used = {
        name: int(np.sum(watts >= on_threshold_w(name)))
        for name, watts in named.items()
        if kind(name) in ON_THRESHOLD_W and np.mean(~np.isnan(watts)) >= KNOWN_SHARE / 2
    }
    names = sorted((name for name in used if used[name] >= LEAST_ON_MINUTES), key=lambda name: -used[name])
    return replace(household, appliances_w=named).select(names[:MOST_TARGETS])


def appliance_of(column: str) -> str:
    """Return the appliance behind a column's name: `Kettle (W)`, `kettle_w` and `kettle` are one."""
    return canonical(UNIT_AT_END.sub("", column.strip()))


def _all_apart(columns: Iterable[str]) -> list[str]:
    """Name the appliance behind each column; a name that is taken gets the next free number."""
    wanted = [appliance_of(column) for column in columns]
    names: list[str] = []
    for name in wanted:
        others = (f"{kind(name)}_{number}" for number in count(2))
        unclaimed = (other for other in others if other not in (*wanted, *names))
        names.append(name if name not in names else next(unclaimed))
    return names


def train_and_score(
    household: Household,
    model: Model,
    seed: int = 0,
    names: Sequence[str] = QUICK,
    **options: Unpack[Options],
) -> Trained | None:
    """Learn from the first days and score on the last; None where there is too little to learn from.

    The days teach as one household: its last ones decide when to stop, whatever poor days lie between.
    """
    from meterveil.attackers.fitting import fit  # noqa: PLC0415  heavy, and not installed everywhere

    home = metered(household)
    training, test = choose_days(home) if home.appliances_w else ((), ())
    targets = _used_in(home, training)
    if not targets:
        return None
    fitted = fit(names, [only_days(home.select(targets), training)], targets, seed, **options)
    said = _say(home.select(targets), test, fitted, _shipped(model, home, targets))
    last = home.day(test[-1])
    truth = {name: (last.appliances_w[name] >= on_threshold_w(name)).astype(np.float64) for name in targets}
    latest = {case: parts[-1] for case, parts in said.items()}
    return Trained(training, test, _scores(home, test, said), latest, truth)


def _say(
    home: Household, test: Days, fitted: Mapping[str, Attacker], shipped: Mapping[str, FloatArray]
) -> dict[tuple[str, str], list[FloatArray]]:
    """Let everybody read the test days: (attacker, appliance) -> one array for each day; NaN over gaps."""
    from meterveil.attackers.protocol import meter_of  # noqa: PLC0415

    said: dict[tuple[str, str], list[FloatArray]] = {}
    for day in (home.day(day) for day in test):
        start = int(home.minutes.searchsorted(day.minutes[0]))
        answers = {(SHIPPED, target): on[start : start + len(day.minutes)] for target, on in shipped.items()}
        for name, one in fitted.items():
            prediction = one.predict(meter_of(day))
            answers |= {(name, target): _on(prediction, target) for target in home.appliances_w}
        for case, answer in answers.items():
            said.setdefault(case, []).append(np.where(np.isnan(day.aggregate_w), np.nan, answer))
    return said


def _on(prediction: Prediction, target: str) -> FloatArray:
    """Take the on/off head where there is one, and the power otherwise."""
    if target in prediction.on:
        return np.asarray(prediction.on[target][0])
    return np.asarray(prediction.watts[target][0] >= on_threshold_w(target), dtype=np.float64)


def _shipped(model: Model, home: Household, targets: tuple[str, ...]) -> dict[str, FloatArray]:
    """Let the shipped model read the same record, without having seen the home."""
    logits = model.logits(bridged(home.aggregate_w))
    return {
        target: (logits[target] >= model.decisions[target].cut).astype(np.float64)
        for target in targets
        if target in logits
    }


def _scores(
    home: Household, test: Days, said: Mapping[tuple[str, str], list[FloatArray]]
) -> dict[tuple[str, str], Score]:
    days = [home.day(day) for day in test]
    return {
        (name, target): score(
            target, np.concatenate([day.appliances_w[target] for day in days]), np.concatenate(parts)
        )
        for (name, target), parts in said.items()
    }


def _used_in(home: Household, days: Days) -> tuple[str, ...]:
    """Name the sub-meters that were on at least once in these days: nothing is learned from the others."""
    return tuple(
        name
        for name in home.appliances_w
        if any(np.any(home.day(day).appliances_w[name] >= on_threshold_w(name)) for day in days)
    )
