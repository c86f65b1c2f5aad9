"""Result cards that were measured elsewhere: held against what a card must say, and kept without change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from meterveil.bench.cards import SUBMITTED, Card, files, path_of
from meterveil.bench.documents import Document, faults
from meterveil.bench.entries import incomplete, needed_settings
from meterveil.data import outputs
from meterveil.errors import InputError

_COMMIT = re.compile(r"(.+-g)?[0-9a-f]{7,40}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


class Problem(NamedTuple):
    """What is wrong, and where."""

    where: str
    what: str


class Submission(NamedTuple):
    """Cards as they came, and everything that is wrong with them."""

    documents: tuple[dict[str, Any], ...]
    problems: tuple[Problem, ...]


def read_submission(paths: Sequence[Path]) -> Submission:
    """Read files of cards, or all below a folder, and hold them against what a card must say."""
    documents: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for path in _files(paths):
        try:
            found = _parsed(path)
        except (OSError, ValueError, RecursionError) as error:
            problems.append(Problem(str(path), f"is no file of result cards: {error}"))
            continue
        for document in found:
            wrong = list(_wrong(document))
            problems += [Problem(f"{path}: {_named(document)}", what) for what in wrong]
            documents += [] if wrong else [document]
    problems += [Problem(where, what) for where, what in incomplete(documents)]
    return Submission(tuple(documents), tuple(problems))


def keep(results: Path, name: str, documents: Iterable[dict[str, Any]]) -> list[Path]:
    """Write cards below `submitted/NAME`, all or none; a card that is there already is never changed."""
    if not _NAME.fullmatch(name):
        raise InputError(f"--name {name!r} is no name; use up to 60 of a to z, 0 to 9, - and _")
    rows: dict[Path, dict[str, dict[str, Any]]] = {}
    for document in documents:
        path = path_of(results / SUBMITTED / name, *(document[part] for part in ("table", "dataset", "row")))
        kept = rows.setdefault(path, _kept(path))
        if kept.setdefault(document["key"], document) != document:
            raise InputError(
                f"{path} holds another card of {_named(document)}, and cards are never changed; give the "
                "new measurement another --name"
            )
    texts = {path: json.dumps([*kept.values()], indent=1) + "\n" for path, kept in rows.items()}
    outputs.write_all({path: outputs.text_writer(text) for path, text in texts.items()})
    return list(texts)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise InputError(f"there is no {path}; give files of result cards, or a folder of them")
        found = files(path) if path.is_dir() else [path]
        if not found:
            raise InputError(f"{path} holds no result cards; give the --results of meterveil evaluate")
        yield from found


def _parsed(path: Path) -> list[Any]:
    """Read a list of cards, or one."""
    document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    return document if isinstance(document, list) else [document]


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number; write null")


def _wrong(document: Any) -> Iterator[str]:
    """Say what is wrong with a card by itself."""
    try:
        checked = Document.model_validate(document)
    except ValidationError as error:
        yield from faults(error)
        return
    card = checked.card()
    if checked.key != card.key:
        yield f"key: it is {checked.key}, but what the card says hashes to {card.key}; measure it again"
    yield from _wrong_commit(checked.commit)
    yield from _wrong_settings(card)


def _wrong_commit(commit: str) -> Iterator[str]:
    if not commit:
        yield "commit: it is empty; measure with meterveil from a git checkout (pip install -e)"
    elif commit.endswith("-dirty"):
        yield f"commit: {commit} had uncommitted changes; commit them and measure again"
    elif not _COMMIT.fullmatch(commit):
        yield f"commit: {commit!r} is no commit; keep what meterveil wrote"


def _wrong_settings(card: Card) -> Iterator[str]:
    needed = needed_settings(card.table, card.threat_model)
    is_excused = card.measured is None and card.note
    for name, meaning in needed.items():
        if not is_excused and not card.settings.get(name):
            yield f"settings.{name}: it is missing; it names {meaning}"
    try:
        json.dumps(card.settings, allow_nan=False)
    except ValueError:
        yield "settings: a number in it is not finite"


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    """Read the cards that a file holds, by key."""
    if not path.exists():
        return {}
    try:
        return {document["key"]: document for document in json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); restore it, or give another --name") from error


def _named(document: Any) -> str:
    if not isinstance(document, dict):
        return "no card"
    return " / ".join(str(document.get(part, "?")) for part in ("table", "dataset", "row", "column"))
