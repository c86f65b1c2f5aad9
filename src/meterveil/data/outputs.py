"""Writing results: whole files or none, and never over a file that the product did not write."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from meterveil.errors import InputError

GENERATOR = "meterveil"
"""Names the product in what it writes: a page's generator, a JSON document's format, a table's metadata."""

_PAGE_MARK = re.compile(rf'<meta name="generator" content="{GENERATOR}[ "]')
_LOOK_AT_BYTES = 8192


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn what the file system refuses (no permission, no space, not a folder) into one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write {what}: {reason}; choose another place with --out") from error


def folder(path: Path, files: Iterable[str]) -> Path:
    """Make an output folder in which these files may be written.

    Whatever else lies in the folder is left alone; a file of one of these names must be ours.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; give --out a folder")
    foreign = [name for name in files if (path / name).exists() and not _is_ours(path / name)]
    if foreign:
        raise InputError(
            f"{path} holds {', '.join(foreign)} that {GENERATOR} did not write; give --out another folder"
        )
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` fill a temporary neighbour and put it in place at once: readers never see half a file."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        try:
            write(temporary)
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text file whole."""
    return write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _is_ours(path: Path) -> bool:
    """Look for the mark that every file of ours has in the place where its kind keeps such things."""
    has_mark = _MARKS.get(path.suffix.lower())
    try:
        return has_mark is not None and has_mark(path)
    except (OSError, ValueError, pa.ArrowException):
        return False


def _has_page_mark(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(_PAGE_MARK.search(file.read(_LOOK_AT_BYTES).decode("utf-8", errors="replace")))


def _has_document_mark(path: Path) -> bool:
    document = json.loads(path.read_text(encoding="utf-8"))
    return isinstance(document, dict) and str(document.get("format", "")).startswith(f"{GENERATOR}-")


def _has_table_mark(path: Path) -> bool:
    return (pq.read_schema(path).metadata or {}).get(b"generator") == GENERATOR.encode()


_MARKS: dict[str, Callable[[Path], bool]] = {
    ".html": _has_page_mark,
    ".json": _has_document_mark,
    ".parquet": _has_table_mark,
}


def _umask() -> int:
    """Read the mask of new files, which a temporary file does not follow by itself."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
