"""The cards of a cell in the results: whether they are whole, and what an earlier effort left there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.reproduce.place import Place
from meterveil.bench.reproduce.specs import Cell
from meterveil.data import outputs
from meterveil.errors import InputError

HEADLINE = "headline"
"""Begins the row that says that a cell is whole."""


def headline(cell: Cell) -> str:
    """Name the row of a cell's headline."""
    return f"{HEADLINE}, {cell.row.label}, {cell.threat}"


def write(place: Place, found: Sequence[Card]) -> None:
    """Put the headline in place last: it says that the cell is whole."""
    cards.write(place.results, sorted(found, key=lambda card: card.row.startswith(f"{HEADLINE}, ")))


def is_whole(place: Place, cell: Cell, key: str) -> bool:
    """Tell whether all cards of a cell were written under this key."""
    found = _headline_cards(place, cell)
    return bool(found) and all(_key(card) == key for card in found)


def has_figures(place: Place, cell: Cell) -> bool:
    """Tell whether a cell was measured, under whatever key."""
    return any(card.get("measured") is not None for card in _headline_cards(place, cell))


def check_effort(place: Place, cell: Cell) -> None:
    """Refuse to measure a cell with less effort than the results have of it: what took more would be lost."""
    known = _headline_cards(place, cell)
    seeds = max((len(card.get("seeds", ())) for card in known), default=0)
    if seeds > cell.seeds:
        raise InputError(
            f"{place.results} holds {cell.title} over {seeds} seeds, and {cell.seeds} would replace them; "
            f"give another folder with --results, or --seeds {seeds}"
        )
    readers = {name for card in known for name in card["settings"].get("attackers", ())}
    if readers - set(cell.attackers):
        raise InputError(
            f"{place.results} holds {cell.title} as {', '.join(sorted(readers))} read it, and "
            f"{', '.join(cell.attackers)} would replace them; give another folder with --results"
        )


def left_behind(place: Place, cell: Cell, key: str) -> list[Path]:
    """List the files of this very cell that were written under another key and not replaced.

    Other attackers or targets make other files; whoever averages over a row would count these too.
    """
    tails: dict[str, str] = {f"{cell.row.label}, {cell.threat}": cell.threat}
    if cell.threat == "fixed":
        tails[cell.row.label] = "clean"
    found = []
    for tail, threat in tails.items():
        pattern = cards.path_of(place.results, cell.table, cell.dataset, f", {tail}")
        for path in sorted(pattern.parent.glob(f"[!.]*{pattern.name}")):
            known = _read(path)
            own = [
                card for card in known if _is_of(card, cell, tail, threat) and _key(card) not in (None, key)
            ]
            found += [path] if known and len(own) == len(known) else []
    return found


def sweep(place: Place, cell: Cell, key: str) -> None:
    """Remove what an earlier effort left of this cell."""
    for path in left_behind(place, cell, key):
        with outputs.writing(path):
            path.unlink(missing_ok=True)


def _is_of(card: dict[str, Any], cell: Cell, tail: str, threat: str) -> bool:
    """Tell whether a card is of this row, and not only of one whose file is named alike."""
    where = (card.get("table"), card.get("dataset"), card.get("threat_model"))
    return where == (cell.table, cell.dataset, threat) and card.get("row", "").partition(", ")[2] == tail


def _headline_cards(place: Place, cell: Cell) -> list[dict[str, Any]]:
    return _read(cards.path_of(place.results, cell.table, cell.dataset, headline(cell)))


def _key(card: dict[str, Any]) -> str | None:
    """Return the key of the cell that a card belongs to; a card of another command has none."""
    found: str | None = card.get("settings", {}).get("cell")
    return found


def _read(path: Path) -> list[dict[str, Any]]:
    """Read a file of cards; nothing where it is missing or none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    is_cards = isinstance(found, list) and all(
        isinstance(card, dict) and isinstance(card.get("settings"), dict) for card in found
    )
    return found if is_cards else []
