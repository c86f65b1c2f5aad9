"""The part of `meterveil attack` that prints, what was just measured and what is recorded alike."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from meterveil.cli.tables import MISLED, show_notes, show_table

if TYPE_CHECKING:
    from meterveil.bench.cards import Card


def show_recorded(cards: Sequence[Card]) -> None:
    """Print every table that the cards hold."""
    from meterveil.bench.attack_page import along, by_table

    for table in by_table(cards):
        curves = along(table)
        for steps, curve in curves.items():
            show_curve(curve, steps)
        if not curves:
            show_strength(table)


def show_strength(cards: Sequence[Card]) -> None:
    """Print a row for each attacker and target: ours, and the paper's beside it."""
    from meterveil.bench.headings import COLUMNS, heading

    rows = [["attacker, target", *(part for words in COLUMNS.values() for part in (words, "paper"))]]
    found = {(card.row, card.column): card for card in cards}
    for row in dict.fromkeys(card.row for card in cards):
        cells = [found.get((row, column)) for column in COLUMNS]
        rows.append([row, *(part for card in cells for part in _cell(card))])
    told = [column for column in zip(*rows, strict=True) if any(column[1:])]
    show_table([list(row) for row in zip(*told, strict=True)], heading(cards))


def show_curve(cards: Sequence[Card], steps: str) -> None:
    """Print the mean over appliances of every attacker and point."""
    from meterveil.bench.curves import FLOOR, is_reference, lines
    from meterveil.bench.floors import mean_over_appliances
    from meterveil.bench.headings import COLUMNS, heading

    metrics = {"rmse": 1, "f1": 2, "f1_head": 2}
    bare = [card for card in cards if is_reference(card)]
    scores: dict[str, dict[str, float]] = {}
    for metric in metrics:
        for name, value in mean_over_appliances(bare, metric).items():
            scores.setdefault(f"{name}, bare", {})[metric] = value
        for name, line in lines(cards, metric, steps).items():
            for step, (value, _) in line.items():
                scores.setdefault(f"{name}, {step} {steps}", {})[metric] = value
    rows = [["attacker, mean over appliances", *(COLUMNS[metric] for metric in metrics)]]
    for row, mine in scores.items():
        cells = (f"{mine[metric]:.{digits}f}" if metric in mine else "" for metric, digits in metrics.items())
        rows.append([row, *cells])
    show_table(rows, heading(cards))
    floor = scores.get(f"{FLOOR}, bare", {})
    if any(_is_worse(mine, floor) for mine in scores.values()):
        show_notes([MISLED])


def _is_worse(scores: dict[str, float], floor: dict[str, float]) -> bool:
    """Tell whether an attacker reads less than the floor, by error or by the better of its F1."""
    best, least = (
        max((one[metric] for metric in ("f1", "f1_head") if metric in one), default=0.0)
        for one in (scores, floor)
    )
    return best < least or scores.get("rmse", 0.0) > floor.get("rmse", float("inf"))


def _cell(card: Card | None) -> tuple[str, str]:
    if card is None:
        return "", ""
    digits = 1 if card.column == "rmse" else 2
    ours, papers = (
        "" if value is None else f"{value:.{digits}f}" for value in (card.measured, card.reported)
    )
    return ours, papers
