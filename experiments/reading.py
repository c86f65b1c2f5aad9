"""What an informed attacker reads of a household with a defence, beside what habits tell: shared by studies.

The fits are those of the evaluation. The questions: which minutes and uses of appliances, when the day began and ended,
when the evening meal was prepared, and whether anybody was at home (`times_of_use`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from experiments import study
from experiments.times_of_use import DAY, EMPTY_SHARE, QUESTIONS, any_in_use, steps_until, time_of_use, usual_times
from meterveil.attackers.baselines import Prior
from meterveil.attackers.classical import recentred
from meterveil.attackers.fitting import adaptive, fit
from meterveil.attackers.informed import Informed
from meterveil.attackers.protocol import Attacker, Prediction, meters_of
from meterveil.attackers.registry import version_of
from meterveil.bench.cases import best_f1, score_predictions
from meterveil.bench.estimates import estimate, mean
from meterveil.bench.evaluate import mask_test_days
from meterveil.bench.metrics import Counts, detection, event_counts, seen
from meterveil.bench.results import battery_label
from meterveil.bench.trial import Houses, Trial
from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.data.cache import key_of, library_versions
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w
from meterveil.data.simulation import Resolution, Setup
from meterveil.defenders.defence import Defence
from meterveil.defenders.none import NoDefence

INFORMED, PRIOR, ENERGY = "informed", "prior", "energy"
"""Attackers; `energy` adds up the readings of a day and only tells whether anybody was at home."""
KEYS = ("dataset", "row", "meter", "attacker")
"""Columns that say which figures a measurement replaces."""
SEEDS = 2
"""Draws of a defence's random numbers on the test days."""
EVENTS = ("kettle", "microwave")
"""Appliances whose single uses are counted, found within two minutes."""
NIGHT = slice(2 * 60, 5 * 60)
"""Minutes in which a house with people uses about as much as an empty one."""
CLOSE_MINUTES = 15
"""Error of a time of day that counts as close."""


class Answer(NamedTuple):
    """Figure as a statistic of the means of rows over days."""

    by_day: FloatArray  # (row, day)
    statistic: Callable[[FloatArray], float]


class Reader(NamedTuple):
    """Attacker with its prior and the usual times of the training days."""

    attacker: Attacker
    prior: Prior
    usual: Mapping[str, FloatArray]
    """Question -> probability of each minute of its part of the day."""


def read(
    trial: Trial, houses: Houses, defence: Defence, setup: Setup, epochs: int | None = None
) -> dict[str, dict[str, Answer]]:
    """Fit the attackers to a defence and let them read the test days: attacker -> metric -> answer.

    Of a defence with several trainings the first one is read. It knows the training days of the house, as in an
    evaluation; the training days of other houses tell it nothing. `epochs` shortens the training.
    """
    training = trial.training_households(houses)
    first, copies = _masked(trial, houses, defence, setup)
    policy = first.policies[0]
    data = (training, trial.fitted, trial.seed)
    fitted = fit([PRIOR], *data, workers=1)
    if isinstance(policy, NoDefence) and setup.resolution == Resolution():
        fitted |= fit([INFORMED], *data, workers=1, epochs=epochs)
    else:
        fitted |= adaptive([INFORMED], *data, policy, setup, workers=1, epochs=epochs)
    prior = cast(Prior, fitted[PRIOR])
    usual = {name: usual_of(training, name) for name in QUESTIONS}
    answers: dict[str, dict[str, Answer]] = {}
    for name, attacker in fitted.items():
        answers[name] = _mean_of([ask(Reader(attacker, prior, usual), days, trial.targets) for days in copies])
    return answers | _read_energy(training, copies, trial.targets)


def read_energy(trial: Trial, houses: Houses, defence: Defence, setup: Setup) -> dict[str, dict[str, Answer]]:
    """Let the attacker that adds up the readings of a day read the test days; it needs no fit."""
    _, copies = _masked(trial, houses, defence, setup)
    return _read_energy(trial.training_households(houses), copies, trial.targets)


def ask(reader: Reader, days: Sequence[Household], targets: Sequence[str]) -> dict[str, Answer]:
    """Answer every question that these targets allow."""
    predictions = [reader.attacker.predict(meter) for meter in meters_of(days)]
    scores = score_predictions(predictions, days, targets)
    answers = {"f1": Answer(np.array([best_f1(scores, name) for name in targets]), mean)}
    for name in targets:
        answers[f"{name}_f1"] = Answer(best_f1(scores, name)[None], mean)
        if name in EVENTS:
            counts = np.array([_uses(*pair, name) for pair in zip(predictions, days, strict=True)], dtype=float).T
            for part in ("precision", "recall", "f1"):
                answers[f"{name}_use_{part}"] = Answer(counts, partial(detected, part))
    for question in QUESTIONS:
        true, guessed, is_there = (
            np.array(part) for part in zip(*_times(reader, predictions, days, question), strict=True)
        )
        error = np.abs(guessed - true)
        answers[f"{question}_error_min"] = Answer(error[None], mean)
        answers[f"{question}_close"] = Answer(np.where(np.isnan(error), np.nan, error <= CLOSE_MINUTES)[None], mean)
        if question == "first_activity":
            home, called_home = ~np.isnan(true), is_there >= 1.0 - EMPTY_SHARE
            answers["absence_accuracy"] = _absence(home, called_home, ~np.isnan(guessed))
    return answers


def figures(answers: Mapping[str, Mapping[str, Answer]], **labels: Any) -> list[dict[str, Any]]:
    """Turn answers into rows with intervals over days; `labels` are further columns."""
    rows = []
    for attacker, by_metric in answers.items():
        for metric, answer in by_metric.items():
            found = estimate(answer.by_day, answer.statistic)
            shared = {**labels, "attacker": attacker, "metric": metric, "seeds": SEEDS}
            rows.append({**shared, **found._asdict(), "n_days": answer.by_day.shape[1]})
    return rows


def record(
    options: argparse.Namespace,
    name: str,
    trial: Trial,
    defence: Defence,
    setup: Setup,
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Write the rows of one defence into the table of a study."""
    is_fitted = any(row["attacker"] == INFORMED for row in rows)
    settings = {
        **trial.settings,
        **defence.settings,
        **({"attacker_version": version_of(INFORMED), "epochs": options.epochs} if is_fitted else {"attacker": ENERGY}),
        "battery": battery_label(setup.battery),
        "library": setup.library.digest()[:12],
        "resolution": [setup.resolution.minutes, setup.resolution.step_w],
        "versions": library_versions("numpy", "torch"),
    }
    key = f"{name}_{key_of(trial.identity, settings)[:12]}"
    study.record(options.results, name, key, rows, settings, [name for name in (*KEYS, "x") if name in rows[0]])


def detected(part: str, counts: FloatArray) -> float:
    """Return precision, recall or F1 of counts, (3,)."""
    return float(getattr(detection(Counts(*counts)), part))


def empty_below_w(training: Sequence[Household]) -> float:
    """Return the mean power below which a day counts as empty: the middle between the usual night and the usual day.

    Over some days the meter supplies what the house uses: a battery shifts no more than the change of its charge.
    """
    days_w = [day.aggregate_w for day in _whole_days(training)]
    night_w, usual_w = np.nanmedian([np.nanmean(day_w[NIGHT]) for day_w in days_w]), np.nanmean(days_w)
    return float(night_w + usual_w) / 2.0


def _read_energy(
    training: Sequence[Household], copies: Sequence[Sequence[Household]], targets: Sequence[str]
) -> dict[str, dict[str, Answer]]:
    asked, below_w = QUESTIONS["first_activity"], empty_below_w(training)
    names = [name for name in asked.appliances if name in targets]
    if not names:
        return {}
    draws = []
    for days in copies:
        known = np.array([_is_whole(day) for day in days])
        home = np.array([bool(np.any(asked.inside(_in_use(day, names)))) for day in days])
        mean_w = np.array([np.nanmean(day.aggregate_w) if _is_whole(day) else 0.0 for day in days])
        answer = _absence(home, mean_w >= below_w, known)
        shares = {"absence_found": _found, "absence_false_alarms": _false_alarms}
        draws.append(
            {"absence_accuracy": answer} | {name: Answer(answer.by_day, part) for name, part in shares.items()}
        )
    return {ENERGY: _mean_of(draws)}


def _masked(
    trial: Trial, houses: Houses, defence: Defence, setup: Setup
) -> tuple[Defence, list[tuple[Household, ...]]]:
    """Return the first training of a defence, which knows its house, and the different draws of its test days."""
    home = houses[trial.test.key]
    history = [part for part in trial.training_households(houses) if part.name == home.name]
    first = replace(defence, policies=defence.policies[:1]).knowing(history, setup)
    masked = mask_test_days(trial, home, first, setup, SEEDS)
    return first, [masked.days[number] for number in sorted(set(masked.same_as))]


def _mean_of(draws: Sequence[Mapping[str, Answer]]) -> dict[str, Answer]:
    """Average the answers of several draws, day by day."""
    return {
        metric: answer._replace(by_day=np.mean([draw[metric].by_day for draw in draws], axis=0))
        for metric, answer in draws[0].items()
    }


def _absence(home: BoolArray, called_home: BoolArray, known: BoolArray) -> Answer:
    rows = np.array([~home & ~called_home & known, ~home & known, home & called_home & known, home & known])
    return Answer(rows.astype(float), _balanced)


def usual_of(training: Sequence[Household], question: str) -> FloatArray:
    """Return the probability of each time that answers a question, from the training days."""
    asked = QUESTIONS[question]
    whole = _whole_days(training)
    names = [name for name in asked.appliances if name in whole[0].appliances_w]
    steps = np.array([steps_until(asked.inside(_in_use(day, names))) for day in whole])
    return usual_times(steps, asked.end - asked.begin)


def _whole_days(households: Sequence[Household]) -> list[Household]:
    days = [household.day(day) for household in households for day in household.days()]
    return [day for day in days if _is_whole(day)]


def _is_whole(day: Household) -> bool:
    """Tell whether a day has 24 hours and any reading."""
    return len(day.minutes) == DAY and not bool(np.isnan(day.aggregate_w).all())


def _uses(prediction: Prediction, day: Household, name: str) -> Counts:
    probability = seen(prediction.on[name][0], day.aggregate_w)
    return event_counts(day.appliances_w[name], probability, on_threshold_w(name), cut=0.5)


def _times(
    reader: Reader, predictions: Sequence[Prediction], days: Sequence[Household], question: str
) -> list[tuple[float, float, float]]:
    """Return the true and the guessed time and the probability of any use, of each day of 24 hours; else NaN."""
    asked = QUESTIONS[question]
    times = []
    for day, prediction in zip(days, predictions, strict=True):
        names = [name for name in asked.appliances if name in prediction.on]
        if len(day.minutes) != DAY or not names:
            times.append((np.nan, np.nan, np.nan))
            continue
        on = _in_use(day, names)
        weekend = int(day.minutes[0].weekday() >= 5)
        habit = any_in_use([reader.prior.profiles[name].on[weekend] for name in names])
        found = any_in_use([_probability(reader.attacker, prediction, name) for name in names])
        guessed, is_there = time_of_use(reader.usual[question], asked.inside(habit), asked.inside(found))
        times.append((float(steps_until(asked.inside(on))), float(guessed), float(is_there)))
    return times


def _in_use(day: Household, names: Sequence[str]) -> BoolArray:
    return np.asarray(np.any([day.appliances_w[name] >= on_threshold_w(name) for name in names], axis=0))


def _probability(attacker: Attacker, prediction: Prediction, name: str) -> FloatArray:
    """Return the on-probability of one day before its threshold was moved to one half."""
    if isinstance(attacker, Informed):
        place = attacker.targets.index(name)
        if attacker.share[0, place] > 0.0:
            return recentred(prediction.on[name][0], 1.0 - float(attacker.threshold[place]))
        return recentred(prediction.on[name][0], 1.0 - attacker.prior.profiles[name].threshold)
    return recentred(prediction.on[name][0], 1.0 - cast(Prior, attacker).profiles[name].threshold)


def _balanced(means: FloatArray) -> float:
    """Average the share of empty days called empty and of other days called otherwise; NaN without either."""
    return (_found(means) + 1.0 - _false_alarms(means)) / 2.0


def _found(means: FloatArray) -> float:
    """Return the share of empty days that are called empty."""
    with np.errstate(invalid="ignore"):
        return float(means[0] / means[1])


def _false_alarms(means: FloatArray) -> float:
    """Return the share of other days that are called empty."""
    with np.errstate(invalid="ignore"):
        return float(1.0 - means[2] / means[3])
