"""Attackers and defences of other packages: found by entry points, loaded when used.

Worker processes find them in the same way, so every process sees the same names.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from meterveil.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Group(NamedTuple):
    """Group of entry points that other packages may add to."""

    name: str
    kind: str  # word for one member
    methods: tuple[str, ...]  # that a member must have


ATTACKER_GROUP = Group("meterveil.attackers", "attacker", ("fit", "predict", "arrays", "restored"))
DEFENCE_GROUP = Group("meterveil.defenders", "defence", ("initial", "decide"))

_NAME = re.compile(r"[A-Za-z0-9_]+")
"""Allowed names: they are typed between commas and become parts of folder names."""


def is_extended(group: Group) -> bool:
    """Tell whether any package adds to a group."""
    return bool(_offered(group))


def offered_names(group: Group, own: Container[str]) -> tuple[str, ...]:
    """Name the additions of other packages, whether or not they can be loaded."""
    return tuple(name for name in _offered(group) if name not in own and _NAME.fullmatch(name))


def build_offered(group: Group, name: str) -> Any:
    """Load and build the addition of this name; an error names the package."""
    point = _only(group, name)
    try:
        built = point.load()()
    except Exception as error:
        raise InputError(
            f"{_described(group, point)} cannot be loaded from {point.value}: "
            f"{type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    missing = [method for method in group.methods if not callable(getattr(built, method, None))]
    if missing:
        raise InputError(
            f"{_described(group, point)} has no {', '.join(missing)}; it needs {', '.join(group.methods)}, "
            "see docs/extending.md"
        )
    return built


def module_offering(group: Group, name: str) -> str:
    """Return the module of an addition."""
    return _only(group, name).module


def package_offering(group: Group, name: str) -> str:
    """Return the package of an addition, with its version."""
    return _package(_only(group, name))


def left_out(group: Group, own: Container[str]) -> dict[str, str]:
    """Explain which additions cannot be used: names of meterveil itself cannot be replaced."""
    reasons = {}
    for name, points in _offered(group).items():
        what = " and ".join(_described(group, point) for point in points)
        if name in own:
            reasons[name] = f"{what} is left out: {name} is meterveil's own; give its entry point another name"
        elif not _NAME.fullmatch(name):
            reasons[name] = f"{what} is left out: a name has letters, digits and _ only; give it another"
    return reasons


def _described(group: Group, point: EntryPoint) -> str:
    return f"the {group.kind} {point.name!r} of the package {_package(point)}"


@cache
def _offered(group: Group) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for point in sorted(_points(group), key=lambda point: (point.name, _package(point))):
        found.setdefault(point.name, []).append(point)
    return found


def _points(group: Group) -> Iterator[EntryPoint]:
    """Look through the installed packages; of a package that is installed twice the first counts."""
    from importlib.metadata import distributions  # noqa: PLC0415  importing this module must cost nothing

    seen = set()
    for distribution in distributions():
        try:
            points = [point for point in distribution.entry_points if point.group == group.name]
            name = distribution.name if points else ""
        except Exception:  # noqa: S112  unreadable metadata add nothing
            continue
        if points and name not in seen:
            seen.add(name)
            yield from points


def _only(group: Group, name: str) -> EntryPoint:
    points = _offered(group)[name]
    if len(points) > 1:
        several = " and ".join(_package(point) for point in points)
        raise InputError(f"the packages {several} both offer the {group.kind} {name!r}; uninstall one of them")
    return points[0]


def _package(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{distribution.name} {distribution.version}" if distribution else "of unknown name"
