"""What a user asks for among what a source holds: a house, some of its appliances."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from meterveil.data.names import canonical
from meterveil.errors import InputError, did_you_mean


def choose_house(where: object, houses: Collection[str], number: int | None) -> str:
    """Name the house that is asked for, or the only one; `houses` are named as `house_1`."""
    if number is None and len(houses) == 1:
        return next(iter(houses))
    known = ", ".join(houses)
    if number is None:
        raise InputError(f"{where} has several houses ({known}); say which one, such as house=1")
    if f"house_{number}" not in houses:
        raise InputError(f"{where} has no house_{number}; it has {known}")
    return f"house_{number}"


def choose_appliances(where: str, known: Collection[str], wanted: Sequence[str] | None) -> list[str]:
    """Name the appliances that are asked for, in any release's words; all where `wanted` is None."""
    if wanted is None:
        return list(known)
    names = [name if name in known else canonical(name) for name in wanted]
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        ending = f"; {hint}" if hint else ""
        raise InputError(f"{where} has no {', '.join(unknown)}; it has {', '.join(known)}{ending}")
    return names
