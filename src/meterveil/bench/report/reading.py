"""Cards as they lie in a folder of results, checked one by one: a damaged or foreign file is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from meterveil.bench.cards import SUBMITTED, Card, files
from meterveil.bench.documents import DOCUMENTS, Document, faults
from meterveil.errors import InputError

Tables = dict[tuple[str, str], tuple[Card, ...]]
"""Table and data set -> cards."""


@dataclass(frozen=True)
class Results:
    """Hold every card of a folder."""

    cards: tuple[Card, ...]
    commits: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Table and data set -> commits of the package that measured them, each once."""
    submitted: Mapping[str, Tables] = field(default_factory=dict)
    """Name -> what was measured elsewhere and kept under it by `meterveil submit`."""

    @cached_property
    def tables(self) -> Tables:
        """Table and data set -> its cards."""
        return _tables(self.cards)

    def of(self, table: str, dataset: str) -> Sequence[Card]:
        """Return the cards of a table on a data set; none where it has not been run."""
        return self.tables.get((table, dataset), ())


def read_results(folder: Path) -> Results:
    """Read all cards below a folder; refuse the folder for the first file that holds something else."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder of results; give the one that meterveil reproduce wrote")
    documents = [document for path in files(folder) for document in _read(path)]
    submitted = {
        path.name: _tables([one.card() for file in files(path) for one in _read(file)])
        for path in sorted((folder / SUBMITTED).glob("*/"))
    }
    if not documents and not submitted:
        raise InputError(f"{folder} holds no result cards; run meterveil reproduce first")
    return Results(tuple(document.card() for document in documents), _commits(documents), submitted)


def _tables(cards: Iterable[Card]) -> Tables:
    found: dict[tuple[str, str], list[Card]] = {}
    for card in cards:
        found.setdefault((card.table, card.dataset), []).append(card)
    return {key: tuple(several) for key, several in found.items()}


def _commits(documents: Iterable[Document]) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], set[str]] = {}
    for document in documents:
        found.setdefault((document.table, document.dataset), set()).add(document.commit)
    return {key: tuple(sorted(several)) for key, several in found.items()}


def _read(path: Path) -> list[Document]:
    try:
        documents = DOCUMENTS.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(
            f"{path} is no file of result cards ({faults(error)[0]}); take it away, or measure it again"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; mend or remove it") from error
    for document in documents:
        if (document.table, document.dataset) != (path.parent.parent.name, path.parent.name):
            raise InputError(
                f"{path} holds a card of {document.table}/{document.dataset}; move it to that folder, or "
                "take it away"
            )
    return documents
