"""Reader of `channel_N.dat` files: lines of `<unix seconds> <watts>`, tens of millions of them.

The file is cut into blocks of whole lines, and threads sum the blocks by minute, so memory does not grow with
the file. The extension `_lines` sums blocks of plain lines that are in order. pyarrow parses every other
block, and all blocks where the extension was not built.
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
from meterveil.data.household import FloatArray
from meterveil.data.minutes import (
    IntArray,
    Series,
    check_seconds,
    in_order,
    minute_sums,
    order_notes,
)
from meterveil.errors import InputError

add_up: Callable[..., tuple[int, int, int] | None] | None = None
with suppress(ImportError):
    from meterveil.data._lines import add_up

BLOCK_BYTES = 1 << 20
SAMPLES_AT_ONCE = 5_000_000
"""Samples held in memory where blocks overlap, about; more are read in several passes."""
SHORTEST_PLAIN_LINE_BYTES = len("1363564800 0\n")
LONGEST_LINE_BYTES = 4096
LINE = re.compile(rb"[-+]?\d+(\.\d*)? +([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan)\s*", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """Whole lines of a file; the next block overwrites the text."""

    path: Path
    begin: int
    text: npt.NDArray[np.uint8]


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
                    f"{path}: no line break within {LONGEST_LINE_BYTES:,} bytes of byte {ends[-1]:,}; "
                    "a channel file is text with lines such as '1363564800 243'"
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
                raise InputError(
                    f"{path} became shorter while it was read; read it again when it is complete"
                )
            if text[size - 1] != ord("\n"):
                text[size] = ord("\n")
                size += 1
            results.append(use(Block(path, begin, text[:size])))
    return results


def read_samples(block: Block) -> tuple[FloatArray, FloatArray]:
    """Parse seconds and watts of any block: signs, exponents, carriage returns and empty lines too."""
    if not block.text.tobytes().strip():
        return np.empty(0), np.empty(0)
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(block.text),
            arrow_csv.ReadOptions(column_names=["seconds", "watts"], use_threads=False),
            arrow_csv.ParseOptions(delimiter=" ", quote_char=False),
            arrow_csv.ConvertOptions(
                column_types={"seconds": pa.float64(), "watts": pa.float64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        raise _bad_line(block, str(error)) from None
    seconds = table["seconds"].to_numpy()
    if not np.isfinite(seconds).all():
        raise _bad_line(block, "a stamp is not a number")
    return seconds, table["watts"].to_numpy()


def _bad_line(block: Block, reason: str) -> InputError:
    """Name the first line that is not a stamp and a number."""
    for number, line in enumerate(block.text.tobytes().splitlines()):
        if line and not LINE.fullmatch(line):
            line_number = _lines_before(block.path, block.begin) + number + 1
            shown = line[:60].decode("utf-8", errors="replace")
            return InputError(
                f"{block.path}, line {line_number:,}: '{shown}' is not '<unix seconds> <watts>'; "
                "correct or remove the line"
            )
    return InputError(f"{block.path}: {reason.splitlines()[0]}")


def _lines_before(path: Path, begin: int) -> int:
    count = 0
    with path.open("rb") as file:
        while file.tell() < begin:
            count += file.read(min(BLOCK_BYTES, begin - file.tell())).count(b"\n")
    return count


@dataclass(frozen=True)
class _Sums:
    """Sums of one block by minute, and how it joins its neighbours."""

    minute: IntArray
    total: FloatArray
    count: IntArray
    earliest: float
    latest: float
    begin: float
    """Stamp of the first line, which is the earliest where lines are in order."""
    end: float
    """Stamp of the last line."""
    backwards: int
    duplicated: int


def read_channel(path: str | Path) -> Series:
    """Return the minute means of a channel file, from the cache where the file has been read before."""
    path = readable_file(path)
    return cached(path, "channel", lambda: stream_channel(path))


def stream_channel(path: Path, block_bytes: int = BLOCK_BYTES) -> Series:
    """Return the minute means of a channel file, read from its text."""
    blocks = [block for block in map_blocks(path, block_bytes, _sums) if block is not None]
    if not blocks:
        raise InputError(f"{path}: no readings; a channel file has lines such as '1363564800 243'")
    check_seconds(min(b.earliest for b in blocks), max(b.latest for b in blocks), str(path))
    if any(left.latest >= right.earliest for left, right in pairwise(blocks)):
        return _join_disordered(blocks, path, block_bytes)
    notes = order_notes(sum(b.backwards for b in blocks), sum(b.duplicated for b in blocks))
    return Series(*_join(blocks), notes)


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


def _join_disordered(blocks: Sequence[_Sums], path: Path, block_bytes: int) -> Series:
    """Take a minute from the one block that holds it; read its samples again where several blocks do.

    Two blocks may hold the same stamp, and the last in the file counts: sums alone do not show that.
    """
    divided = _minutes_of_several(blocks)
    parts = [_without(divided, block) for block in blocks]
    samples = sum(int(block.count.sum()) for block in blocks)
    again = samples - sum(int(count.sum()) for _, _, count in parts)
    groups = np.array_split(divided, again // SAMPLES_AT_ONCE + 1)
    parts.extend(_sums_within(minutes, path, block_bytes) for minutes in groups)
    minute, total, count = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(minute)
    backwards = sum(block.backwards for block in blocks)
    backwards += sum(right.begin < left.end for left, right in pairwise(blocks))
    duplicated = samples + sum(block.duplicated for block in blocks) - int(count.sum())
    return Series(minute[order], (total / count)[order], order_notes(backwards, duplicated))


def _minutes_of_several(blocks: Sequence[_Sums]) -> IntArray:
    first = min(int(block.minute[0]) for block in blocks)
    last = max(int(block.minute[-1]) for block in blocks)
    holders = np.zeros(last + 1 - first, dtype=np.int32)
    for block in blocks:
        holders[block.minute - first] += 1
    return first + np.flatnonzero(holders > 1)


def _sums_within(minutes: IntArray, path: Path, block_bytes: int) -> tuple[IntArray, FloatArray, IntArray]:
    """Read the samples of some minutes from the whole file, and sum them."""
    samples = map_blocks(path, block_bytes, lambda block: _samples_within(minutes, block))
    sums = _sums_of_samples(*(np.concatenate(parts) for parts in zip(*samples, strict=True)))
    if sums is None:
        return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64)
    return sums.minute, sums.total, sums.count


def _samples_within(minutes: IntArray, block: Block) -> tuple[FloatArray, FloatArray]:
    seconds, watts = read_samples(block)
    inside = np.isin(np.floor_divide(seconds, 60).astype(np.int64), minutes)
    return seconds[inside], watts[inside]


def _without(minutes: IntArray, block: _Sums) -> tuple[IntArray, FloatArray, IntArray]:
    kept = ~np.isin(block.minute, minutes)
    return block.minute[kept], block.total[kept], block.count[kept]


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
    sums = minute[:minutes].copy(), total[:minutes].copy(), count[:minutes].copy()
    return _Sums(*sums, first, last, first, last, 0, 0)


def _sums_of_samples(seconds: FloatArray, watts: FloatArray) -> _Sums | None:
    known = ~np.isnan(watts)
    if not known.all():
        seconds, watts = seconds[known], watts[known]
    if len(seconds) == 0:
        return None
    begin, end = float(seconds[0]), float(seconds[-1])
    seconds, watts, backwards, duplicated = in_order(seconds, watts)
    earliest, latest = float(seconds[0]), float(seconds[-1])
    return _Sums(*minute_sums(seconds, watts), earliest, latest, begin, end, backwards, duplicated)
