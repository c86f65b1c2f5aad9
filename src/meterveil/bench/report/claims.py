"""What the paper claims in a sentence each, beside what was measured: the first table that anyone reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from meterveil.bench.report.chance import adaptive_claims, gap_claims
from meterveil.bench.report.columns import judge, tolerance
from meterveil.bench.report.compare import Comparison, compare_one
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.names import CHANCE, DATASETS
from meterveil.bench.report.reading import Results
from meterveil.bench.reported import claimed

RMSE, F1 = "rmse_increase_percent", "f1_reduction_percent"
_OTHERS = ("random", "rule_based", "ddql_flat", "ddql_mi")
_CELLS: tuple[tuple[str, str, str, str], ...] = (
    ("overall_transfer", "ours", RMSE, "attackers' RMSE rises, %"),
    ("overall_transfer", "ours", F1, "attackers' F1 falls, %"),
    ("overall_transfer", "ours", "rmse_significant", "cases with significantly more RMSE"),
    ("overall_transfer", "ours", "f1_significant", "cases with significantly less F1"),
)
_COMPARED: tuple[tuple[str, str], ...] = (
    ("total_cost", "cost of a day with the battery"),
    ("soc_neutral_cost", "the same, with the charge of the morning bought back"),
    ("training_hours", "hours of training"),
)

Value = Callable[[str, str], float | None]
"""Figure of a label and a column, the paper's or ours."""


def claims(results: Results) -> list[Comparison]:
    """Compare every claim; `row` is the claim in words."""
    return [
        *_headlines(results),
        *_compared(results),
        *_over_chance(results),
        *_ablations(results),
        *adaptive_claims(results),
    ]


def _headlines(results: Results) -> Iterator[Comparison]:
    for dataset in ("ukdale", "redd"):
        recorded = Recorded(results.of("overall_transfer", dataset))
        for table, label, column, words in _CELLS:
            yield _worded(compare_one(table, dataset, label, column, recorded), dataset, words)


def _compared(results: Results) -> Iterator[Comparison]:
    table, dataset = "baseline_comparison", "ukdale"
    recorded = Recorded(results.of(table, dataset))
    for column, words in ((RMSE, "RMSE"), (F1, "F1")):
        sentence = f"lead over the next best of the paper's defences, points of {words}"
        yield _difference(table, dataset, sentence, recorded, partial(_lead, column=column, others=_OTHERS))
    for column, words in _COMPARED:
        yield _worded(compare_one(table, dataset, "ours", column, recorded), dataset, words)


def _over_chance(results: Results) -> Iterator[Comparison]:
    """Compare with chance as it was tested, with interval and p; until then by the headlines alone."""
    tested = list(gap_claims(results))
    if tested:
        yield from tested
        return
    table, dataset = "baseline_comparison", "ukdale"
    recorded = Recorded(results.of(table, dataset))
    for column, words in ((RMSE, "RMSE"), (F1, "F1")):
        sentence = f"lead over chance at equal kWh, points of {words}"
        yield _difference(table, dataset, sentence, recorded, partial(_lead, column=column, others=(CHANCE,)))


def _ablations(results: Results) -> Iterator[Comparison]:
    steps = (
        ("probe_ablation", "transformer", "cnn", "probe: transformer over CNN, points of RMSE"),
        ("signature_size_ablation", "10", "3", "ten signatures over three, points of RMSE"),
        ("battery_sensitivity", "main", "capacity 2 kWh", "8 kWh of capacity over 2, points of RMSE"),
        ("battery_sensitivity", "main", "throughput 2 kWh", "8 kWh a day over 2, points of RMSE"),
    )
    for table, more, less, words in steps:
        recorded = Recorded(results.of(table, "ukdale"))
        yield _difference(table, "ukdale", words, recorded, partial(_gap, more=more, less=less))
    for table, dataset in (
        ("heldout_day_generalization", "ukdale"),
        ("heldout_day_generalization_redd", "redd"),
    ):
        yield _other_days(table, dataset, Recorded(results.of(table, dataset)))


def _other_days(table: str, dataset: str, recorded: Recorded) -> Comparison:
    """Compare the mean over days and houses other than the main one, those that both have measured."""
    others = claimed.labels(table, dataset)[1:]
    both = [label for label in others if recorded.find(label, F1)] or others
    words = f"F1 falls on {len(both)} other days and houses, without retraining, %"

    def mean(value: Value) -> float | None:
        known = [one for label in both if (one := value(label, F1)) is not None]
        return sum(known) / len(known) if known else None

    return _difference(table, dataset, words, recorded, mean)


def _difference(
    table: str, dataset: str, words: str, recorded: Recorded, derive: Callable[[Value], float | None]
) -> Comparison:
    """Derive one figure from several, for the paper and for us by the same arithmetic."""
    printed = claimed.claimed(table)
    paper = derive(lambda label, column: printed.get((dataset, label, column)))
    value = derive(lambda label, column: found.value if (found := recorded.find(label, column)) else None)
    if value is None:
        return _worded(Comparison(table, dataset, "", "difference", "not run yet", paper), dataset, words)
    verdict, gap = judge("difference", paper, value), ""
    if paper is not None and value <= 0 < paper:  # whatever the tolerance: the sign is the claim
        verdict = "worse"
    if paper is not None and verdict != "reproduced":
        gap = f"{value - paper:+.1f}, allowed ±{tolerance('difference', paper):.1f}"
    one = Comparison(table, dataset, "", "difference", verdict, paper, ours=Found(value), gap=gap)
    return _worded(one, dataset, words)


def _lead(value: Value, column: str, others: Sequence[str]) -> float | None:
    own = value("ours", column)
    known = [other for label in others if (other := value(label, column)) is not None]
    return None if own is None or len(known) < len(others) or not known else own - max(known)


def _gap(value: Value, more: str, less: str) -> float | None:
    first, second = value(more, RMSE), value(less, RMSE)
    return None if first is None or second is None else first - second


def _worded(one: Comparison, dataset: str, words: str) -> Comparison:
    return replace(one, row=f"{DATASETS[dataset]}: {words}")
