"""The `meterveil` command."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from meterveil import __version__

_CLOSED_PIPE = 141
"""Exit status of a command whose reader went away, as a shell reports it."""


def main() -> None:
    """Run the command line; end with one short line on Ctrl-C or a full disk."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.filename is not None:  # an error of a file, not of the terminal
            raise
        _give_up(error)


def _run() -> None:
    """Run the command, and flush its output before the exit status is set."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # replace characters that the terminal lacks
            stream.reconfigure(errors="replace")
    try:
        if sys.argv[1:] == ["--version"]:  # answered before anything is loaded
            sys.stdout.write(f"meterveil {__version__}\n")
            return
        from meterveil.cli import app  # noqa: PLC0415  importing this module must cost nothing

        app(prog_name="meterveil")
    finally:
        sys.stdout.flush()


def _give_up(error: OSError) -> None:
    """End where nothing more can be printed; a closed pipe (`| head`) needs no message.

    Standard output now leads nowhere, since Python would print the rest of it on its way out.
    """
    is_closed_pipe = isinstance(error, BrokenPipeError)
    if not is_closed_pipe:
        with suppress(OSError):
            sys.stderr.write(f"cannot print: {error.strerror or error}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(_CLOSED_PIPE if is_closed_pipe else 1)


if __name__ == "__main__":
    main()
