"""From result cards to the pictures of Condition A1: it reads, and needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meterveil.errors import InputError
from meterveil.plots.alignment import Curves, Point, alignment_figure, risk_figure
from meterveil.plots.saving import save

_OF_A_SNAPSHOT = ("update", "snapshot")
"""Settings in which the snapshots of one training differ; they share all others."""


def curves(cards: list[dict[str, Any]], ending: str) -> Curves:
    """Put the figures whose columns end so, and their intervals, in order: what comes before is the kind."""
    known: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for card in cards:
        kind, found, bound = card["column"].partition(f"_{ending}")
        if found:
            reader = card["row"].split(",")[0]
            at = (kind, card["dataset"], reader, card["settings"]["update"])
            known.setdefault(at, {})[bound] = card["measured"]
    drawn: Curves = {}
    for (kind, house, reader, update), figures in sorted(known.items()):
        point = Point(update, *(figures[bound] for bound in ("", "_low", "_high")))
        drawn.setdefault(kind, {}).setdefault(house, {}).setdefault(reader, []).append(point)
    return drawn


def draw(cards: list[dict[str, Any]], folder: Path, name: str) -> None:
    """Draw the pictures of all houses that were measured."""
    check_alike(cards)
    save(alignment_figure(curves(cards, "cosine")), folder / f"{name}.png", width=1100)
    save(risk_figure(curves(cards, "mean")), folder / f"{name}-risks.png", width=1100)


def check_alike(cards: list[dict[str, Any]]) -> None:
    """Refuse cards of a house that were not measured alike: a line through them would mean nothing."""
    first: dict[str, dict[str, Any]] = {}
    for card in cards:
        other = first.setdefault(card["dataset"], card)
        if _shared(card) != _shared(other):
            raise InputError(
                f"on {card['dataset']}, {card['row']} and {other['row']} were not measured alike; "
                "remove the older of the two, or give --results another folder"
            )


def _shared(card: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in card["settings"].items() if name not in _OF_A_SNAPSHOT}
