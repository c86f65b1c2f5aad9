"""Result cards of a measured defence, with what the paper prints beside each figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import FLOORS
from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.evaluation import scores
from meterveil.bench.evaluation.estimates import Estimate, deviation, estimate, mean
from meterveil.bench.evaluation.measure import Result
from meterveil.bench.evaluation.reported import papers_case, papers_headline
from meterveil.bench.evaluation.scores import BEST_F1, PAPER_METRICS, Case
from meterveil.bench.metrics import FloatArray
from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.settings import battery_values, tariff_values

CHANGE = {
    "rmse": "rmse_increase_percent",
    "mae": "mae_increase_percent",
    "sae": "sae_increase_percent",
    "f1": "f1_reduction_percent",
}
"""Metric -> the column of its headline."""

_PAPER_COSTS = ("energy_cost", "degradation_cost", "total_cost")


def cards_of(result: Result) -> list[Card]:
    """Write a measured defence down: a card for each figure."""
    found: list[Card] = []
    for threat, cases in result.cases.items():
        for case in cases:
            found += _case_cards(result, threat, case)
        found += _headline_cards(result, threat)
    for case in result.information:
        found += _case_cards(result, "clean", case)
    return [*found, *_physical_cards(result)]


@dataclass(frozen=True)
class Sheet:
    """Hold what the cards of one row share."""

    result: Result
    row: str
    threat: ThreatModel
    n_days: int
    attackers: tuple[str, ...] = ()
    """Whose figures these are."""

    def card(
        self,
        column: str,
        measured: float,
        reported: float | None = None,
        spread: float | None = None,
        note: str = "",
    ) -> Card:
        """Write one figure down."""
        trial = self.result.spec.trial
        return Card(
            table=trial.table,
            row=self.row,
            column=column,
            dataset=trial.test.dataset,
            measured=None if np.isnan(measured) else float(measured) + 0.0,  # no minus zero
            reported=reported,
            spread=None if spread is None or np.isnan(spread) else spread,
            seeds=tuple(range(self.result.seeds)),
            n_days=self.n_days,
            threat_model=self.threat,
            settings=_settings(self.result, self.threat) | self._attackers(),
            note=note,
        )

    def estimated(
        self,
        column: str,
        found: Estimate,
        reported: float | None = None,
        spread: float | None = None,
        note: str = "",
    ) -> Iterator[Card]:
        """Write a figure, and its confidence interval over days where there is one."""
        yield self.card(column, found.value, reported, spread, note)
        if not np.isnan(found.low):
            yield self.card(f"{column}_low", found.low)
            yield self.card(f"{column}_high", found.high)

    def _attackers(self) -> dict[str, Any]:
        return {"attackers": list(self.attackers)} if self.attackers else {}


def who_reads(result: Result, threat: ThreatModel) -> tuple[str, ...]:
    """Name the attackers of a threat model that look at the meter."""
    return tuple(name for name in result.spec.attackers[threat] if name not in FLOORS)


def _case_cards(result: Result, threat: ThreatModel, case: Case) -> Iterator[Card]:
    """Write a case down; information, which is no attacker's, under no threat model.

    Raw is masked - Delta; its cards, with the paper's, are those of `meterveil attack`.
    """
    rest = f", {result.contender.name}" + ("" if threat == "clean" else f", {threat}")
    attackers = () if threat == "clean" else (case.attacker,)
    sheet = Sheet(result, f"{case.attacker} {case.target}{rest}", threat, case.n_days, attackers)
    papers = papers_case(result, case) if threat == "fixed" else {}
    if case.metric == BEST_F1:
        yield sheet.card("f1_leak", case.leak(mean(result.prior[case.target, BEST_F1])))
        return
    note = "" if case.n_days else "undefined: the appliance stood still"
    yield sheet.card(case.metric, case.masked, papers.get("masked"), case.spread, note)
    if case.metric in (*PAPER_METRICS, "information_bits"):
        yield sheet.card(f"{case.metric}_delta", case.delta, papers.get("delta"), case.spread, note)
        yield sheet.card(f"{case.metric}_p", case.p, papers.get("p_value"), note=note)
    if case.metric == "rmse" and case.target != AGGREGATE:
        yield sheet.card("rmse_leak", case.leak(mean(result.prior[case.target, "rmse"])))


def _headline_cards(result: Result, threat: ThreatModel) -> Iterator[Card]:
    cases = result.cases[threat]
    papers = papers_headline(result) if threat == "fixed" else {}
    days = len(result.spec.trial.test.days)
    row = f"headline, {result.contender.name}, {threat}"
    sheet = Sheet(result, row, threat, days, who_reads(result, threat))
    attackers = ", ".join(dict.fromkeys(case.attacker for case in scores.counted(cases, "rmse")))
    for metric, column in CHANGE.items():
        harmed, count = scores.significant(cases, metric)
        note = f"{count} cases of {attackers}"
        note += f"; the paper has {papers['cases']:.0f}" if "cases" in papers else ""
        spread = deviation(scores.headline_by_seed(cases, metric))
        yield from sheet.estimated(
            column, scores.headline(cases, metric), papers.get(column), spread, note=note
        )
        yield sheet.card(f"{metric}_significant", harmed, papers.get(f"{metric}_significant"), note=note)
        yield sheet.card(f"{metric}_cases", count, papers.get("cases"))
    for metric, column in ((BEST_F1, "f1"), ("rmse", "rmse")):
        most = scores.strongest(cases, result.prior, metric)
        note = f"mean over appliances, by {most.attacker}: it reads most"
        spread = deviation(most.masked_by_seed)
        yield from sheet.estimated(f"strongest_{column}", most.masked, spread=spread, note=note)
        yield sheet.card(f"strongest_{column}_raw", most.raw)
        yield sheet.card(f"prior_{column}", most.prior)
        spread = deviation(most.leak_by_seed)
        yield from sheet.estimated(f"{column}_leak", most.leak, spread=spread, note=note)


def _physical_cards(result: Result) -> Iterator[Card]:
    papers, days = papers_headline(result), len(result.spec.trial.test.days)
    sheet = Sheet(result, f"battery, {result.contender.name}", "clean", days)
    for column, by_day in result.played.physical._asdict().items():
        found = estimate(by_day.mean(axis=0)[None], mean)
        printed = papers.get(column) if column in _PAPER_COSTS else None
        yield from sheet.estimated(column, found, printed, _spread(by_day))
    seconds = result.contender.training_seconds
    if seconds:
        hours = papers.get("training_hours")
        printed = None if hours is None else hours * 3600
        yield sheet.card("training_seconds", float(np.mean(seconds)), printed)


def _spread(by_day: FloatArray) -> float:
    """Return the deviation over days, or over seeds where there is one day."""
    values = by_day.mean(axis=0) if by_day.shape[1] > 1 else by_day[:, 0]
    return float(np.std(values, ddof=1))


def _settings(result: Result, threat: ThreatModel) -> dict[str, Any]:
    """Return what a card must say; of the battery and the tariff, only what differs from the paper's."""
    setup, papers = result.spec.setup, battery_values(Battery())
    found = {**result.spec.trial.settings, **result.contender.settings}
    found["library"] = setup.library.digest()[:12]
    own = {name: value for name, value in battery_values(setup.battery).items() if value != papers[name]}
    if own:
        found["battery"] = own
    if setup.tariff != PAPER_TARIFF:
        found["tariff"] = tariff_values(setup.tariff)
    if threat == "adaptive":
        found["copies"] = result.spec.copies
    return found
