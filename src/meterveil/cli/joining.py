"""Verbs to which other packages add attackers and defences: what they add stands in the help."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from typer.core import TyperCommand

from meterveil.entry_points import ATTACKER_GROUP, DEFENCE_GROUP, Group, is_extended, left_out, offered_names


class JoiningCommand(TyperCommand):
    """Name what other packages add; say what of it cannot be asked for."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Look for other packages only where the help is read."""
        told = [f"{group.kind}s {', '.join(names)}" for group in _OWN if (names := _added(group))]
        if told:
            self.epilog = f"Installed packages add the {' and the '.join(told)}."
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Say first what an installed package offers in vain."""
        from meterveil.cli.tables import show_notes  # noqa: PLC0415  the help needs no table

        for group in _OWN:
            if is_extended(group):
                show_notes([*left_out(group, _own(group)).values()], err=True)
        return super().invoke(ctx)


def _added(group: Group) -> tuple[str, ...]:
    return offered_names(group, _own(group)) if is_extended(group) else ()


def _own(group: Group) -> Collection[str]:
    module, registry = _OWN[group].split(":")
    names: Collection[str] = getattr(import_module(module), registry)
    return names


_OWN = {
    ATTACKER_GROUP: "meterveil.attackers.registry:ATTACKERS",
    DEFENCE_GROUP: "meterveil.defenders:DEFENDERS",
}
"""What is added to; imported only where something is."""
