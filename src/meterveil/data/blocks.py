"""Cut a channel file into blocks of whole lines, use them in threads, and parse the lines of any block."""

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

from meterveil.data.household import FloatArray
from meterveil.errors import InputError

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4096
LINE = re.compile(rb"[-+]?\d+(\.\d*)? +([-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan)\s*", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """Hold whole lines of a file, the last one with its line break; the next block overwrites the text."""

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


def _read_share(path: Path, cuts: Sequence[tuple[int, int]], use: Callable[[Block], T]) -> list[T]:
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
                "mend or remove the line"
            )
    return InputError(f"{block.path}: {reason.splitlines()[0]}")


def _lines_before(path: Path, begin: int) -> int:
    count = 0
    with path.open("rb") as file:
        while file.tell() < begin:
            count += file.read(min(BLOCK_BYTES, begin - file.tell())).count(b"\n")
    return count
