"""Read one `channel_N.dat` of a release: a line is `<unix seconds> <watts>`, and there are tens of millions.

The file is cut into blocks at line breaks, blocks are summed by minute in threads, and sums and counts of a
minute that a cut divides are added up before they become a mean. So memory does not grow with the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as arrow_csv

from meterveil.data.cache import cached
from meterveil.data.digits import LineBlock
from meterveil.data.files import readable_file
from meterveil.data.household import FloatArray
from meterveil.data.minutes import (
    IntArray,
    Numbers,
    Series,
    check_seconds,
    in_order,
    minute_means,
    minute_sums,
    order_notes,
)
from meterveil.errors import InputError

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4096
LINE = re.compile(rb"[-+]?\d+(\.\d*)? +([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan)\s*", re.IGNORECASE)

T = TypeVar("T")


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
    samples = _map_blocks(path, block_bytes, lambda seconds, watts: (seconds.copy(), watts.astype(float)))
    seconds = np.concatenate([block_seconds for block_seconds, _ in samples])
    watts = np.concatenate([block_watts for _, block_watts in samples])
    return minute_means(seconds, watts, where=str(path))


def _sums(seconds: Numbers, watts: Numbers) -> _Sums | None:
    if watts.dtype == np.float64:
        known = ~np.isnan(watts)
        seconds, watts = seconds[known], watts[known]
    if len(seconds) == 0:
        return None
    seconds, watts, backwards, duplicated = in_order(seconds, watts)
    first, last = float(seconds[0]), float(seconds[-1])
    return _Sums(*minute_sums(seconds, watts), first, last, backwards, duplicated)


def _map_blocks(path: Path, block_bytes: int, use: Callable[[Numbers, Numbers], T]) -> list[T]:
    """Apply `use` to seconds and watts of every block, in the order of the file."""
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


def _read_share(path: Path, cuts: Sequence[tuple[int, int]], use: Callable[[Numbers, Numbers], T]) -> list[T]:
    block = LineBlock(max(end - begin for begin, end in cuts) + 1)
    results = []
    with path.open("rb", buffering=0) as file:
        file.seek(cuts[0][0])
        for begin, end in cuts:
            size = file.readinto(block.text.data[: end - begin])
            if size != end - begin:
                raise InputError(
                    f"{path} became shorter while it was read; read it again when it is complete"
                )
            if block.text[size - 1] != ord("\n"):
                block.text[size] = ord("\n")
                size += 1
            parsed = block.parse(size) or _parse_any(path, begin, block.text[:size])
            results.append(use(*parsed))
    return results


def _parse_any(path: Path, begin: int, text: npt.NDArray[np.uint8]) -> tuple[FloatArray, FloatArray]:
    """Parse a block that holds more than plain integers: signs, decimals, carriage returns, empty lines."""
    if not text.tobytes().strip():
        return np.empty(0), np.empty(0)
    try:
        table = arrow_csv.read_csv(
            pa.py_buffer(text),
            arrow_csv.ReadOptions(column_names=["seconds", "watts"], use_threads=False),
            arrow_csv.ParseOptions(delimiter=" ", quote_char=False),
            arrow_csv.ConvertOptions(
                column_types={"seconds": pa.float64(), "watts": pa.float64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid as error:
        raise _bad_line(path, begin, text.tobytes(), str(error)) from None
    return table["seconds"].to_numpy(), table["watts"].to_numpy()


def _bad_line(path: Path, begin: int, text: bytes, reason: str) -> InputError:
    """Name the first line that is not a stamp and a number."""
    for number, line in enumerate(text.splitlines()):
        if line and not LINE.fullmatch(line):
            line_number = _lines_before(path, begin) + number + 1
            shown = line[:60].decode("utf-8", errors="replace")
            return InputError(
                f"{path}, line {line_number:,}: '{shown}' is not '<unix seconds> <watts>'; "
                "mend or remove the line"
            )
    return InputError(f"{path}: {reason.splitlines()[0]}")


def _lines_before(path: Path, begin: int) -> int:
    count = 0
    with path.open("rb") as file:
        while file.tell() < begin:
            count += file.read(min(BLOCK_BYTES, begin - file.tell())).count(b"\n")
    return count
