"""Defences by name, each a `Policy` that the core can run.

To add one, write its file and name it here; another package names its own in an entry point.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import cast

from meterveil.core.rollout import Policy
from meterveil.defenders import rationed
from meterveil.defenders.best_effort import BestEffort
from meterveil.defenders.flat import Flat, FlatDecoys
from meterveil.defenders.nill import Nill
from meterveil.defenders.none import NoDefence
from meterveil.defenders.random import PAPER_RATE, RandomDecoys, RandomEqual
from meterveil.defenders.rule_based import RuleBased
from meterveil.defenders.stepping import LazyCharging, LazyStepping, RandomCharging
from meterveil.defenders.training_settings import LEARNED_VEIL, METHODS
from meterveil.defenders.veil.policy import Veil
from meterveil.errors import unknown
from meterveil.plugins import DEFENCE_GROUP, build_offered, offered_names, package_offering

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
    "veil": Veil,
}

DEFAULT_DEFENCE = "veil"
"""Defence of `meterveil simulate` where none is named (D20)."""


def defender(name: str) -> Policy:
    """Build a defence by name, with its documented settings."""
    if name in DEFENDERS:
        return DEFENDERS[name]()
    if name not in known_defences():
        raise unknown("defence", name, known_defences())
    return cast(Policy, build_offered(DEFENCE_GROUP, name))


def known_defences() -> tuple[str, ...]:
    """Return the names of our own defences and of those that other packages add."""
    return (*DEFENDERS, *offered_names(DEFENCE_GROUP, DEFENDERS))


def version_of(name: str) -> int | str:
    """Return the `VERSION` of a defence or a training method, for cache keys.

    A defence of another package also has that package's version.
    """
    base = name.partition(":")[0]
    if base == LEARNED_VEIL:
        return f"{METHODS[base].VERSION}, veil {version_of('veil')}"
    if base in METHODS:
        return METHODS[base].VERSION
    if base == "rationed":
        return rationed.VERSION
    policy_module = import_module(type(defender(base)).__module__)
    version: int = getattr(policy_module, "VERSION", 1)
    package = package_of(base)
    return f"{package}, version {version}" if package else version


def package_of(name: str) -> str | None:
    """Return package and version that a defence comes from; None for our own."""
    if name in DEFENDERS or name not in known_defences():
        return None
    return package_offering(DEFENCE_GROUP, name)
