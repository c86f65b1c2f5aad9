"""A path from a user, checked before any reader opens it."""

from __future__ import annotations

from pathlib import Path

from meterveil.errors import InputError, did_you_mean


def readable_file(path: str | Path) -> Path:
    """Return the path of a file that exists, is not empty and may be read; otherwise say what is wrong."""
    path = Path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file in it")
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; give a file with readings")
        with path.open("rb"):
            return path
    except FileNotFoundError:
        beside = [each.name for each in path.parent.glob("*")]
        hint = did_you_mean(path.name, [*beside, "synthetic"]) or "check the name of the file"
        raise InputError(f"{path} does not exist; {hint}") from None
    except PermissionError:
        raise InputError(f"{path} may not be read; give yourself permission (chmod u+r)") from None
