"""Reader of `channel_N.dat` files: lines of `<unix seconds> <watts>`, tens of millions of them.

Threads sum blocks of whole lines by minute, so memory does not grow with the file unless its lines are out of
order. The extension `_lines` sums blocks of plain lines in order; pyarrow parses every other block.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as arrow_csv

from meterveil.data.cache import cached
from meterveil.data.files import readable_file
from meterveil.data.household import (
    FloatArray,
    IntArray,
    Series,
    check_seconds,
    in_order,
    minute_means,
    minute_sums,
    order_notes,
)
from meterveil.errors import InputError

add_up: Callable[..., tuple[int, int, int] | None] | None = None
with suppress(ImportError):
    from meterveil.data._lines import add_up

BLOCK_BYTES = 1 << 20
SHORTEST_PLAIN_LINE_BYTES = len("1363564800 0\n")
LONGEST_LINE_BYTES = 4096
LINE = re.compile(rb"[-+]?\d+(\.\d*)? +([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan)\s*", re.IGNORECASE)
EXAMPLE = "a channel file has lines such as '1363564800 243'"

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """Whole lines of a file; the next block overwrites the text."""

    path: Path
    begin: int
    text: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Sums:
    """Sums of one block by minute, and its first and last stamp."""

    minute: IntArray
    total: FloatArray
    count: IntArray
    earliest: float
    latest: float
    backwards: int = 0
    duplicated: int = 0


def read_channel(path: str | Path) -> Series:
    """Return the minute means of a channel file, from the cache where the file has been read before."""
    path = readable_file(path)
    return cached(path, "channel", lambda: stream_channel(path))


def stream_channel(path: Path, block_bytes: int = BLOCK_BYTES) -> Series:
    """Return the minute means of a channel file, read from its text."""
    blocks = [block for block in map_blocks(path, block_bytes, _sums) if block is not None]
    if not blocks:
        raise InputError(f"{path}: no readings; {EXAMPLE}")
    check_seconds(min(b.earliest for b in blocks), max(b.latest for b in blocks), str(path))
    if any(left.latest >= right.earliest for left, right in pairwise(blocks)):
        seconds, watts = zip(*map_blocks(path, block_bytes, read_samples), strict=True)
        return minute_means(np.concatenate(seconds), np.concatenate(watts), str(path))
    notes = order_notes(sum(b.backwards for b in blocks), sum(b.duplicated for b in blocks))
    return Series(*_join(blocks), notes)


def map_blocks(path: Path, block_bytes: int, use: Callable[[Block], T]) -> list[T]:
    """Apply `use` to every block, and return the results in the order of the file."""
    cuts = _cuts(path, block_bytes)
    workers = min(os.cpu_count() or 1, len(cuts))
    shares = [cuts[len(cuts) * n // workers : len(cuts) * (n + 1) // workers] for n in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda share: _read_share(path, share, use), shares)
        return [result for share in results for result in share]


def _cuts(path: Path, block_bytes: int) -> list[tuple[int, int]]:
    """Return (begin, end) of blocks that cover the file and end with a line each."""
    ends = [0]
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while ends[-1] < size:
            file.seek(min(ends[-1] + block_bytes, size))
            if len(file.readline(LONGEST_LINE_BYTES)) == LONGEST_LINE_BYTES:
                raise InputError(
                    f"{path}: no line break within {LONGEST_LINE_BYTES:,} bytes of byte {ends[-1]:,}; {EXAMPLE}"
                )
            ends.append(file.tell())
    return list(pairwise(ends))


def _read_share(path: Path, cuts: Sequence[tuple[int, int]], use: Callable[[Block], T]) -> list[T]:
    """Read one block after the other into the same memory, which is faster than allocating it anew."""
    text = np.empty(max(end - begin for begin, end in cuts) + 1, dtype=np.uint8)
    results = []
    with path.open("rb", buffering=0) as file:
        file.seek(cuts[0][0])
        for begin, end in cuts:
            size = file.readinto(text.data[: end - begin])
            if size != end - begin:
                raise InputError(f"{path} became shorter while it was read; read it again when it is complete")
            if text[size - 1] != ord("\n"):
                text[size] = ord("\n")
                size += 1
            results.append(use(Block(path, begin, text[:size])))
    return results


def read_samples(block: Block) -> tuple[FloatArray, FloatArray]:
    """Parse seconds and watts of any block: signs, exponents, carriage returns and empty lines too."""
    if not block.text.tobytes().strip():
        return np.empty(0), np.empty(0)
    types = {"seconds": pa.float64(), "watts": pa.float64()}
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(block.text),
            arrow_csv.ReadOptions(column_names=list(types), use_threads=False),
            arrow_csv.ParseOptions(delimiter=" ", quote_char=False),
            arrow_csv.ConvertOptions(column_types=types, null_values=[]),
        )
    except pa.ArrowInvalid as error:
        raise _bad_line(block, str(error)) from None
    seconds = table["seconds"].to_numpy()
    if not np.isfinite(seconds).all():
        raise _bad_line(block, "a stamp is not a number")
    return seconds, table["watts"].to_numpy()


def _bad_line(block: Block, reason: str) -> InputError:
    """Name the first line that is not a stamp and a number."""
    for number, line in enumerate(block.text.tobytes().splitlines(), start=1):
        if line and not LINE.fullmatch(line):
            with block.path.open("rb") as file:
                before = file.read(block.begin).count(b"\n")
            shown = line[:60].decode("utf-8", errors="replace")
            return InputError(
                f"{block.path}, line {before + number:,}: '{shown}' is not '<unix seconds> <watts>'; "
                "correct or remove the line"
            )
    return InputError(f"{block.path}: {reason.splitlines()[0]}")


def _join(blocks: Sequence[_Sums]) -> tuple[IntArray, FloatArray]:
    """Turn sums into means; a minute that two blocks share is added up first."""
    lengths = [len(block.minute) for block in blocks]
    for n, (left, right) in enumerate(pairwise(blocks)):
        if left.minute[-1] == right.minute[0]:
            right.total[0] += left.total[-1]
            right.count[0] += left.count[-1]
            lengths[n] -= 1
    parts = list(zip(blocks, lengths, strict=True))
    minute = np.concatenate([block.minute[:length] for block, length in parts])
    watts = np.concatenate([block.total[:length] / block.count[:length] for block, length in parts])
    return minute, watts


def _sums(block: Block) -> _Sums | None:
    return _sums_of_plain_lines(block.text) or _sums_of_samples(*read_samples(block))


def _sums_of_plain_lines(text: npt.NDArray[np.uint8]) -> _Sums | None:
    """Sum by minute with the extension; None where it declines the text or was not built."""
    if add_up is None:
        return None
    most_minutes = len(text) // SHORTEST_PLAIN_LINE_BYTES
    minute, count = np.empty((2, most_minutes), dtype=np.int64)
    total = np.empty(most_minutes)
    summed = add_up(text, minute, total, count)
    if summed is None:
        return None
    minutes, first, last = summed
    return _Sums(minute[:minutes].copy(), total[:minutes].copy(), count[:minutes].copy(), first, last)


def _sums_of_samples(seconds: FloatArray, watts: FloatArray) -> _Sums | None:
    seconds, watts, backwards, duplicated = in_order(seconds, watts)
    if len(seconds) == 0:
        return None
    earliest, latest = float(seconds[0]), float(seconds[-1])
    return _Sums(*minute_sums(seconds, watts), earliest, latest, backwards, duplicated)
