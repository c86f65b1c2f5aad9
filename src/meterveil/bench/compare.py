"""Comparison of two defences on the same days: differences of figures, with intervals and p values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meterveil.bench.cases import BEST_F1, counted, headline_by_seed, strongest, thirds
from meterveil.bench.estimates import Estimate, deviation, estimate, welch_p
from meterveil.bench.evaluate import Result
from meterveil.bench.figures import (
    EVERY,
    HEADLINES,
    STRONGEST,
    base_figure,
    number,
    under_threat,
    with_value,
)
from meterveil.bench.metrics import FloatArray, headline_percent, leak
from meterveil.bench.results import Figure, ThreatModel
from meterveil.errors import InputError

COMPARED = (
    (EVERY, HEADLINES["rmse"]),
    (EVERY, HEADLINES["f1"]),
    (STRONGEST, "f1"),
    (STRONGEST, "f1_leak"),
)
"""Attacker and metric of the figures that are compared."""

_WORDS = {HEADLINES["rmse"]: "RMSE Inc. %", HEADLINES["f1"]: "F1 Red. %", "f1": "F1"}


class Gap(NamedTuple):
    """Difference of a figure between two defences."""

    threat: ThreatModel
    attacker: str
    metric: str
    difference: Estimate  # with its interval over days, which both defences share
    p: float  # over seeds, which they do not share
    spread: float  # standard deviation over the seeds of both


def gaps(result: Result, other: Result) -> list[Gap]:
    """Compare two defences under every threat model; there is a gap for each of `COMPARED`, in its order."""
    if result.spec.trial != other.spec.trial or result.spec.attackers != other.spec.attackers:
        raise InputError("two defences can be compared only on the same days and with the same attackers")
    differences = []
    for threat in result.cases:
        differences += [_headline_gap(result, other, threat, metric) for metric in ("rmse", "f1")]
        differences += _strongest_gaps(result, other, threat)
    return differences


def difference_label(first: str, second: str) -> str:
    """Name the difference of two defences in the table of results."""
    return f"{first} minus {second}"


def gap_figures(result: Result, other: Result, run: str) -> list[Figure]:
    """List the differences of two defences as rows of the table of results."""
    label = difference_label(result.defence.name, other.defence.name)
    base = replace(base_figure(result, run), defence=label, appliance=EVERY)
    return [
        with_value(
            under_threat(base, result, gap.threat),
            gap.metric,
            gap.difference,
            gap.spread,
            attacker=gap.attacker,
            p=number(gap.p),
        )
        for gap in gaps(result, other)
    ]


def gap_rows(results: Sequence[Result], other: Result) -> list[list[str]]:
    """Write a table of the differences to one defence, the head first; F1 stands for the leak too."""
    heads = [f"{threat} {words}" for threat in other.cases for words in _WORDS.values()]
    rows = [["defence", *(part for head in heads for part in (head, "p"))]]
    for result in results:
        if result is not other:
            shown = [gap for gap in gaps(result, other) if gap.metric in _WORDS]
            cells = [part for gap in shown for part in (_cell(gap), f"{gap.p:.3f}")]
            rows.append([result.defence.name, *cells])
    return rows


def _headline_gap(result: Result, other: Result, threat: ThreatModel, metric: str) -> Gap:
    mine, theirs = (counted(side.cases[threat], metric) for side in (result, other))
    pairs = [(*case.paired(), rival.paired()[1]) for case, rival in zip(mine, theirs, strict=True)]
    rows = np.concatenate([np.array(column) for column in zip(*pairs, strict=True)])

    def statistic(means: FloatArray) -> float:
        raw, first, second = np.split(means, 3)
        return headline_percent(metric, raw, first) - headline_percent(metric, raw, second)

    by_seed = headline_by_seed(mine, metric), headline_by_seed(theirs, metric)
    return _gap((threat, EVERY, HEADLINES[metric]), estimate(rows, statistic), *by_seed)


def _strongest_gaps(result: Result, other: Result, threat: ThreatModel) -> list[Gap]:
    """Compare F1 and leak of the attacker that reads most with each defence."""
    mine, theirs = (strongest(side.cases[threat], side.prior, BEST_F1) for side in (result, other))
    rows = np.concatenate([mine.by_day, theirs.by_day])

    def compared(figure: Callable[[list[float]], float]) -> Estimate:
        def statistic(means: FloatArray) -> float:
            first, second = (figure(thirds(half)) for half in np.split(means, 2))
            return first - second

        return estimate(rows, statistic)

    f1 = compared(lambda parts: parts[-1])
    leaked = compared(lambda parts: float(leak(BEST_F1, *parts)))
    return [
        _gap((threat, STRONGEST, "f1"), f1, mine.masked_by_seed, theirs.masked_by_seed),
        _gap((threat, STRONGEST, "f1_leak"), leaked, mine.leak_by_seed, theirs.leak_by_seed),
    ]


def _gap(
    labels: tuple[ThreatModel, str, str], difference: Estimate, first: FloatArray, second: FloatArray
) -> Gap:
    """Add p and spread from the figures of every seed, (seed,) of each defence."""
    spread = float(np.hypot(deviation(first), deviation(second)))
    return Gap(*labels, difference, welch_p(first, second), spread)


def _cell(gap: Gap) -> str:
    digits = 2 if gap.metric == "f1" else 1
    value, low, high = (f"{part:+.{digits}f}" for part in gap.difference)
    return value if np.isnan(gap.difference.low) else f"{value}\u00a0({low}..{high})"
