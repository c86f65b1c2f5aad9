"""Error for wrong input, hints for mistyped names, and how to install a missing optional part."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

_CLONE = Path(__file__).parents[2]


class InputError(ValueError):
    """Rejected input (a file, an option, a setting): what came, what is allowed and what to do, in one line.

    The command line prints the message and exits with status 2; no traceback is shown.
    """


def unknown(kind: str, name: object, known: Iterable[object], more: str = "") -> InputError:
    """Return the error for a name that does not exist, with the nearest names and all known ones.

    `kind` is what is named ("defence", "house"); `more` follows the known names.
    """
    names = [str(each) for each in known]
    hint = did_you_mean(name, names)
    listed = f"{hint} Known are" if hint else "known are"
    return InputError(f"there is no {kind} {name!r}; {listed} {', '.join(names)}{more}")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Ask for the known names nearest to a mistyped one; empty where none is near."""
    near = get_close_matches(str(name), [str(each) for each in known], n=3)
    return f"did you mean {' or '.join(near)}?" if near else ""


def how_to_install(extra: str, clone: Path = _CLONE) -> str:
    """Return the command that installs an optional part; in a clone, at the tested versions.

    Without pinned versions pip installs a build of torch with gigabytes of CUDA.
    """
    if (clone / "constraints.txt").is_file():
        return f".venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
    command = f"pip install 'meterveil[{extra}]'"
    first = ", after torch's CPU build: otherwise pip installs gigabytes of CUDA"
    return command + first if extra == "train" else command
