"""From result cards to the picture of Condition A1: it reads, and needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meterveil.plots.alignment import Point, alignment_figure
from meterveil.plots.look import save

_ORDER = ("all six", "probe")
"""Readers that are drawn first; attackers follow by name."""

Curves = dict[str, dict[str, dict[str, list[Point]]]]
"""Comparison -> house -> reader -> points along the training."""


def curves(cards: list[dict[str, Any]]) -> Curves:
    """Put the cosines of all cards in order."""
    known: dict[tuple[str, str, str, int], dict[str, float]] = {}
    for card in cards:
        comparison, _, figure = card["column"].partition("_")
        if figure.startswith("cosine"):
            reader = card["row"].split(",")[0]
            at = (comparison, card["dataset"], reader, card["settings"]["update"])
            known.setdefault(at, {})[figure] = card["measured"]
    found: Curves = {}
    for (comparison, house, reader, update), figures in sorted(known.items(), key=_place):
        point = Point(update, *(figures[name] for name in ("cosine", "cosine_low", "cosine_high")))
        found.setdefault(comparison, {}).setdefault(house, {}).setdefault(reader, []).append(point)
    return found


def draw(cards: list[dict[str, Any]], path: Path) -> None:
    """Draw the picture of all houses that were measured."""
    save(alignment_figure(curves(cards)), path, width=1100)


def _place(item: tuple[tuple[str, str, str, int], Any]) -> tuple[Any, ...]:
    comparison, house, reader, update = item[0]
    return comparison, house, _ORDER.index(reader) if reader in _ORDER else len(_ORDER), reader, update
