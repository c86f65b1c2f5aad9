"""What every kind of training leaves in its folder: a document, and weights that the document vouches for.

Weights are safetensors, everything else is JSON (D13): reading a run executes nothing and needs no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from meterveil import __version__
from meterveil.data import outputs, settings
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.defenders.bundle import tariff_document
from meterveil.errors import InputError

RUN, POLICY, CHECKPOINT = "run.json", "policy.safetensors", "checkpoint.safetensors"
FINISHED, UNFINISHED = "finished", "unfinished"

Arrays = dict[str, npt.NDArray[Any]]


def begun(
    kind: str, household: Household, days: Sequence[date], setup: Setup, notes: Mapping[str, Any]
) -> dict[str, Any]:
    """Say what a training of this format sets out from; each kind adds its own options."""
    return {
        "format": kind,
        "version": __version__,
        "status": UNFINISHED,
        **notes,
        "household": household.name,
        "aggregate": household.aggregate,
        "days": [str(day) for day in days],
        "seed": setup.seed,
        "battery": settings.battery_values(setup.battery),
        "tariff": tariff_document(setup.tariff),
    }


def write(
    folder: Path,
    document: Mapping[str, Any],
    weights: bytes | None = None,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write document, weights where there are any, and further texts by name of file: all or none."""
    files: dict[Path, Callable[[Path], object]] = {
        folder / name: outputs.text_writer(text) for name, text in (texts or {}).items()
    }
    if weights is not None:
        files[folder / POLICY] = lambda path: path.write_bytes(weights)
    files[folder / RUN] = outputs.text_writer(json.dumps(document, indent=1) + "\n")
    outputs.write_all(files)


def hash_of(weights: bytes) -> str:
    """Hash weights as a document states them."""
    return hashlib.sha256(weights).hexdigest()


def format_of(folder: Path) -> str:
    """Name the format of the training that a folder holds; "" where it holds none."""
    try:
        document = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(document.get("format", "")) if isinstance(document, dict) else ""


def read_document(folder: Path, kind: str) -> dict[str, Any]:
    """Read what a run of this format says of itself, finished or not."""
    found = format_of(folder)
    if not found:
        raise InputError(f"{folder} holds no training ({RUN}); write one with meterveil train")
    if found != kind:
        raise InputError(f'{folder / RUN} is of "format": "{found}", not "{kind}"; give another folder')
    document: dict[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    return document


def read_finished(folder: Path, kind: str) -> dict[str, Any]:
    """Read what a finished run says of itself."""
    document = read_document(folder, kind)
    if document["status"] != FINISHED:
        raise InputError(f"the training in {folder} is not finished; go on with meterveil train --resume")
    return document


def read_unfinished(folder: Path, kind: str) -> dict[str, Any]:
    """Read what a run says of itself that is to go on."""
    document = read_document(folder, kind)
    if document["status"] == FINISHED:
        raise InputError(f"the training in {folder} is finished; there is nothing to resume")
    return document


def read_weights(folder: Path, document: Mapping[str, Any]) -> Arrays:
    """Read the weights that the document vouches for; a missing or altered file is refused."""
    try:
        weights = (folder / POLICY).read_bytes()
    except OSError as error:
        raise InputError(f"the run {folder} lacks a file: {error}; train anew") from error
    if hash_of(weights) != document["weights"]:
        raise InputError(f"{POLICY} in {folder} was altered since the training; train anew")
    try:
        arrays: Arrays = load_arrays(weights)
    except SafetensorError as error:
        raise InputError(f"{folder / POLICY} is damaged: {error}; train anew") from error
    return arrays


def make_room(
    folder: Path, kind: str, others: Sequence[str] = (), *, gives_way: Sequence[str] = (FINISHED,)
) -> None:
    """Let a new training in: a finished one of its kind gives way, an unfinished one is somebody's work.

    `others` are files beside document and checkpoint that a new training must not find; `gives_way` are the
    states in which the old one does.
    """
    outputs.folder(folder, (RUN, *(name for name in others if name.endswith(".json"))))
    if not (folder / RUN).exists():
        return
    if format_of(folder) != kind:
        raise InputError(
            f"{folder} holds a training by another method ({format_of(folder)}); "
            "give --out another folder, or remove this one"
        )
    if read_document(folder, kind)["status"] not in gives_way:
        raise InputError(f"{folder} holds an unfinished training; add --resume, or give --out another folder")
    for name in (CHECKPOINT, *others, RUN):
        (folder / name).unlink(missing_ok=True)
