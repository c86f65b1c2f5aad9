"""One name for each appliance, whatever a release calls it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

CANONICAL = {
    "dish_washer": "dishwasher",
    "dishwaser": "dishwasher",
    "freezer_fridge": "fridge",
    "fridge_freezer": "fridge",
    "furance": "furnace",
    "hi_fi": "hifi",
    "kitchen_outlet": "kitchen_outlets",
    "lights": "lighting",
    "microwave_oven": "microwave",
    "miscellaeneous": "miscellaneous",
    "outlets_unknown": "unknown_outlets",
    "refrigerator": "fridge",
    "smoke_alarms": "smoke_alarm",
    "television": "tv",
    "washingmachine": "washing_machine",
}
"""Spelling of a release (lower case, words joined by `_`) -> the name used here; others stay as they are."""


def canonical(label: str) -> str:
    """Return the name used here for an appliance: `Fridge-freezer`, `refrigerator` and `fridge` are one."""
    name = "_".join(label.lower().replace("-", " ").split())
    return CANONICAL.get(name, name)


def kind(name: str) -> str:
    """Return what an appliance is: the second of several (`kitchen_outlets_2`) is as the first."""
    return canonical(re.sub(r"_\d+$", "", name))


def distinct(labels: Iterable[str]) -> list[str]:
    """Return canonical names in order, with `_1`, `_2`, ... where a house has several of a kind."""
    names = [canonical(label) for label in labels]
    several = {name for name, count in Counter(names).items() if count > 1}
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name}_{seen[name]}" if name in several else name)
    return result
