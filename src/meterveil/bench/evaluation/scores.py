"""From scores of single days to what a table says: Delta, p, headlines, leaks, and intervals over days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import FLOORS, PAPER_SIX
from meterveil.bench.metrics import FloatArray, harm_sign, leak
from meterveil.bench.scoring import Scores
from meterveil.bench.significance import delta, headline_percent, is_harmful, p_value

BEST_F1 = "f1_best"
"""F1 from power or from the on/off head, whichever reads more: an attacker acts on the better of the two."""

PAPER_METRICS = ("rmse", "mae", "sae", "f1")
RESAMPLES = 1000
CONFIDENCE_PERCENT = 95.0
LEAST_DAYS = 5
"""Fewer days than this give no interval: their bootstrap would only repeat them."""


class Estimate(NamedTuple):
    """A figure with its confidence interval over days; NaN bounds where too few days give none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


@dataclass(frozen=True)
class Case:
    """Hold one score of one attacker on one target, before and behind a defence."""

    attacker: str
    target: str
    metric: str
    raw_by_day: FloatArray
    """(day,) without the defence, by the attacker that never saw one."""
    masked_by_day: FloatArray
    """(seed, day) behind the defence."""

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
        """Mean over days behind the defence, (seed,)."""
        known = ~np.isnan(self.paired()[0])
        return np.array([mean(row[known]) for row in self.masked_by_day])

    @property
    def masked(self) -> float:
        """Mean over days and seeds behind the defence."""
        return self.raw + self.delta

    @property
    def spread(self) -> float:
        """Standard deviation over seeds; exactly 0 where all agree."""
        values = self.masked_by_seed
        return float(np.std(values - values[0], ddof=1))

    @property
    def delta(self) -> float:
        """What the defence changed: masked - raw; exactly 0 where no seed changed anything."""
        return mean(delta(self.raw, self.masked_by_seed))

    @property
    def p(self) -> float:
        """Probability of such a change by chance, over seeds (D9); NaN where the score is undefined."""
        return float(p_value(self.masked_by_seed, self.raw)) if self.n_days else float("nan")

    @property
    def is_harmful(self) -> bool:
        """Tell whether the attacker reads significantly less."""
        return bool(is_harmful(self.metric, self.delta, self.p))

    def leak(self, prior: float) -> float:
        """Return the share that is still told of what the meter told beyond habits."""
        return float(leak(self.metric, prior, self.raw, self.masked))


def cases_of(attacker: str, raw: Scores, masked: Sequence[Scores]) -> list[Case]:
    """Pair an attacker's scores on the bare days with those on the masked ones of every seed."""
    found = [
        Case(attacker, target, metric, values, np.stack([scores[target, metric] for scores in masked]))
        for (target, metric), values in raw.items()
    ]
    both = {(case.target, case.metric): case for case in found}
    targets = dict.fromkeys(case.target for case in found if case.target != AGGREGATE)
    return [*found, *(_best_f1(both, target) for target in targets)]


def counted(cases: Sequence[Case], metric: str) -> list[Case]:
    """Choose the cases of a headline: defined scores of appliances, by the paper's attackers if any is there.

    Further attackers say more of a defence and would make its headline another than the paper's.
    """
    read = [
        case
        for case in cases
        if case.metric == metric and case.target != AGGREGATE and case.attacker not in FLOORS and case.n_days
    ]
    papers = [case for case in read if case.attacker in PAPER_SIX]
    return papers or read


def headline(cases: Sequence[Case], metric: str) -> Estimate:
    """Return "RMSE Inc.", "F1 Red." and their like: the ratio of means over all cases, in percent (D9).

    NaN where no case is defined.
    """
    rows = [case.paired() for case in counted(cases, metric)]
    if not rows:
        return Estimate(float("nan"))
    table = np.array([raw for raw, _ in rows] + [masked for _, masked in rows])
    return estimate(table, lambda means: headline_percent(metric, *np.split(means, 2)))


def significant(cases: Sequence[Case], metric: str) -> tuple[int, int]:
    """Count the cases that a defence harms significantly, and all of them (D9)."""
    chosen = counted(cases, metric)
    return sum(case.is_harmful for case in chosen), len(chosen)


class Strongest(NamedTuple):
    """What the attacker reads that reads most behind a defence, mean over appliances."""

    attacker: str
    masked: Estimate
    raw: float  # by the attacker that reads most without the defence
    prior: float  # by the attacker that never looks
    leak: Estimate  # of the way from prior to raw


def strongest(cases: Sequence[Case], prior: Mapping[tuple[str, str], FloatArray], metric: str) -> Strongest:
    """Find who reads most: a defence is only as good as its worst case (D11).

    `prior` is (target, metric) -> (day,). Both sides may choose: leak compares the best reader behind the
    defence with the best one without.
    """
    names = list(dict.fromkeys(case.attacker for case in cases if case.attacker not in FLOORS))
    tables = {name: _by_target(cases, name, metric) for name in names}
    sign = -harm_sign(metric)
    first = max(names, key=lambda name: sign * mean(_means(tables[name][1])))
    clean = max(names, key=lambda name: sign * mean(_means(tables[name][0])))
    targets = list(tables[first][2])
    floor = np.array([prior[target, metric] for target in targets])
    floor = np.where(np.isnan(tables[first][1]), np.nan, floor)
    rows = np.concatenate([floor, tables[clean][0], tables[first][1]])
    told = estimate(rows, lambda means: float(leak(metric, *_thirds(means))))
    blind, bare, _ = _thirds(_means(rows))
    return Strongest(first, estimate(tables[first][1], mean), bare, blind, told)


def best_f1(scores: Scores, target: str) -> FloatArray:
    """Return the F1 of every day by the output that reads more of the target."""
    outputs = [scores[target, metric] for metric in ("f1", "f1_head") if (target, metric) in scores]
    return max(outputs, key=mean)


def estimate(by_day: FloatArray, statistic: Callable[[FloatArray], float], seed: int = 0) -> Estimate:
    """Compute a statistic of row means, with a bootstrap over days of its confidence interval.

    `by_day` is (row, day); days are drawn together for all rows, since an easy day is easy for everyone, and
    equally for every defence, so that intervals of the same days compare.
    """
    value = statistic(_means(by_day))
    days = by_day.shape[1]
    if days < LEAST_DAYS:
        return Estimate(value)
    draws = np.random.default_rng([seed, days]).multinomial(days, np.full(days, 1 / days), RESAMPLES)
    drawn = np.array([statistic(means) for means in _weighted_means(by_day, draws)])
    tail = (100.0 - CONFIDENCE_PERCENT) / 2
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return Estimate(value)
    low, high = np.percentile(known, [tail, 100.0 - tail])
    return Estimate(value, float(low), float(high))


def mean(values: FloatArray) -> float:
    """Average what is defined; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _means(by_day: FloatArray) -> FloatArray:
    """Average each row over the days on which it is defined."""
    means: FloatArray = _weighted_means(by_day, np.ones((1, by_day.shape[1])))[0]
    return means


def _weighted_means(by_day: FloatArray, weights: npt.ArrayLike) -> FloatArray:
    """Average each row with each draw's weight of every day, (draw, row)."""
    known = ~np.isnan(by_day)
    counts = np.asarray(weights, float) @ known.T
    sums = np.asarray(weights, float) @ np.where(known, by_day, 0.0).T
    means: FloatArray = np.full(sums.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _thirds(values: FloatArray) -> list[float]:
    return [mean(part) for part in np.split(values, 3)]


def _best_f1(both: Mapping[tuple[str, str], Case], target: str) -> Case:
    outputs = [both[target, metric] for metric in ("f1", "f1_head") if (target, metric) in both]
    raw = max(outputs, key=lambda case: mean(case.raw_by_day))
    masked = max(outputs, key=lambda case: mean(case.masked_by_day))
    return Case(raw.attacker, target, BEST_F1, raw.raw_by_day, masked.masked_by_day)


def _by_target(
    cases: Sequence[Case], name: str, metric: str
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return raw and masked, (target, day) each, and the appliances."""
    mine = [
        case for case in cases if (case.attacker, case.metric) == (name, metric) and case.target != AGGREGATE
    ]
    raw, masked = (np.array(column) for column in zip(*(case.paired() for case in mine), strict=True))
    return raw, masked, tuple(case.target for case in mine)
