"""Defences: each one file, each a `Policy` that the core can run.

To add one, write its file and name it here.
"""

from collections.abc import Callable

from meterveil.core.rollout import Policy
from meterveil.defenders.flat import Flat
from meterveil.defenders.none import NoDefence
from meterveil.defenders.random import RandomDecoys
from meterveil.errors import InputError

DEFENDERS: dict[str, Callable[[], Policy]] = {
    "none": NoDefence,
    "random": RandomDecoys,
    "flat": Flat,
}


def defender(name: str) -> Policy:
    """Build the defence of this name with its documented settings."""
    if name not in DEFENDERS:
        raise InputError(f"there is no defence {name!r}; known are {', '.join(DEFENDERS)}")
    return DEFENDERS[name]()
