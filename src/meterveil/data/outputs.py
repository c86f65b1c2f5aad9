"""Writing results: whole files or none, and never over a file that the product did not write."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
    """Refuse a folder in which these files may not be written, before any work is done for them.

    Nothing is made yet: what ends before its result leaves no trace. Whatever else lies in the folder is
    left alone; a file of one of these names must be ours.
    """
    with writing(path):
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder")
        foreign = [name for name in files if (path / name).exists() and not _is_ours(path / name)]
        if foreign:
            raise InputError(
                f"{path} holds {', '.join(foreign)} that {GENERATOR} did not write; give --out another folder"
            )
        _check_place(path)
    return path


def write_all(files: Mapping[Path, Callable[[Path], object]]) -> None:
    """Let every writer fill a temporary neighbour of its file, then put all of them in place.

    Readers never see half a file, and a disk that runs full leaves the old result, not a mix of two.
    """
    with ExitStack() as cleaning:
        finished = [(_fill(path, write, cleaning), path) for path, write in files.items()]
        for temporary, path in finished:
            with writing(path):
                temporary.replace(path)


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Write one file, wholly or not at all."""
    write_all({path: write})
    return path


def _fill(path: Path, write: Callable[[Path], object], cleaning: ExitStack) -> Path:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        cleaning.callback(temporary.unlink, missing_ok=True)
        write(temporary)
        temporary.chmod(0o666 & ~_umask())
    return temporary


def write_text(path: Path, text: str) -> Path:
    """Write a text file whole."""
    return write_whole(path, text_writer(text))


def text_writer(text: str) -> Callable[[Path], object]:
    """Return what writes a text, for `write_all`."""
    return lambda temporary: temporary.write_text(text, encoding="utf-8")


def _check_place(path: Path) -> None:
    """Raise what making a folder would, without making it."""
    nearest = path
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _is_ours(path: Path) -> bool:
    """Look for the mark that every file of ours has in the place where its kind keeps such things."""
    has_mark = _MARKS.get(path.suffix.lower())
    try:
        return has_mark is not None and has_mark(path)
    except (OSError, ValueError, RecursionError, pa.ArrowException):
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
