"""Defences in the order of what an attacker still reads who adapts to them: the honest worst case (D11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from meterveil.bench.cards import ThreatModel
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.reading import Results

_STANDS_FOR = {"baseline_comparison": r"evaluation_(paper|one)_day", "many_days": r"evaluation_\d+_days"}
"""Table of the comparison -> tables of `meterveil evaluate` that serve until it is recorded."""

_THREATS: tuple[ThreatModel, ...] = ("adaptive", "fixed")


class Standing(NamedTuple):
    """What is known of one defence; None where it was not measured."""

    label: str
    adaptive_f1: Found | None
    adaptive_leak: Found | None
    fixed_f1: Found | None
    fixed_leak: Found | None
    rmse_increase: Found | None
    f1_reduction: Found | None
    throughput_kwh: Found | None
    soc_end: Found | None
    neutral_cost: Found | None
    event_f1: float | None
    information_bits: float | None


class Board(NamedTuple):
    """The defences that were measured on the same days, best first."""

    table: str
    dataset: str
    standings: tuple[Standing, ...]
    threat: ThreatModel  # the hardest that any defence was measured under: what is drawn
    raw_f1: float | None  # of the strongest attacker of this threat model, without a defence
    prior_f1: float | None  # of the attacker that never looks
    attackers: dict[ThreatModel, tuple[str, ...]]  # who read, as far as the cards say so


def boards(results: Results) -> list[Board]:
    """Rank the defences of every comparison that is recorded."""
    tables = list(results.tables)
    recorded = {table for table, _ in tables}
    chosen = []
    for name, stand_in in _STANDS_FOR.items():
        names = [name] if name in recorded else sorted(t for t in recorded if re.fullmatch(stand_in, t))
        chosen += [(table, dataset) for table, dataset in tables if table in names]
    return [board for key in chosen if (board := _board(*key, results)).standings]


def _board(table: str, dataset: str, results: Results) -> Board:
    recorded = Recorded(results.of(table, dataset))
    standings = [_standing(recorded, label) for label in recorded.labels]
    measured = [one for one in standings if one.adaptive_f1 or one.fixed_f1]
    threat: ThreatModel = "adaptive" if any(one.adaptive_f1 for one in measured) else "fixed"
    raw_f1, prior_f1 = _level(recorded, "strongest_f1_raw", threat), _level(recorded, "prior_f1", *_THREATS)
    attackers = {name: found for name in _THREATS if (found := recorded.attackers(name))}
    return Board(table, dataset, tuple(sorted(measured, key=_rank)), threat, raw_f1, prior_f1, attackers)


def _rank(one: Standing) -> tuple[bool, float, float]:
    """Put what was never attacked adaptively behind everything else."""
    adaptive = one.adaptive_f1.value if one.adaptive_f1 else 0.0
    fixed = one.fixed_f1.value if one.fixed_f1 else 1.0
    return one.adaptive_f1 is None, adaptive, fixed


def _standing(recorded: Recorded, label: str) -> Standing:
    return Standing(
        label,
        recorded.find(label, "strongest_f1", "adaptive"),
        recorded.find(label, "f1_leak", "adaptive"),
        recorded.find(label, "strongest_f1"),
        recorded.find(label, "f1_leak"),
        recorded.find(label, "rmse_increase_percent"),
        recorded.find(label, "f1_reduction_percent"),
        recorded.find(label, "throughput_kwh"),
        recorded.find(label, "soc_end"),
        recorded.find(label, "soc_neutral_cost"),
        _events(recorded, label),
        recorded.information_bits(label),
    )


def _events(recorded: Recorded, label: str) -> float | None:
    """Return the F1 of uses found, by the attacker that finds most, under the harder threat measured."""
    cases = recorded.cases(label, "adaptive") or recorded.cases(label)
    by_attacker: dict[str, list[float]] = {}
    for key, found in cases.items():
        if key.metric == "event_f1":
            by_attacker.setdefault(key.attacker, []).append(found.value)
    return max((_mean(values) for values in by_attacker.values()), default=None)


def _level(recorded: Recorded, column: str, *threats: ThreatModel) -> float | None:
    """Return what is the same beside every defence of these threat models."""
    found = (recorded.find(label, column, threat) for label in recorded.labels for threat in threats)
    return next((one.value for one in found if one), None)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
