"""Optional parts of the package, and how to get them."""

from __future__ import annotations

from pathlib import Path

_CLONE = Path(__file__).parents[2]


def how_to_install(extra: str, clone: Path = _CLONE) -> str:
    """Say how to get an optional part: in a clone at the tested versions, elsewhere by name.

    Without pinned versions pip takes a build of torch that brings gigabytes of CUDA.
    """
    if (clone / "constraints.txt").is_file():
        return f".venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
    command = f"pip install 'meterveil[{extra}]'"
    first = ", after torch's CPU build: else pip fetches gigabytes of CUDA"
    return command + first if extra == "train" else command
