"""Writing of results: whole files or none, and never over a file that meterveil did not write."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from meterveil.errors import InputError

if sys.platform != "win32":
    import fcntl

GENERATOR = "meterveil"
"""Mark in everything that is written: generator of pages, format of JSON files, metadata of tables."""

_PAGE_MARK = re.compile(rf'<meta name="generator" content="{GENERATOR}[ "]')
_LOOK_AT_BYTES = 8192


@contextmanager
def writing(what: Path) -> Iterator[None]:
    """Turn an error of the file system (no permission, no space, not a folder) into one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write {what}: {reason}; choose another place with `out`") from error


def folder(path: Path, files: Iterable[str]) -> Path:
    """Check that these files may be written to a folder, before any work is done for them.

    The folder is not created yet. Existing files of these names must be written by meterveil; other files in
    the folder do not matter.
    """
    with writing(path):
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder")
        foreign = [name for name in files if (path / name).exists() and not _is_ours(path / name)]
        if foreign:
            raise InputError(
                f"{path} holds {', '.join(foreign)} that {GENERATOR} did not write; give `out` another folder"
            )
        _check_place(path)
    return path


@contextmanager
def locked(shared: Path) -> Iterator[None]:
    """Let one process at a time read and write the files of a folder, which is created if it is missing.

    Windows has no such lock: there, start one command at a time.
    """
    with writing(shared):
        shared.mkdir(parents=True, exist_ok=True)
        descriptor = None if sys.platform == "win32" else os.open(shared, os.O_RDONLY)
    if descriptor is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_all(files: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write every file to a temporary neighbour, then move all of them into place.

    Readers never see half a file, and a full disk leaves the old result, not a mix of two.
    """
    with ExitStack() as cleaning:
        finished = [(_fill(path, write, cleaning), path) for path, write in files.items()]
        for temporary, path in finished:
            with writing(path):
                temporary.replace(path)


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Write one file, completely or not at all."""
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
    """Write a text file, completely or not at all."""
    return write_whole(path, text_writer(text))


def text_writer(text: str) -> Callable[[Path], object]:
    """Return a writer of a text, for `write_all`."""
    return lambda temporary: temporary.write_text(text, encoding="utf-8")


def _check_place(path: Path) -> None:
    """Raise the error that creating a folder would, without creating it."""
    nearest = path
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _is_ours(path: Path) -> bool:
    """Look for the mark of meterveil, where files of this kind have it."""
    try:
        if path.suffix.lower() == ".html":
            with path.open("rb") as file:
                return bool(_PAGE_MARK.search(file.read(_LOOK_AT_BYTES).decode("utf-8", errors="replace")))
        if path.suffix.lower() == ".json":
            document = json.loads(path.read_text(encoding="utf-8"))
            return isinstance(document, dict) and str(document.get("format")).startswith(f"{GENERATOR}-")
        metadata = pq.read_schema(path).metadata if path.suffix.lower() == ".parquet" else None
        return (metadata or {}).get(b"generator") == GENERATOR.encode()
    except (OSError, ValueError, RecursionError, pa.ArrowException):
        return False


def _umask() -> int:
    """Return the permission mask of new files, which temporary files ignore."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
