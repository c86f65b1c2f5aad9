"""Scores of attackers day by day, cases without and with a defence, and headline figures over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meterveil.attackers.protocol import AGGREGATE, Attacker, Prediction, meters_of, truth_w
from meterveil.attackers.registry import FLOORS, PAPER_SIX
from meterveil.bench.estimates import Estimate, deviation, estimate, is_harmful, mean, means, p_value
from meterveil.bench.metrics import (
    FloatArray,
    delta,
    detection,
    event_counts,
    harm_sign,
    headline_percent,
    leak,
    mae,
    power_detection,
    probability_detection,
    rmse,
    sae,
    seen,
)
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

BEST_F1 = "f1_best"
"""F1 from predicted power or from the on/off head, whichever is higher."""

PAPER_METRICS = ("rmse", "mae", "sae", "f1")

Scores = dict[tuple[str, str], FloatArray]
"""Target and metric -> (day,); NaN where a score is undefined."""


def score(attacker: Attacker, days: Sequence[Household], targets: Sequence[str]) -> Scores:
    """Let an attacker read days, and score each day."""
    return score_predictions([attacker.predict(meter) for meter in meters_of(days)], days, targets)


def score_predictions(predictions: Sequence[Prediction], days: Sequence[Household], targets: Sequence[str]) -> Scores:
    """Score the prediction of each day."""
    scores: dict[tuple[str, str], list[float]] = {}
    for day, prediction in zip(days, predictions, strict=True):
        for target in targets:
            if target in prediction.watts:
                for metric, value in _day_scores(day, prediction, target).items():
                    scores.setdefault((target, metric), []).append(value)
    return {case: np.asarray(values) for case, values in scores.items()}


@dataclass(frozen=True)
class Case:
    """One score of one attacker on one target, without and with a defence."""

    attacker: str
    target: str
    metric: str
    raw_by_day: FloatArray
    """(day,) without a defence, by the attacker that was trained on clean days."""
    masked_by_day: FloatArray
    """(seed, day) with the defence."""

    def paired(self) -> tuple[FloatArray, FloatArray]:
        """Return raw and masked, (day,) each, mean over seeds; NaN on days where either is undefined."""
        known = ~(np.isnan(self.raw_by_day) | np.isnan(self.masked_by_day).any(axis=0))
        masked = self.masked_by_day.mean(axis=0)
        return np.where(known, self.raw_by_day, np.nan), np.where(known, masked, np.nan)

    @property
    def n_days(self) -> int:
        """Number of days on which the score is defined."""
        return int((~np.isnan(self.paired()[0])).sum())

    @property
    def raw(self) -> float:
        """Mean over days without the defence."""
        return mean(self.paired()[0])

    @property
    def masked_by_seed(self) -> FloatArray:
        """Mean over days with the defence, (seed,)."""
        known = ~np.isnan(self.paired()[0])
        return np.array([mean(row[known]) for row in self.masked_by_day])

    @property
    def masked(self) -> float:
        """Mean over days and seeds with the defence."""
        return mean(self.masked_by_seed)

    @property
    def spread(self) -> float:
        """Standard deviation over seeds; exactly 0 where all agree."""
        return deviation(self.masked_by_seed)

    @property
    def delta(self) -> float:
        """Change by the defence, masked - raw; exactly 0 where no seed changed anything."""
        return mean(delta(self.raw, self.masked_by_seed))

    @property
    def p(self) -> float:
        """Significance of the change over seeds (D9); NaN where the score is undefined."""
        return float(p_value(self.masked_by_seed, self.raw)) if self.n_days else float("nan")

    @property
    def is_harmful(self) -> bool:
        return bool(is_harmful(self.metric, self.delta, self.p))

    def leak(self, prior: float) -> float:
        """Return the leak, given the score of guessing from routine."""
        return float(leak(self.metric, prior, self.raw, self.masked))


def cases_of(attacker: str, raw: Scores, masked: Sequence[Scores]) -> list[Case]:
    """Pair an attacker's scores without a defence with those on the masked days of every seed."""
    cases = [
        Case(attacker, target, metric, values, np.stack([scores[target, metric] for scores in masked]))
        for (target, metric), values in raw.items()
    ]
    both = {(case.target, case.metric): case for case in cases}
    targets = dict.fromkeys(case.target for case in cases if case.target != AGGREGATE)
    return [*cases, *(_best_f1(both, target) for target in targets)]


def counted(cases: Sequence[Case], metric: str) -> list[Case]:
    """Choose the cases of a headline: defined scores of appliances by the paper's six attackers.

    Where none of the six took part, all attackers count.
    """
    read = [
        case
        for case in cases
        if case.metric == metric and case.target != AGGREGATE and case.attacker not in FLOORS and case.n_days
    ]
    papers = [case for case in read if case.attacker in PAPER_SIX]
    return papers or read


def headline(cases: Sequence[Case], metric: str) -> Estimate:
    """Return "RMSE Inc.", "F1 Red." and the like in percent (D9); NaN where no case is defined."""
    rows = [case.paired() for case in counted(cases, metric)]
    if not rows:
        return Estimate(float("nan"))
    table = np.array([raw for raw, _ in rows] + [masked for _, masked in rows])
    return estimate(table, lambda both: headline_percent(metric, *np.split(both, 2)))


def headline_by_seed(cases: Sequence[Case], metric: str) -> FloatArray:
    """Return the headline of every seed, (seed,); empty where no case is defined."""
    chosen = counted(cases, metric)
    raw = np.array([case.raw for case in chosen])
    masked = np.array([case.masked_by_seed for case in chosen]).T  # (seed, case)
    return np.array([headline_percent(metric, raw, row) for row in masked])


def significant(cases: Sequence[Case], metric: str) -> tuple[int, int]:
    """Count the cases in which the attacker got significantly worse, and all cases (D9)."""
    chosen = counted(cases, metric)
    return sum(case.is_harmful for case in chosen), len(chosen)


class Strongest(NamedTuple):
    """Scores of the attacker that reads most with a defence, mean over appliances."""

    attacker: str
    masked: Estimate
    raw: float  # of the attacker that reads most without a defence
    prior: float  # of guessing from routine
    leak: Estimate
    masked_by_seed: FloatArray  # (seed,)
    leak_by_seed: FloatArray  # (seed,)
    by_day: FloatArray  # (prior, raw and masked of every appliance, day)


def strongest(cases: Sequence[Case], prior: Mapping[tuple[str, str], FloatArray], metric: str) -> Strongest:
    """Find the attacker that reads most: a defence is only as good as its worst case (D11).

    `prior` is (target, metric) -> (day,). The leak compares the best attacker with the defence to the best
    one without; the attacker is the same for all seeds.
    """
    names = list(dict.fromkeys(case.attacker for case in cases if case.attacker not in FLOORS))
    read = {
        name: [c for c in cases if (c.attacker, c.metric) == (name, metric) and c.target != AGGREGATE] for name in names
    }
    sign = -harm_sign(metric)
    first = max(names, key=lambda name: sign * mean(means(_column(read[name], masked=True))))
    clean = max(names, key=lambda name: sign * mean(means(_column(read[name], masked=False))))
    masked = _column(read[first], masked=True)
    floor = np.array([prior[case.target, metric] for case in read[first]])
    floor = np.where(np.isnan(masked), np.nan, floor)
    rows = np.concatenate([floor, _column(read[clean], masked=False), masked])
    prior_score, raw, _ = thirds(means(rows))
    by_seed = [mean(row) for row in np.array([case.masked_by_seed for case in read[first]]).T]
    return Strongest(
        attacker=first,
        masked=estimate(masked, mean),
        raw=raw,
        prior=prior_score,
        leak=estimate(rows, lambda parts: float(leak(metric, *thirds(parts)))),
        masked_by_seed=np.array(by_seed),
        leak_by_seed=leak(metric, prior_score, raw, by_seed),
        by_day=rows,
    )


def thirds(parts: FloatArray) -> list[float]:
    """Average prior, raw and masked over appliances, from the means of the rows of `Strongest.by_day`."""
    return [mean(part) for part in np.split(parts, 3)]


def best_f1(scores: Scores, target: str) -> FloatArray:
    """Return the F1 of every day by the better of the two outputs."""
    outputs = [scores[target, metric] for metric in ("f1", "f1_head") if (target, metric) in scores]
    return max(outputs, key=mean)


def _best_f1(both: Mapping[tuple[str, str], Case], target: str) -> Case:
    outputs = [both[target, metric] for metric in ("f1", "f1_head") if (target, metric) in both]
    raw = max(outputs, key=lambda case: mean(case.raw_by_day))
    masked = max(outputs, key=lambda case: mean(case.masked_by_day))
    return Case(raw.attacker, target, BEST_F1, raw.raw_by_day, masked.masked_by_day)


def _column(cases: Sequence[Case], masked: bool) -> FloatArray:
    """Return raw or masked, (appliance, day)."""
    return np.array([case.paired()[int(masked)] for case in cases])


def _day_scores(day: Household, prediction: Prediction, target: str) -> dict[str, float]:
    truth, reading_w = truth_w(day, target), day.aggregate_w
    watts = seen(prediction.watts[target][0], reading_w)
    scores = {"rmse": rmse(truth, watts), "mae": mae(truth, watts), "sae": sae(truth, watts)}
    if target != AGGREGATE:
        threshold_w = on_threshold_w(target)
        scores["f1"] = power_detection(truth, watts, threshold_w).f1
        scores["event_f1"] = detection(event_counts(truth, watts, threshold_w)).f1
        if target in prediction.on:
            probability = seen(prediction.on[target][0], reading_w)
            scores["f1_head"] = probability_detection(truth, probability, threshold_w).f1
    return {metric: float(value) for metric, value in scores.items()}
