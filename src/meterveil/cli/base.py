"""Behaviour that all verbs share: help, errors in one line, plug-ins, and checks of what is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from meterveil.cli.options import spoken
from meterveil.cli.tables import show_notes
from meterveil.errors import InputError, how_to_install
from meterveil.plugins import ATTACKER_GROUP, DEFENCE_GROUP, Group, is_extended, left_out, offered_names

_OWN_NAMES = {ATTACKER_GROUP: "meterveil.attackers.registry:ATTACKERS", DEFENCE_GROUP: "meterveil.defenders:DEFENDERS"}
"""Group of plug-ins -> registry of this package, imported only where another package adds to it."""


class Verb(TyperCommand):
    """Command whose help shows flags without a type."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))


class PluginVerb(Verb):
    """Command to which other packages add attackers and defences; its help names them."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Look for other packages only when the help is shown."""
        added = [f"{group.kind}s {', '.join(names)}" for group in _OWN_NAMES if (names := _added(group))]
        if added:
            self.epilog = f"Installed packages add the {' and the '.join(added)}."
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Warn first of what an installed package offers but cannot be used."""
        for group in _OWN_NAMES:
            if is_extended(group):
                show_notes([*left_out(group, _own_names(group)).values()], err=True)
        return super().invoke(ctx)


class _Group(TyperGroup):
    """Group of commands that end with one line where a user can correct something."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        with errors_in_one_line(spoken):
            return super().invoke(ctx)


class Verbs(typer.Typer):
    """Set of commands that share this module's behaviour."""

    def __init__(self, summary: str, add_completion: bool = False) -> None:
        super().__init__(
            cls=_Group,
            help=summary,
            no_args_is_help=True,
            add_completion=add_completion,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": Verb, **options})


@contextmanager
def errors_in_one_line(translate: Callable[[str], str] = str) -> Iterator[None]:
    """End with one line instead of a traceback: status 2 for rejected input, 130 for an interrupt.

    `translate` puts the message into the words of the command line.
    """
    try:
        yield
    except InputError as error:
        _complain(translate(str(error)), typer.colors.RED)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        _complain(str(error) or "stopped", typer.colors.YELLOW)
        raise SystemExit(130) from error


def check_installed(doing: str, packages: Iterable[str], extra: str = "train") -> None:
    """Refuse to begin where a package is missing that an extra installs."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(f"{doing} needs {', '.join(missing)}; get it with {how_to_install(extra)}")


def check_can_fit(doing: str, attackers: Iterable[str] = ()) -> None:
    """Refuse to begin where these attackers could not be fitted; without names, where none could."""
    from meterveil.attackers.registry import needed_packages  # noqa: PLC0415  heavy imports wait for the verb

    check_installed(doing, *needed_packages(attackers))


def _flags_without_type(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False):
            vars(param)["display_type_rich"] = lambda ctx: None
    return params


def _complain(message: str, colour: str) -> None:
    color = False if os.environ.get("NO_COLOR") else None
    typer.secho(" ".join(message.split()), fg=colour, err=True, color=color)


def _added(group: Group) -> tuple[str, ...]:
    return offered_names(group, _own_names(group)) if is_extended(group) else ()


def _own_names(group: Group) -> Collection[str]:
    module, registry = _OWN_NAMES[group].split(":")
    names: Collection[str] = getattr(import_module(module), registry)
    return names
