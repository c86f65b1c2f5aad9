"""What the paper claims in a sentence each, beside what was measured: the first table that anyone reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        return _worded(claim, _derived(claim, dataset, recorded, (claim.label, *claim.over)))
    return _worded(claim, compare_one(claim.table, dataset, claim.label, claim.column, recorded))


def _other_days(claim: Claim, dataset: str, results: Results) -> Comparison:
    """Compare the mean over days and houses other than the main one, those that both have measured."""
    recorded = Recorded(results.of(claim.table, dataset))
    others = claimed.labels(claim.table, dataset)[1:]
    both = [label for label in others if recorded.find(label, claim.column)] or others
    counted = replace(claim, words=claim.words.format(len(both)))
    return _worded(counted, _derived(claim, dataset, recorded, both))


def _derived(claim: Claim, dataset: str, recorded: Recorded, labels: Sequence[str]) -> Comparison:
    """Derive one figure from those of several rows, for the paper and for us by the same arithmetic."""
    printed = claimed.claimed(claim.table)
    papers = {label: printed.get((dataset, label, claim.column)) for label in labels}
    paper = _figure(claim, {label: value for label, value in papers.items() if value is not None})
    used = {label: one for label in labels if (one := recorded.find(label, claim.column))}
    value = _figure(claim, {label: one.value for label, one in used.items()})
    if value is None:
        return Comparison(claim.table, dataset, "", "difference", "not run yet", paper)
    verdict, gap = judge("difference", paper, value), ""
    if paper is not None and value <= 0 < paper:  # whatever the tolerance: the sign is the claim
        verdict = "worse"
    if paper is not None and verdict != "reproduced":
        gap = f"{value - paper:+.1f}, allowed ±{tolerance('difference', paper):.1f}"
    ours = _with_counts(claim, value, list(used.values()))
    return Comparison(claim.table, dataset, "", "difference", verdict, paper, ours=ours, gap=gap)


def _figure(claim: Claim, figures: Mapping[str, float]) -> float | None:
    """Take the best of the others away from the claim's own row, or without others the mean of all rows."""
    if not claim.over:
        return sum(figures.values()) / len(figures) if figures else None
    if not figures.keys() >= {claim.label, *claim.over}:
        return None
    return figures[claim.label] - max(figures[label] for label in claim.over)


def _with_counts(claim: Claim, value: float, used: Sequence[Found]) -> Found:
    """Count the fewest seeds of all rows; rows that are compared share their days, others add theirs."""
    days = [one.n_days for one in used]
    return Found(value, seeds=min(one.seeds for one in used), n_days=min(days) if claim.over else sum(days))


def _worded(claim: Claim, one: Comparison) -> Comparison:
    """Name a comparison by its claim, and say why it came out so, which a column's own reason says less."""
    row, why = f"{DATASETS[one.dataset]}: {claim.words}", claim.reason(one.verdict) or one.why
    return replace(one, row=row, why=why)
