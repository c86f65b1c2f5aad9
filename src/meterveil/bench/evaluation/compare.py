"""One defence against another on the same days: whether the gap is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr  # type: ignore[import-untyped]

from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.evaluation.cards import CHANGE, Sheet, who_reads
from meterveil.bench.evaluation.estimates import Estimate, deviation, estimate
from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.scores import BEST_F1, counted, headline_by_seed, strongest, thirds
from meterveil.bench.metrics import FloatArray, leak
from meterveil.bench.significance import headline_percent
from meterveil.errors import InputError

STRONGEST, LEAK = "strongest_f1", "f1_leak"
COLUMNS = (CHANGE["rmse"], CHANGE["f1"], STRONGEST, LEAK)
"""What two defences are compared by; a card's column ends in `_difference`."""


class Gap(NamedTuple):
    """How much more of a figure one defence has than another."""

    threat: ThreatModel
    column: str
    difference: Estimate  # with its interval over days, which both defences share
    p: float  # over seeds, which they do not share
    spread: float  # standard deviation over seeds of the one and of the other together


def gaps(one: Result, other: Result) -> list[Gap]:
    """Compare two defences by headline and by what the strongest attacker reads, under every threat model.

    There is a gap for each of `COLUMNS`, in their order.
    """
    if one.spec.trial != other.spec.trial or one.spec.attackers != other.spec.attackers:
        raise InputError("two defences compare only on the same days and against the same attackers")
    found = []
    for threat in one.cases:
        found += [_headline_gap(one, other, threat, metric) for metric in ("rmse", "f1")]
        found += _strongest_gaps(one, other, threat)
    return found


def find(results: Sequence[Result], name: str) -> Result:
    """Look the defence up that others are compared with."""
    known = {result.contender.name: result for result in results}
    if name not in known:
        raise InputError(f"{name} is not among the defences; compare with one of {', '.join(known)}")
    return known[name]


def gap_cards(one: Result, other: Result, row: str = "") -> Iterator[Card]:
    """Write the gaps down, under the names of both defences unless the row has another."""
    days, names = len(one.spec.trial.test.days), (one.contender.name, other.contender.name)
    row, note = row or " against ".join(names), " minus ".join(names)
    for gap in gaps(one, other):
        sheet = Sheet(one, f"{row}, {gap.threat}", gap.threat, days, who_reads(one, gap.threat))
        yield from sheet.estimated(difference(gap.column), gap.difference, spread=gap.spread, note=note)
        yield sheet.card(f"{difference(gap.column)}_p", gap.p)


def difference(column: str) -> str:
    """Name the column that holds how much more of a figure there is."""
    return f"{column}_difference"


def gap_rows(results: Sequence[Result], other: Result) -> list[list[str]]:
    """Write a row for each defence that is compared, the head of the table first.

    Leak is F1 on another scale, the same for both: that gap is left to the cards.
    """
    others = [result for result in results if result is not other]
    heads = [f"{threat} {words}" for threat in other.cases for words in _WORDS.values()]
    rows = [["defence", *(part for head in heads for part in (head, "p"))]]
    for result in others:
        shown = [gap for gap in gaps(result, other) if gap.column in _WORDS]
        rows.append(
            [result.contender.name, *(part for gap in shown for part in (_cell(gap), f"{gap.p:.3f}"))]
        )
    return rows


def welch_p(first: FloatArray, second: FloatArray) -> float:
    """Test whether two sets of seeds have the same mean: Welch's two-sided t-test.

    Seeds that all agree leave no doubt, as in `significance.p_value`.
    """
    errors = [np.var(values - values[0], ddof=1) / len(values) for values in (first, second)]
    gap = first.mean() - second.mean()
    if sum(errors) == 0:
        return float(np.isclose(gap, 0.0))
    freedom = sum(errors) ** 2 / sum(
        error**2 / (len(values) - 1) for error, values in zip(errors, (first, second), strict=True)
    )
    return float(2 * stdtr(freedom, -abs(gap) / np.sqrt(sum(errors))))


_WORDS = {CHANGE["rmse"]: "RMSE Inc. %", CHANGE["f1"]: "F1 Red. %", STRONGEST: "F1"}


def _headline_gap(one: Result, other: Result, threat: ThreatModel, metric: str) -> Gap:
    mine, theirs = (counted(result.cases[threat], metric) for result in (one, other))
    pairs = [(*case.paired(), rival.paired()[1]) for case, rival in zip(mine, theirs, strict=True)]
    rows = np.concatenate([np.array(column) for column in zip(*pairs, strict=True)])

    def statistic(means: FloatArray) -> float:
        raw, first, second = np.split(means, 3)
        return headline_percent(metric, raw, first) - headline_percent(metric, raw, second)

    by_seed = headline_by_seed(mine, metric), headline_by_seed(theirs, metric)
    return _gap(threat, CHANGE[metric], estimate(rows, statistic), *by_seed)


def _strongest_gaps(one: Result, other: Result, threat: ThreatModel) -> list[Gap]:
    """Compare what is read, and told beyond habits, by the attacker that reads most behind each."""
    mine, theirs = (strongest(result.cases[threat], result.prior, BEST_F1) for result in (one, other))
    rows = np.concatenate([mine.by_day, theirs.by_day])

    def compared(figure: Callable[[list[float]], float]) -> Estimate:
        def statistic(means: FloatArray) -> float:
            first, second = (figure(thirds(half)) for half in np.split(means, 2))
            return first - second

        return estimate(rows, statistic)

    read = compared(lambda parts: parts[-1])
    told = compared(lambda parts: float(leak(BEST_F1, *parts)))
    return [
        _gap(threat, STRONGEST, read, mine.masked_by_seed, theirs.masked_by_seed),
        _gap(threat, LEAK, told, mine.leak_by_seed, theirs.leak_by_seed),
    ]


def _gap(threat: ThreatModel, column: str, found: Estimate, first: FloatArray, second: FloatArray) -> Gap:
    """Add what seeds say, (seed,) of each defence."""
    spread = float(np.hypot(deviation(first), deviation(second)))
    return Gap(threat, column, found, welch_p(first, second), spread)


def _cell(gap: Gap) -> str:
    digits = 2 if gap.column == STRONGEST else 1
    value, low, high = (f"{part:+.{digits}f}" for part in gap.difference)
    return value if np.isnan(gap.difference.low) else f"{value}\u00a0({low}..{high})"
