"""What the paper claims in a sentence each, beside what was measured: the first table that anyone reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from meterveil.bench.report.chance import adaptive_claims, gap_claims
from meterveil.bench.report.columns import judge, tolerance
from meterveil.bench.report.compare import Comparison, compare_one
from meterveil.bench.report.declared import (
    ABLATIONS,
    COMPARED,
    HEADLINES,
    OTHER_DAYS,
    OVER_CHANCE,
    Claim,
)
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.names import DATASETS
from meterveil.bench.report.reading import Results
from meterveil.bench.reported import claimed

Value = Callable[[str, str], float | None]
"""Figure of a label and a column, the paper's or ours."""


def claims(results: Results) -> list[Comparison]:
    """Compare every claim; `row` is the claim in words."""
    return [
        *(_compared(claim, dataset, results) for dataset in ("ukdale", "redd") for claim in HEADLINES),
        *(_compared(claim, "ukdale", results) for claim in COMPARED),
        *_over_chance(results),
        *(_compared(claim, "ukdale", results) for claim in ABLATIONS),
        *(_other_days(claim, dataset, results) for dataset, claim in OTHER_DAYS.items()),
        *adaptive_claims(results),
    ]


def _over_chance(results: Results) -> Sequence[Comparison]:
    """Compare with chance as it was tested, with interval and p; until then by the headlines alone."""
    return list(gap_claims(results)) or [_compared(claim, "ukdale", results) for claim in OVER_CHANCE]


def _compared(claim: Claim, dataset: str, results: Results) -> Comparison:
    recorded = Recorded(results.of(claim.table, dataset))
    if claim.over:
        return _worded(claim, _difference(claim, dataset, recorded, lambda value: _lead(claim, value)))
    return _worded(claim, compare_one(claim.table, dataset, claim.label, claim.column, recorded))


def _other_days(claim: Claim, dataset: str, results: Results) -> Comparison:
    """Compare the mean over days and houses other than the main one, those that both have measured."""
    recorded = Recorded(results.of(claim.table, dataset))
    others = claimed.labels(claim.table, dataset)[1:]
    both = [label for label in others if recorded.find(label, claim.column)] or others

    def mean(value: Value) -> float | None:
        known = list(_known(both, claim.column, value))
        return sum(known) / len(known) if known else None

    counted = replace(claim, words=claim.words.format(len(both)))
    return _worded(counted, _difference(claim, dataset, recorded, mean))


def _difference(
    claim: Claim, dataset: str, recorded: Recorded, derive: Callable[[Value], float | None]
) -> Comparison:
    """Derive one figure from several, for the paper and for us by the same arithmetic."""
    printed = claimed.claimed(claim.table)
    paper = derive(lambda label, column: printed.get((dataset, label, column)))
    value = derive(lambda label, column: found.value if (found := recorded.find(label, column)) else None)
    if value is None:
        return Comparison(claim.table, dataset, "", "difference", "not run yet", paper)
    verdict, gap = judge("difference", paper, value), ""
    if paper is not None and value <= 0 < paper:  # whatever the tolerance: the sign is the claim
        verdict = "worse"
    if paper is not None and verdict != "reproduced":
        gap = f"{value - paper:+.1f}, allowed ±{tolerance('difference', paper):.1f}"
    return Comparison(claim.table, dataset, "", "difference", verdict, paper, ours=Found(value), gap=gap)


def _lead(claim: Claim, value: Value) -> float | None:
    own = value(claim.label, claim.column)
    known = list(_known(claim.over, claim.column, value))
    return None if own is None or len(known) < len(claim.over) else own - max(known)


def _known(labels: Sequence[str], column: str, value: Value) -> Iterator[float]:
    return (one for label in labels if (one := value(label, column)) is not None)


def _worded(claim: Claim, one: Comparison) -> Comparison:
    """Name a comparison by its claim, and say why it came out so, which a column's own reason says less."""
    row, why = f"{DATASETS[one.dataset]}: {claim.words}", claim.reason(one.verdict) or one.why
    return replace(one, row=row, why=why)
