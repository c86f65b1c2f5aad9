"""Fitted attackers on disk: weights as safetensors, everything else as JSON; loading one executes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from meterveil.attackers.protocol import Attacker
from meterveil.attackers.registry import attacker
from meterveil.errors import InputError

CARD, WEIGHTS = "attacker.json", "weights.safetensors"
FORMAT = "meterveil-attacker-1"


def save(folder: Path, name: str, targets: Sequence[str], fitted: Attacker, note: dict[str, Any]) -> None:
    """Write an attacker into a folder that appears whole or not at all; `note` says what it learned from."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        save_file({key: np.asarray(part, order="C") for key, part in fitted.arrays().items()}, half / WEIGHTS)
        digest = hashlib.sha256((half / WEIGHTS).read_bytes()).hexdigest()
        card = {"format": FORMAT, "attacker": name, "targets": list(targets), "weights": digest, **note}
        (half / CARD).write_text(json.dumps(card, indent=1, default=str) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(half, folder)  # noqa: PTH105  Path.replace cannot be relied on for folders
    finally:
        shutil.rmtree(half, ignore_errors=True)


def load(folder: Path) -> tuple[Attacker, dict[str, Any]]:
    """Read an attacker and its card; a missing, foreign or altered file is refused."""
    try:
        card = json.loads((folder / CARD).read_text())
        weights = (folder / WEIGHTS).read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder} holds no fitted attacker ({CARD} and {WEIGHTS}); {error}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f'{folder / CARD} is not a card of "format": "{FORMAT}"; fit the attacker again')
    if hashlib.sha256(weights).hexdigest() != card.get("weights"):
        raise InputError(f"{folder / WEIGHTS} is not the file that {CARD} was written for; fit it again")
    try:
        arrays = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise InputError(f"{folder / WEIGHTS} is damaged: {error}; fit the attacker again") from error
    try:
        return attacker(card["attacker"]).restored(card["targets"], arrays), card
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{folder} was saved by another version: {error}; fit the attacker again") from error
