"""From result cards to the pictures of Condition A1: it reads, and needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meterveil.plots.alignment import Curves, Point, alignment_figure, risk_figure
from meterveil.plots.look import save

_FIRST = ("all six", "probe")
"""Readers that are drawn first; attackers follow by name."""


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
    for (kind, house, reader, update), figures in sorted(known.items(), key=_place):
        point = Point(update, *(figures[bound] for bound in ("", "_low", "_high")))
        drawn.setdefault(kind, {}).setdefault(house, {}).setdefault(reader, []).append(point)
    return drawn


def draw(cards: list[dict[str, Any]], folder: Path, name: str) -> None:
    """Draw the pictures of all houses that were measured."""
    save(alignment_figure(curves(cards, "cosine")), folder / f"{name}.png", width=1100)
    save(risk_figure(curves(cards, "mean")), folder / f"{name}-risks.png", width=1100)


def _place(item: tuple[tuple[str, str, str, int], Any]) -> tuple[Any, ...]:
    kind, house, reader, update = item[0]
    return kind, house, _FIRST.index(reader) if reader in _FIRST else len(_FIRST), reader, update
