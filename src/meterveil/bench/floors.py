"""Which attacker reads no more out of a meter than a predictor that never looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from meterveil.attackers.protocol import AGGREGATE
from meterveil.attackers.registry import FLOORS
from meterveil.bench.cards import Card

BLIND = ("mean", "off")
"""What every attacker has to beat; `prior` is the floor under an adaptive one."""

F1_COLUMNS = ("f1", "f1_head")
"""From thresholded power and from an on/off head; an attacker acts on the better of the two."""


@dataclass(frozen=True)
class Shortfall:
    """Name an attacker that does not beat a blind predictor on an appliance that was used."""

    attacker: str
    target: str
    metric: str
    """`rmse` or `f1`."""
    measured: float
    floor: str
    floor_score: float


def from_documents(documents: Iterable[Mapping[str, Any]]) -> list[Card]:
    """Turn cards as they are read from files back into cards."""
    names = [field.name for field in fields(Card)]
    return [
        Card(**{name: document[name] for name in names} | {"seeds": tuple(document["seeds"])})
        for document in documents
    ]


def attacker_and_target(card: Card) -> tuple[str, str]:
    """Split the row of a card: `co fridge`, or `co fridge, 12 copies`."""
    name, _, target = card.row.partition(",")[0].partition(" ")
    return name, target


def shortfalls(cards: Sequence[Card]) -> list[Shortfall]:
    """Find every case in which a trained attacker is not better than both blind predictors.

    The cards are those of one table and data set. An appliance counts where it was used: where its F1 is
    defined.
    """
    scores = _scores(cards)
    trained = [case for case in scores if case[0] not in FLOORS and case[1] != AGGREGATE]
    found = []
    for name, target in trained:
        own = scores[name, target]
        blind = {floor: scores[floor, target] for floor in BLIND if (floor, target) in scores}
        if "f1" not in own or not blind:
            continue
        best = min(blind, key=lambda floor: blind[floor]["rmse"])
        if own["rmse"] >= blind[best]["rmse"]:
            found.append(Shortfall(name, target, "rmse", own["rmse"], best, blind[best]["rmse"]))
        best = max(blind, key=lambda floor: _f1(blind[floor]))
        if _f1(own) <= _f1(blind[best]):
            found.append(Shortfall(name, target, "f1", _f1(own), best, _f1(blind[best])))
    return found


def shortfall_rows(cards: Sequence[Card]) -> list[list[str]]:
    """Write the shortfalls for people, the head of the table first."""
    rows = [["attacker", "appliance", "by", "reads", "blind", "blind reads"]]
    for case in shortfalls(cards):
        digits = 1 if case.metric == "rmse" else 2
        own, floor = (f"{value:.{digits}f}" for value in (case.measured, case.floor_score))
        metric = {"rmse": "RMSE, W", "f1": "F1"}[case.metric]
        rows.append([case.attacker, case.target.replace("_", " "), metric, own, case.floor, floor])
    return rows


def mean_over_appliances(cards: Sequence[Card], column: str, reported: bool = False) -> dict[str, float]:
    """Average a score of every attacker over the appliances for which it is defined (D9, D12).

    With `reported`, the paper's figures for the same appliances.
    """
    found: dict[str, list[float]] = {}
    for card in cards:
        name, target = attacker_and_target(card)
        value = card.reported if reported else card.measured
        if card.column == column and target != AGGREGATE and value is not None and card.measured is not None:
            found.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}


def _scores(cards: Sequence[Card]) -> dict[tuple[str, str], dict[str, float]]:
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for card in cards:
        if card.measured is not None:
            scores.setdefault(attacker_and_target(card), {})[card.column] = card.measured
    return scores


def _f1(scores: Mapping[str, float]) -> float:
    return max(scores[column] for column in F1_COLUMNS if column in scores)
