"""Checks of the files and folders that a user names, before they are read."""

from __future__ import annotations

import os
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


VARIABLE = "METERVEIL_DATA"


def data_folder(named: str | Path | None = None, *, or_file: bool = False) -> Path:
    """Return the folder of data sets that is named, else that of the environment.

    `or_file` is for what can be read from the one file of a data set, too.
    """
    found = os.environ.get(VARIABLE, "") if named is None else str(named)
    if not found:
        raise InputError(f"no folder of data sets is named; pass --data or set {VARIABLE}")
    try:
        is_there = Path(found).is_dir() or (or_file and Path(found).is_file())
    except OSError as error:
        raise InputError(f"cannot read {found}: {error.strerror or error}; mend its permissions") from error
    if not is_there:
        raise InputError(f"{found!r} is no folder of data sets; pass --data or set {VARIABLE}")
    if not os.access(found, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise InputError(f"cannot read {found}: Permission denied; mend its permissions")
    return Path(found)
