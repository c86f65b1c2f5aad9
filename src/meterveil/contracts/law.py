"""A law: a function that says in its name what holds, and raises where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

Case = TypeVar("Case")
Law = Callable[[Case], None]


class BrokenLawError(AssertionError):
    """Say in plain words what was found instead of what the contract promises."""


def expect(holds: object, otherwise: str) -> None:
    """Raise unless something holds."""
    if not holds:
        raise BrokenLawError(otherwise)


def same(first: Any, second: Any) -> bool:
    """Tell whether two values, or all that they hold, agree to the last bit; unknown agrees with unknown."""
    try:
        np.testing.assert_equal(first, second)
    except AssertionError:
        return False
    return True


def title(law: Law[Case]) -> str:
    """Read a law's name as a sentence."""
    return law.__name__.replace("_", " ")


def verdicts(laws: Sequence[Law[Case]], case: Case) -> Iterator[tuple[str, str]]:
    """Try every law; return its sentence, and what is wrong, "" where nothing is."""
    for law in laws:
        try:
            law(case)
        except BrokenLawError as broken:
            yield title(law), str(broken)
        except Exception as error:
            yield title(law), f"it raised {type(error).__name__}: {error}"
        else:
            yield title(law), ""


def check(laws: Sequence[Law[Case]], case: Case) -> None:
    """Raise one error with all that is wrong."""
    broken = [f"- {law}: {wrong}" for law, wrong in verdicts(laws, case) if wrong]
    if broken:
        raise BrokenLawError("\n".join([f"{len(broken)} of {len(laws)} laws are broken:", *broken]))
