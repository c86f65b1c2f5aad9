r"""Read lines such as `1363564800 243\n` at the speed of memory: eight digits at a time, a block at once.

The releases hold little else, and a general CSV parser spends most of its time on what cannot occur here.
Blocks in which anything else occurs (a sign, a decimal point, a carriage return, a wider value) are declined.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from meterveil.data.minutes import IntArray

Word = np.uint64
Words = npt.NDArray[np.uint64]

PREFIX_BYTES = 2
"""The first two of a stamp's ten digits change once in three years: they are compared, not parsed."""
GATHERED_BYTES = 16
"""The rest of a line is two words: eight digits; a space, one to seven digits and what follows them."""
SHORTEST_LINE, LONGEST_LINE = 12, 18

ZEROS = Word(0x3030_3030_3030_3030)
"""Turns ASCII digits into 0 to 9, and anything else into a byte with a high nibble or above 9."""
SPACE_AND_ZEROS = Word(0x3030_3030_3030_3020)
SIXES = Word(0x0606_0606_0606_0606)
"""Added to a byte above 9, it carries into the high nibble."""
HIGH_NIBBLES = 0xF0F0_F0F0_F0F0_F0F0


class LineBlock:
    """Hold a block of text and the arrays in which it is parsed.

    They are reused from block to block: fetching fresh memory costs more than parsing into it.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.text = np.empty(capacity_bytes + GATHERED_BYTES, dtype=np.uint8)
        self._is_end = np.empty(capacity_bytes, dtype=np.bool_)
        most_lines = capacity_bytes // (SHORTEST_LINE + 1) + 1
        self._digits, self._scratch = np.empty((2, 2 * most_lines), dtype=Word)

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
        words = self._gather(start)
        prefix = self._common_prefix(start)
        count = len(start)
        digits = self._digits[: 2 * count].reshape(2, count)
        np.bitwise_xor(words[:, 0], ZEROS, out=digits[0])
        space_and_watts = np.bitwise_xor(words[:, 1], SPACE_AND_ZEROS, out=start.view(Word))
        _align_watts(space_and_watts, length, out=digits[1])
        spaces_differ = int(np.bitwise_or.reduce(space_and_watts)) & 0xFF
        if prefix is None or spaces_differ or not _all_digits(digits, self._scratch[: 2 * count]):
            return None
        _digits_to_numbers(digits)
        seconds, watts = digits.view(np.int64)
        seconds += prefix * 10**8
        return seconds, watts

    def _gather(self, start: IntArray) -> Words:
        """Return the sixteen bytes behind each line's prefix as (line, 2) words."""
        at_any_byte = np.ndarray(
            len(self.text) - PREFIX_BYTES - GATHERED_BYTES + 1,
            dtype=f"V{GATHERED_BYTES}",
            buffer=self.text[PREFIX_BYTES:].data,
            strides=(1,),
        )
        words: Words = at_any_byte[start].view("<u8").reshape(-1, 2)
        return words

    def _common_prefix(self, start: IntArray) -> int | None:
        """Return the first two digits of all stamps as a number, or None if they differ or are none."""
        for text in (self.text, self.text[1:]):
            if np.any(text.take(start) != text[0]):
                return None
        prefix = self.text[:PREFIX_BYTES].tobytes()
        return int(prefix) if prefix.isdigit() else None


def _align_watts(space_and_watts: Words, length: IntArray, out: Words) -> None:
    """Drop the space below and what follows the line above, so that what is left reads as 00000243."""
    length *= -8
    length += 8 * (LONGEST_LINE + 1)
    np.right_shift(space_and_watts, Word(8), out=out)
    np.left_shift(out, length.view(Word), out=out)


def _all_digits(digits: Words, scratch: Words) -> bool:
    np.add(digits.ravel(), SIXES, out=scratch)
    scratch |= digits.ravel()
    return not int(np.bitwise_or.reduce(scratch)) & HIGH_NIBBLES


def _digits_to_numbers(digits: Words) -> None:
    """Turn words of eight digits, the first in the lowest byte, into numbers: pairs, fours, then eights."""
    digits *= Word(10 << 8 | 1)
    digits >>= Word(8)
    digits &= Word(0x00FF_00FF_00FF_00FF)
    digits *= Word(100 << 16 | 1)
    digits >>= Word(16)
    digits &= Word(0x0000_FFFF_0000_FFFF)
    digits *= Word(10_000 << 32 | 1)
    digits >>= Word(32)
