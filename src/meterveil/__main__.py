"""The `meterveil` command."""

import sys

from meterveil import __version__


def main() -> None:
    """Run the command line; an interrupt while it still loads ends it as quietly as a later one."""
    if sys.argv[1:] == ["--version"]:  # answered before anything is loaded
        sys.stdout.write(f"meterveil {__version__}\n")
        return
    try:
        from meterveil.cli import app  # noqa: PLC0415  importing this module must cost nothing

        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
