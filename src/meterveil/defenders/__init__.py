"""Defences: each one file, each a `Policy` that the core can run.

To add one, write its file and name it here.
"""

from collections.abc import Callable
from functools import partial

from meterveil.core.rollout import Policy
from meterveil.defenders.best_effort import BestEffort
from meterveil.defenders.flat import Flat
from meterveil.defenders.flat_decoys import FlatDecoys
from meterveil.defenders.nill import Nill
from meterveil.defenders.none import NoDefence
from meterveil.defenders.random import PAPER_RATE, RandomDecoys
from meterveil.defenders.random_equal import RandomEqual
from meterveil.defenders.rule_based import RuleBased
from meterveil.defenders.stepping import LazyCharging, LazyStepping, RandomCharging
from meterveil.errors import InputError

DEFENDERS: dict[str, Callable[[], Policy]] = {
    "none": NoDefence,
    "random": partial(RandomDecoys, rate=PAPER_RATE),
    "flat": Flat,
    "random_equal": RandomEqual,
    "rule_based": RuleBased,
    "flat_decoys": FlatDecoys,
    "best_effort": BestEffort,
    "nill": Nill,
    "stepping_ls1": LazyStepping,
    "stepping_ls2": partial(LazyStepping, coin=True),
    "stepping_lc": LazyCharging,
    "stepping_rc": RandomCharging,
}


def defender(name: str) -> Policy:
    """Build the defence of this name with its documented settings."""
    if name not in DEFENDERS:
        raise InputError(f"there is no defence {name!r}; known are {', '.join(DEFENDERS)}")
    return DEFENDERS[name]()
