"""What the figures of a snapshot come from: cards state it, and only cards that state the same are known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from meterveil.bench import cards
from meterveil.bench.alignment.measure import Panel, row_of
from meterveil.bench.alignment.snapshots import Snapshot
from meterveil.bench.reproduce.place import digest, versions
from meterveil.fingerprint import code_hash

_MEASURES = "meterveil.bench.alignment.measure"
_SHORT = 12


def shared(panel: Panel, fits: Mapping[str, str], plays: int, seed: int) -> dict[str, Any]:
    """Hash everything beside the manager that can change a figure; `fits` are the keys of the attackers'."""
    params, probe = panel.params, panel.probe
    said = [asdict(panel.preset), repr(params.battery), params.library.digest(), params.soc_start]
    read = [probe.kind, probe.scaler, hashlib.sha256(probe.weights()).hexdigest(), _days_hash(panel)]
    parts = {
        "rollouts": digest(said, read, plays, seed),
        "fits": digest(fits),
        "code": digest(code_hash(_MEASURES), versions()),
    }
    return {"plays": plays, **{name: value[:_SHORT] for name, value in parts.items()}}


def of_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """Name a manager by its place in the training and by its weights."""
    return {"update": snapshot.update, "snapshot": snapshot.digest[:_SHORT]}


def is_known(folder: Path, panel: Panel, settings: Mapping[str, Any]) -> bool:
    """Tell whether every reader has cards of these settings: an interrupted measurement goes on."""
    if not folder.is_dir():
        return False
    known = {card["row"] for card in cards.read(folder) if card["settings"] == settings}
    return known >= {row_of(reader, settings["update"]) for reader in panel.readers}


def _days_hash(panel: Panel) -> str:
    """Hash what the days really were: load, clock and price, and what every appliance drew."""
    content = hashlib.sha256(repr(list(panel.truth)).encode())
    days = (np.asarray(getattr(panel.days, field.name)) for field in fields(panel.days))
    for part in (*days, *panel.truth.values()):
        content.update(np.ascontiguousarray(part).tobytes())
    return content.hexdigest()
