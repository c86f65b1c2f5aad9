"""Read one `channel_N.dat` of a release: a line is `<unix seconds> <watts>`, and there are tens of millions.

The file is cut into blocks at line breaks, blocks are summed by minute in threads, and sums and counts of a
minute that a cut divides are added up before they become a mean. So memory does not grow with the lines.

The extension `_lines` sums a block of plain lines in order straight from its text: the releases hold little
else. pyarrow parses a block that the extension declines, and every block where it was not built.
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
    minute_means,
    minute_sums,
    order_notes,
)
from meterveil.errors import InputError

add_up: Callable[..., tuple[int, int, int] | None] | None = None
with suppress(ImportError):
    from meterveil.data._lines import add_up

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4096
SHORTEST_PLAIN_LINE_BYTES = len("1363564800 0\n")
LINE = re.compile(rb"[-+]?\d+(\.\d*)? +([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan)\s*", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True)
class _Block:
    """Hold whole lines of a file, the last one with its line break; the next block overwrites the text."""

    path: Path
    begin: int
    text: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Sums:
    """Hold one block's sums by minute, and what is needed to join it to its neighbours."""

    minute: IntArray
    total: FloatArray
    count: IntArray
    first_second: float
    last_second: float
    backwards: int
    duplicated: int


def read_channel(path: str | Path) -> Series:
    """Return the minute means of a channel file, from the cache where the file has been read before."""
    path = readable_file(path)
    return cached(path, "channel", lambda: stream_channel(path))


def stream_channel(path: Path, block_bytes: int = BLOCK_BYTES) -> Series:
    """Return the minute means of a channel file, read from its text."""
    blocks = [block for block in _map_blocks(path, block_bytes, _sums) if block is not None]
    if not blocks:
        raise InputError(f"{path}: no readings; a channel file has lines such as '1363564800 243'")
    check_seconds(min(b.first_second for b in blocks), max(b.last_second for b in blocks), str(path))
    if any(left.last_second >= right.first_second for left, right in pairwise(blocks)):
        return _read_at_once(path, block_bytes)
    notes = order_notes(sum(b.backwards for b in blocks), sum(b.duplicated for b in blocks))
    return Series(*_join(blocks), notes)


def _join(blocks: Sequence[_Sums]) -> tuple[IntArray, FloatArray]:
    """Turn sums into means, after adding what one block holds of a minute to what the next one does."""
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


def _read_at_once(path: Path, block_bytes: int) -> Series:
    """Keep every sample and sort them: the only way where stamps of one block belong into another."""
    samples = _map_blocks(path, block_bytes, _samples)
    seconds = np.concatenate([block_seconds for block_seconds, _ in samples])
    watts = np.concatenate([block_watts for _, block_watts in samples])
    return minute_means(seconds, watts, where=str(path))


def _sums(block: _Block) -> _Sums | None:
    return _sums_of_plain_lines(block.text) or _sums_of_samples(*_samples(block))


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
    return _Sums(minute[:minutes].copy(), total[:minutes].copy(), count[:minutes].copy(), first, last, 0, 0)


def _sums_of_samples(seconds: FloatArray, watts: FloatArray) -> _Sums | None:
    known = ~np.isnan(watts)
    seconds, watts = seconds[known], watts[known]
    if len(seconds) == 0:
        return None
    seconds, watts, backwards, duplicated = in_order(seconds, watts)
    first, last = float(seconds[0]), float(seconds[-1])
    return _Sums(*minute_sums(seconds, watts), first, last, backwards, duplicated)


def _map_blocks(path: Path, block_bytes: int, use: Callable[[_Block], T]) -> list[T]:
    """Apply `use` to every block, and return the results in the order of the file."""
    cuts = _cuts(path, block_bytes)
    workers = min(os.cpu_count() or 1, len(cuts))
    shares = [cuts[len(cuts) * n // workers : len(cuts) * (n + 1) // workers] for n in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(lambda share: _read_share(path, share, use), shares)
        return [result for share in results for result in share]


def _cuts(path: Path, block_bytes: int) -> list[tuple[int, int]]:
    """Return (begin, end) of blocks that together are the file and of which each ends with a line."""
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


def _read_share(path: Path, cuts: Sequence[tuple[int, int]], use: Callable[[_Block], T]) -> list[T]:
    """Read one block after the other into the same memory: fresh memory costs more than reading into it."""
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
            results.append(use(_Block(path, begin, text[:size])))
    return results


def _samples(block: _Block) -> tuple[FloatArray, FloatArray]:
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


def _bad_line(block: _Block, reason: str) -> InputError:
    """Name the first line that is not a stamp and a number."""
    for number, line in enumerate(block.text.tobytes().splitlines()):
        if line and not LINE.fullmatch(line):
            line_number = _lines_before(block.path, block.begin) + number + 1
            shown = line[:60].decode("utf-8", errors="replace")
            return InputError(
                f"{block.path}, line {line_number:,}: '{shown}' is not '<unix seconds> <watts>'; "
                "mend or remove the line"
            )
    return InputError(f"{block.path}: {reason.splitlines()[0]}")


def _lines_before(path: Path, begin: int) -> int:
    count = 0
    with path.open("rb") as file:
        while file.tell() < begin:
            count += file.read(min(BLOCK_BYTES, begin - file.tell())).count(b"\n")
    return count
