"""One defence against another on the same days: whether the gap is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr  # type: ignore[import-untyped]

from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.evaluation.cards import CHANGE, Sheet, who_reads
from meterveil.bench.evaluation.estimates import Estimate, estimate, mean
from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.scores import BEST_F1, Case, counted, headline_by_seed, strongest
from meterveil.bench.metrics import FloatArray
from meterveil.bench.significance import headline_percent
from meterveil.errors import InputError

STRONGEST = "strongest_f1"


class Gap(NamedTuple):
    """How much more of a figure one defence has than another."""

    threat: ThreatModel
    column: str
    difference: Estimate  # with its interval over days, which both defences share
    p: float  # over seeds, which they do not share


def gaps(one: Result, other: Result) -> list[Gap]:
    """Compare two defences by headline and by what the strongest attacker reads, under every threat model."""
    if one.spec.trial != other.spec.trial or one.spec.attackers != other.spec.attackers:
        raise InputError("two defences compare only on the same days and against the same attackers")
    found = []
    for threat in one.cases:
        found += [_headline_gap(one, other, threat, metric) for metric in ("rmse", "f1")]
        found.append(_strongest_gap(one, other, threat))
    return found


def find(results: Sequence[Result], name: str) -> Result:
    """Look the defence up that others are compared with."""
    known = {result.contender.name: result for result in results}
    if name not in known:
        raise InputError(f"{name} is not among the defences; compare with one of {', '.join(known)}")
    return known[name]


def gap_cards(one: Result, other: Result) -> Iterator[Card]:
    """Write the gaps down."""
    days = len(one.spec.trial.test.days)
    for gap in gaps(one, other):
        row = f"{one.contender.name} against {other.contender.name}, {gap.threat}"
        sheet = Sheet(one, row, gap.threat, days, who_reads(one, gap.threat))
        yield from sheet.estimated(f"{gap.column}_difference", gap.difference)
        yield sheet.card(f"{gap.column}_difference_p", gap.p)


def gap_rows(results: Sequence[Result], other: Result) -> list[list[str]]:
    """Write a row for each defence that is compared, the head of the table first."""
    others = [result for result in results if result is not other]
    columns = [(gap.threat, gap.column) for gap in gaps(other, other)]
    heads = [f"{threat} {_WORDS[column]}" for threat, column in columns]
    rows = [["defence", *(part for head in heads for part in (head, "p"))]]
    for result in others:
        cells = [part for gap in gaps(result, other) for part in (_cell(gap), f"{gap.p:.3f}")]
        rows.append([result.contender.name, *cells])
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

    p = welch_p(headline_by_seed(mine, metric), headline_by_seed(theirs, metric))
    return Gap(threat, CHANGE[metric], estimate(rows, statistic), p)


def _strongest_gap(one: Result, other: Result, threat: ThreatModel) -> Gap:
    """Compare what is read behind each by the attacker that reads most there."""
    mine, theirs = (_read_most(result, threat) for result in (one, other))
    rows = np.array([case.paired()[1] for case in (*mine, *theirs)])

    def statistic(means: FloatArray) -> float:
        first, second = np.split(means, 2)
        return mean(first) - mean(second)

    by_seed = [np.mean([case.masked_by_seed for case in cases], axis=0) for cases in (mine, theirs)]
    return Gap(threat, STRONGEST, estimate(rows, statistic), welch_p(*by_seed))


def _read_most(result: Result, threat: ThreatModel) -> list[Case]:
    cases = result.cases[threat]
    name = strongest(cases, result.prior, BEST_F1).attacker
    return [case for case in cases if (case.attacker, case.metric) == (name, BEST_F1) and case.n_days]


def _cell(gap: Gap) -> str:
    digits = 2 if gap.column == STRONGEST else 1
    value, low, high = (f"{part:+.{digits}f}" for part in gap.difference)
    return value if np.isnan(gap.difference.low) else f"{value}\u00a0({low}..{high})"
