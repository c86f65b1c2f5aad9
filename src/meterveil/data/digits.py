r"""Read lines such as `1363564800 243\n` at the speed of memory: eight digits at a time, a block at once.

The releases hold little else, and a general CSV parser spends most of its time on what cannot occur here.
Blocks in which anything else occurs (a sign, a decimal point, a carriage return, a wider value) are declined.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meterveil.data.minutes import IntArray

Word = np.uint64
WORD_BYTES = 8
LINE_BYTES = 16
"""A line is gathered as two words: ten digits of stamp, a space and one to five digits of watts."""
SHORTEST_LINE, LONGEST_LINE = 12, 16

ZEROS = Word(0x3030_3030_3030_3030)
"""Turns eight ASCII digits into 0 to 9, and anything else into something with a high nibble or above 9."""
TAIL_ZEROS = Word(0x3030_3030_3020_3030)
"""The same for the second word of a line, whose third byte is the space."""
SPACE_BYTE = 0xFF_0000
SIXES = Word(0x0606_0606_0606_0606)
"""Added to a digit above 9, it carries into the high nibble."""
HIGH_NIBBLES = 0xF0F0_F0F0_F0F0_F0F0


class LineBlock:
    """Hold a block of text and the arrays in which it is parsed.

    They are reused from block to block: fetching fresh memory costs more than parsing into it.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.text = np.empty(capacity_bytes + LINE_BYTES, dtype=np.uint8)
        self._is_end = np.empty(capacity_bytes, dtype=np.bool_)
        most_lines = capacity_bytes // (SHORTEST_LINE + 1) + 1
        self._words = np.empty((2, 2 * most_lines), dtype=Word)

    def parse(self, size_bytes: int) -> tuple[IntArray, IntArray] | None:
        """Return seconds and watts of the first `size_bytes`, which end with a line break, or decline.

        The arrays are views of the block's own memory: they are overwritten by the next call.
        """
        is_end = np.equal(self.text[:size_bytes], ord("\n"), out=self._is_end[:size_bytes])
        length = np.flatnonzero(is_end)
        start = np.empty_like(length)
        start[0] = 0
        np.add(length[:-1], 1, out=start[1:])
        length -= start
        if length.min() < SHORTEST_LINE or length.max() > LONGEST_LINE:
            return None
        return self._parse_lines(start, length)

    def _parse_lines(self, start: IntArray, length: IntArray) -> tuple[IntArray, IntArray] | None:
        count = len(start)
        lines = self._gather(start)
        digits, scratch = (words[: 2 * count].reshape(2, count) for words in self._words)
        tail = start.view(Word)
        np.bitwise_xor(lines[:, 0], ZEROS, out=digits[0])
        np.bitwise_xor(lines[:, 1], TAIL_ZEROS, out=tail)
        _move_watts_to_the_top(tail, length, out=digits[1])
        if not _all_digits(digits, scratch) or int(np.bitwise_or.reduce(tail)) & SPACE_BYTE:
            return None
        tail &= Word(0xFFFF)
        if not _all_digits(tail, scratch[0]):
            return None
        _digits_to_numbers(digits)
        seconds, watts = digits
        seconds *= Word(100)
        seconds += np.right_shift(tail, Word(8), out=scratch[0])
        tail &= Word(0xFF)
        tail *= Word(10)
        seconds += tail
        return seconds.view(np.int64), watts.view(np.int64)

    def _gather(self, start: IntArray) -> npt.NDArray[np.uint64]:
        """Return the sixteen bytes from each line's start as (line, 2) words."""
        at_any_byte = np.ndarray(
            (len(self.text) - LINE_BYTES + 1,), dtype=f"V{LINE_BYTES}", buffer=self.text.data, strides=(1,)
        )
        words: npt.NDArray[np.uint64] = at_any_byte[start].view("<u8").reshape(-1, 2)
        return words


def _move_watts_to_the_top(
    tail: npt.NDArray[np.uint64], length: IntArray, out: npt.NDArray[np.uint64]
) -> None:
    """Drop stamp and space below, and what follows the line above; what is left reads as 00000243."""
    length -= SHORTEST_LINE - 1
    length *= -8
    length += 8 * WORD_BYTES
    np.right_shift(tail, Word(24), out=out)
    np.left_shift(out, length.view(Word), out=out)


def _all_digits(digits: npt.NDArray[np.uint64], scratch: npt.NDArray[np.uint64]) -> bool:
    np.add(digits, SIXES, out=scratch)
    scratch |= digits
    return not int(np.bitwise_or.reduce(scratch, axis=None)) & HIGH_NIBBLES


def _digits_to_numbers(digits: npt.NDArray[np.uint64]) -> None:
    """Turn words of eight digits, the first in the lowest byte, into numbers: pairs, fours, then eights."""
    digits *= Word(10 << 8 | 1)
    digits >>= Word(8)
    digits &= Word(0x00FF_00FF_00FF_00FF)
    digits *= Word(100 << 16 | 1)
    digits >>= Word(16)
    digits &= Word(0x0000_FFFF_0000_FFFF)
    digits *= Word(10_000 << 32 | 1)
    digits >>= Word(32)
