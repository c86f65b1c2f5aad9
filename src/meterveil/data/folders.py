"""Where the data sets are: in a folder that is named, or in that of the environment."""

from __future__ import annotations

import os
from pathlib import Path

from meterveil.errors import InputError

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
