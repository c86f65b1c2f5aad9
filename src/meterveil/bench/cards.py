"""Result cards: one measured figure each, with the paper's beside it. Runs write them, reports read them."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from meterveil.data import outputs
from meterveil.errors import InputError

ThreatModel = Literal["clean", "fixed", "adaptive"]

SUBMITTED = "submitted"
"""Folder within the results for cards that were measured elsewhere."""


@dataclass(frozen=True)
class Card:
    """Hold one figure and all that is needed to judge it."""

    table: str
    row: str
    column: str
    dataset: str
    measured: float | None
    """None where nothing could be measured; `note` says why."""
    reported: float | None = None
    """The paper's figure; None where it has none."""
    spread: float | None = None
    """Standard deviation over seeds, or over days where `n_days` is more than one."""
    seeds: tuple[int, ...] = (0,)
    n_days: int = 1
    threat_model: ThreatModel = "clean"
    settings: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def key(self) -> str:
        """Hash of what the figure is, not of how it came out."""
        parts = [self.table, self.row, self.column, self.dataset, self.threat_model, self.n_days, self.seeds]
        text = json.dumps([*parts, self.settings], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(folder: Path, cards: Iterable[Card]) -> list[Path]:
    """Write the cards of each table, data set and row into one file, all or none; return the files."""
    commit = current_commit()
    rows: dict[Path, list[dict[str, Any]]] = {}
    for card in cards:
        path = path_of(folder, card.table, card.dataset, card.row)
        document = {"key": card.key, **asdict(card), "commit": commit}
        document |= {name: _number(document[name]) for name in ("measured", "reported", "spread")}
        rows.setdefault(path, []).append(document)
    outputs.write_all(
        {path: outputs.text_writer(json.dumps(found, indent=1) + "\n") for path, found in rows.items()}
    )
    return list(rows)


def path_of(folder: Path, table: str, dataset: str, row: str) -> Path:
    """Name the file that holds the cards of a row."""
    return folder / table / dataset / f"{_plain(row)}.json"


def read(folder: Path, table: str | None = None) -> list[dict[str, Any]]:
    """Read every card below a folder, or those of one table."""
    where = folder / table if table else folder
    if not where.is_dir():
        raise InputError(f"{where} holds no results; run the command that measures them first")
    return [card for path in files(where) for card in json.loads(path.read_text())]


def files(folder: Path) -> list[Path]:
    """List the files of cards below a folder; what others submitted stays apart.

    A name that begins with a dot is what a killed command had not put in place yet.
    """
    found = [path for path in sorted(folder.rglob("*.json")) if not path.name.startswith(".")]
    return [path for path in found if SUBMITTED not in path.relative_to(folder).parts]


def current_commit() -> str:
    """Name the commit of this package, with a mark where files differ from it; "" outside its checkout.

    Installed into a folder of another repository, it is in a checkout that does not know it.
    """
    own = Path(__file__)
    try:
        _git(own.parent, "ls-files", "--error-unmatch", own.name)
        return _git(own.parent, "describe", "--always", "--dirty", "--abbrev=7")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    command = ("git", *words)
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
    return found.stdout.strip()


def _number(value: float | None) -> float | None:
    """Round to six digits; what is not a number is null in JSON."""
    return None if value is None or math.isnan(value) else float(f"{value:.6g}")


def _plain(text: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())
