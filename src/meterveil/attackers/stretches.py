"""Decode long records in stretches, so that memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meterveil.attackers.protocol import FloatArray

WHOLE = 1500
"""Up to here (a civil day when the clocks go back) a series is decoded in one piece."""

STRETCH = 1440
CONTEXT = 180
"""Minutes read, but not answered for, on both sides of a stretch: what lies further off changes nothing."""


def in_stretches(
    decode: Callable[[FloatArray], Sequence[FloatArray]], reading_w: FloatArray, minutes_at_once: int
) -> list[FloatArray]:
    """Apply `decode`, (row, minute) -> tables of (row, minute, state), to rows of any number and length."""
    batch, minutes = reading_w.shape
    context = 0 if minutes <= WHOLE else CONTEXT
    length = minutes if minutes <= WHOLE else STRETCH
    count = -(-minutes // length)
    padded = np.pad(reading_w, ((0, 0), (context, context + count * length - minutes)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, length + 2 * context, axis=-1)[:, ::length]
    rows = windows.reshape(batch * count, -1)
    step = max(minutes_at_once // rows.shape[-1], 1)
    pieces = [decode(rows[first : first + step]) for first in range(0, len(rows), step)]
    answered = slice(context, context + length)
    return [
        np.concatenate([table[:, answered] for table in tables]).reshape(batch, count * length, -1)[
            :, :minutes
        ]
        for tables in zip(*pieces, strict=True)
    ]
