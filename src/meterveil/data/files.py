"""Checks of the files and folders that a user names, before they are read."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from meterveil.errors import InputError, did_you_mean

VARIABLE = "METERVEIL_DATA"


def readable_file(path: str | Path) -> Path:
    """Return the path of a file that exists, is not empty and may be read; reject any other."""
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


def read_text(path: Path) -> str:
    """Read a small text file; reject one that cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {path}: {reason}; give a JSON file") from error


def data_folder(data: str | Path | None = None, *, or_file: bool = False) -> Path:
    """Return the folder of data sets: the named one, else that of the environment.

    `or_file` also accepts the one file of a data set.
    """
    chosen = os.environ.get(VARIABLE, "") if data is None else str(data)
    if not chosen:
        raise InputError(f"no folder of data sets is named; pass `data` or set {VARIABLE}")
    try:
        exists = Path(chosen).is_dir() or (or_file and Path(chosen).is_file())
    except OSError as error:
        raise InputError(f"cannot read {chosen}: {error.strerror or error}; check its permissions") from error
    if not exists:
        raise InputError(f"{chosen!r} is not a folder of data sets; pass `data` or set {VARIABLE}")
    if not os.access(chosen, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise InputError(f"cannot read {chosen}: Permission denied; check its permissions")
    return Path(chosen)


def read_card(folder: Path, names: tuple[str, str], form: str, what: str, advice: str) -> tuple[dict[str, Any], bytes]:
    """Read card and weights of a model, two files of these names; refuse missing, foreign and altered ones."""
    card_file, weights_file = names
    try:
        card = json.loads((folder / card_file).read_text(encoding="utf-8"))
        weights = (folder / weights_file).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no {what} ({card_file} and {weights_file}): {error}; {advice}") from error
    if not isinstance(card, dict) or card.get("format") != form:
        raise InputError(f'{folder / card_file} is not a card of "format": "{form}"; {advice}')
    if hashlib.sha256(weights).hexdigest() != card.get("weights"):
        raise InputError(f"{folder / weights_file} is not the file that {card_file} was written for; {advice}")
    return card, weights
