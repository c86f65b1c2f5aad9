"""Names of appliances: one canonical name each, whatever a data set calls it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from meterveil.errors import InputError, did_you_mean

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
"""Spelling of a data set (lower case, joined by `_`) -> canonical name; other names stay as they are."""


def canonical(label: str) -> str:
    """Return the canonical name: `Fridge-freezer`, `refrigerator` and `fridge` are the same."""
    name = "_".join(label.lower().replace("-", " ").split())
    return CANONICAL.get(name, name)


def kind(name: str) -> str:
    """Return the canonical name without number: `kitchen_outlets_2` is `kitchen_outlets`."""
    return canonical(re.sub(r"_\d+$", "", name))


def distinct(labels: Iterable[str]) -> list[str]:
    """Return canonical names in order, numbered `_1`, `_2`, ... where a house has several of a kind."""
    names = [canonical(label) for label in labels]
    several = {name for name, count in Counter(names).items() if count > 1}
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name}_{seen[name]}" if name in several else name)
    return result


def choose_appliances(where: str, known: Collection[str], wanted: Sequence[str] | None) -> list[str]:
    """Return the canonical names of the wanted appliances; all where `wanted` is None."""
    if wanted is None:
        return list(known)
    names = [name if name in known else canonical(name) for name in wanted]
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        ending = f"; {hint}" if hint else ""
        raise InputError(f"{where} has no {', '.join(unknown)}; it has {', '.join(known)}{ending}")
    return names
