"""Adaptive curves as their cards tell them; reading them fits nothing and needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from meterveil.bench.cards import Card
from meterveil.bench.floors import mean_over_appliances

FLOOR = "prior"
"""Under it no defence can push an adaptive attacker."""

CLEAN = "without defence"
"""How the row of a reference ends."""


def is_reference(card: Card) -> bool:
    """Tell whether a card is about the bare meter."""
    return card.row.endswith(CLEAN)


def lines(cards: Sequence[Card], column: str, steps: str) -> dict[str, dict[int, tuple[float, float]]]:
    """Gather a score as attacker -> steps -> (mean over appliances, mean spread).

    `steps` is the setting that the curve runs along: copies or epochs. An appliance without a spread says
    nothing of it; where none has one it is 0.
    """
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for step in sorted({card.settings[steps] for card in cards if card.settings.get(steps) is not None}):
        here = [card for card in cards if card.settings.get(steps) == step]
        defined = [card for card in here if card.measured is not None]
        spreads = mean_over_appliances([replace(card, measured=card.spread) for card in defined], column)
        for name, value in mean_over_appliances(here, column).items():
            found.setdefault(name, {})[step] = (value, spreads.get(name, 0.0))
    return found
