"""How every command of the package ends where its user can mend something: one red line, and status 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from meterveil.errors import InputError


@contextmanager
def ending_in_one_line(spoken: Callable[[str], str] = str) -> Iterator[None]:
    """Say what was refused, and that an interrupt was heard, without a traceback.

    `spoken` puts a message into the words of the command.
    """
    try:
        yield
    except InputError as error:
        _say(spoken(str(error)), typer.colors.RED)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        _say(str(error) or "stopped", typer.colors.YELLOW)
        raise SystemExit(130) from error


def _say(message: str, colour: str) -> None:
    typer.secho(" ".join(message.split()), fg=colour, err=True)
