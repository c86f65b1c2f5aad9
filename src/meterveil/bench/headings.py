"""What a table of cards is about, in plain words: the same in the terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from meterveil.bench.cards import Card
from meterveil.plots.look import readable

DATASETS: Mapping[str, str] = {"redd": "REDD", "ukdale": "UK-DALE", "refit": "REFIT"}

COLUMNS: Mapping[str, str] = {
    "rmse": "RMSE W",
    "f1": "F1",
    "f1_head": "on/off F1",
    "event_f1": "event F1",
}
"""Column of a card -> its head in a table."""


def heading(cards: Sequence[Card]) -> str:
    """Say which house was read and when, what was learned from, and what stood between."""
    settings = cards[0].settings
    parts = [
        _house(cards[0]),
        days_read(cards),
        _lesson(settings),
        f"behind {readable(settings['defence'])}" if "defence" in settings else "",
        "load summed from sub-meters" if settings.get("aggregate") == "submeters" else "",
    ]
    return ", ".join(part for part in parts if part)


def days_read(cards: Sequence[Card]) -> str:
    """Name the day that was read, or say how many."""
    count = max(card.n_days for card in cards)
    test = cards[0].settings.get("test")
    if count > 1:
        return f"{count} days"
    return f"{date.fromisoformat(test[0]):%d %B %Y}" if isinstance(test, list) and test else "one day"


def _house(card: Card) -> str:
    test = card.settings.get("test")
    if isinstance(test, dict):
        return _named(test["house"])
    name = DATASETS.get(card.dataset, card.dataset)
    return f"{name} house {card.settings['house']}" if "house" in card.settings else name


def _lesson(settings: Mapping[str, Any]) -> str:
    if "training_days" in settings:
        return f"learned from {settings['training_days']} other days"
    houses = [_named(part["house"]) for part in settings.get("training", ())]
    return f"learned from {' and '.join(houses)}" if houses else ""


def _named(house: str) -> str:
    """Write a house of a crossing for people: `redd 2` is REDD house 2."""
    dataset, number = house.split()
    return f"{DATASETS[dataset]} house {number}"
