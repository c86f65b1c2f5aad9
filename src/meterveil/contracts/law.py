"""Laws: functions whose name states what holds and that raise where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

Case = TypeVar("Case")
Law = Callable[[Case], None]


class BrokenLawError(AssertionError):
    """Violation of a contract, with what was expected and what was found."""


def expect(holds: object, otherwise: str) -> None:
    """Raise `BrokenLawError` with the message `otherwise` unless `holds`."""
    if not holds:
        raise BrokenLawError(otherwise)


def equal_bits(first: Any, second: Any) -> bool:
    """Tell whether two values, with all their elements, are equal bit for bit; NaN equals NaN."""
    try:
        np.testing.assert_equal(first, second)
    except AssertionError:
        return False
    return True


def verdicts(laws: Sequence[Law[Case]], case: Case) -> Iterator[tuple[str, str]]:
    """Check every law; yield its name as a sentence and what is wrong, "" where it holds."""
    for law in laws:
        wrong = ""
        try:
            law(case)
        except BrokenLawError as broken:
            wrong = str(broken)
        except Exception as error:
            wrong = f"it raised {type(error).__name__}: {error}"
        yield law.__name__.replace("_", " "), wrong


def check(laws: Sequence[Law[Case]], case: Case) -> None:
    """Raise one error that lists every broken law."""
    broken = [f"- {law}: {wrong}" for law, wrong in verdicts(laws, case) if wrong]
    if broken:
        raise BrokenLawError("\n".join([f"{len(broken)} of {len(laws)} laws are broken:", *broken]))
