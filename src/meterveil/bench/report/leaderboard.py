"""Defences in the order of what an attacker still reads who adapts to them (D11)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from meterveil.bench.cards import Card, ThreatModel
from meterveil.bench.report.lookup import Found, Recorded, place_of
from meterveil.bench.report.names import row_name
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
    event_f1: Found | None
    information_bits: Found | None
    submitted: str = ""  # by whom, where it was measured elsewhere


class Board(NamedTuple):
    """The defences that were measured on the same days, best first."""

    table: str
    dataset: str
    standings: tuple[Standing, ...]
    threat: ThreatModel  # the hardest that any defence was measured under: what is drawn
    raw_f1: float | None  # of the strongest attacker of this threat model, without a defence
    prior_f1: float | None  # of the attacker that never looks
    attackers: dict[ThreatModel, tuple[str, ...]]  # who read, as far as the cards say so
    days: frozenset[str] = frozenset()
    submitted: str = ""  # by whom, where nothing of ours compares
    part: int = 1  # of that submission, where its own entries do not compare either


def standing_name(one: Standing) -> str:
    """Write what a defence is called, and by whom it was measured where that is not us."""
    return f"{row_name(one.label)} (submitted: {one.submitted})" if one.submitted else row_name(one.label)


def boards(results: Results) -> list[Board]:
    """Rank the defences of every comparison that is recorded, and those that others submitted beside them."""
    found = [_board(*key, Recorded(results.of(*key))) for key in _chosen(results)]
    for name, theirs in results.submitted.items():
        for (table, dataset), cards in theirs.items():
            if any(re.fullmatch(f"{own}|{stand_in}", table) for own, stand_in in _STANDS_FOR.items()):
                for alike in _read_alike(cards):
                    _join(found, _board(table, dataset, Recorded(alike), name))
    return [board for board in found if board.standings]


def _chosen(results: Results) -> Iterator[tuple[str, str]]:
    recorded = {table for table, _ in results.tables}
    for name, stand_in in _STANDS_FOR.items():
        names = [name] if name in recorded else sorted(t for t in recorded if re.fullmatch(stand_in, t))
        yield from (key for key in results.tables if key[0] in names)


def _board(table: str, dataset: str, recorded: Recorded, submitted: str = "") -> Board:
    standings = [_standing(recorded, label, submitted) for label in recorded.labels]
    measured = [one for one in standings if one.adaptive_f1 or one.fixed_f1]
    threat: ThreatModel = "adaptive" if any(one.adaptive_f1 for one in measured) else "fixed"
    raw_f1, prior_f1 = _level(recorded, "strongest_f1_raw", threat), _level(recorded, "prior_f1", *_THREATS)
    attackers = {name: found for name in _THREATS if (found := recorded.attackers(name))}
    days = frozenset(recorded.days())
    ranked = tuple(sorted(measured, key=_rank))
    return Board(table, dataset, ranked, threat, raw_f1, prior_f1, attackers, days, submitted)


def _read_alike(cards: Sequence[Card]) -> list[list[Card]]:
    """Split what was submitted by who read it and when: a defence that few attackers read ranks too well."""
    groups: dict[Hashable, list[Card]] = {}
    for label in Recorded(cards).labels:
        own = [card for card in cards if place_of(card).label == label]
        one = Recorded(own)
        readers = tuple(frozenset(one.attackers(threat)) for threat in _THREATS)
        groups.setdefault((readers, frozenset(one.days())), []).extend(own)
    return list(groups.values())


def _join(found: list[Board], theirs: Board) -> None:
    """Put submitted defences on the board of ours with which they compare, or on one of their own."""
    for number, board in enumerate(found):
        if _compares(board, theirs):
            known = {one.label for one in board.standings}
            new = [one for one in theirs.standings if one.label not in known]
            ranked = tuple(sorted([*board.standings, *new], key=_rank))
            found[number] = board._replace(standings=ranked)
            return
    same = [one for one in found if one[:2] == theirs[:2] and one.submitted == theirs.submitted]
    found.append(theirs._replace(part=len(same) + 1))


def _compares(board: Board, theirs: Board) -> bool:
    """Tell whether the same days were read, and by at least the attackers that read ours."""
    same_days = (board.dataset, board.days) == (theirs.dataset, theirs.days) and len(board.days) == 1
    figures = {
        "adaptive": [one.adaptive_f1 for one in theirs.standings],
        "fixed": [one.fixed_f1 for one in theirs.standings],
    }
    return same_days and all(
        set(board.attackers.get(threat, ())) <= set(theirs.attackers.get(threat, ()))
        for threat in _THREATS
        if any(figures[threat])
    )


def _rank(one: Standing) -> tuple[bool, float, float]:
    """Put what was never attacked adaptively behind everything else."""
    adaptive = one.adaptive_f1.value if one.adaptive_f1 else 0.0
    fixed = one.fixed_f1.value if one.fixed_f1 else 1.0
    return one.adaptive_f1 is None, adaptive, fixed


def _standing(recorded: Recorded, label: str, submitted: str) -> Standing:
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
        recorded.find(label, "event_f1", "adaptive") or recorded.find(label, "event_f1"),
        recorded.find(label, "information_bits"),
        submitted,
    )


def _level(recorded: Recorded, column: str, *threats: ThreatModel) -> float | None:
    """Return what is the same beside every defence of these threat models."""
    found = (recorded.find(label, column, threat) for label in recorded.labels for threat in threats)
    return next((one.value for one in found if one), None)
