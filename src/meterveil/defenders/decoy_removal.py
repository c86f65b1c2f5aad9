"""What an attacker who knows the signatures makes of a meter with decoys: the meter without them.

Signatures are public, only the times at which they run are secret. Both functions see the meter alone.
"""

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.core.decoys import Library

_SHORTEST = 3
"""Fewest minutes of a signature that can be told from a step of the load."""
_LEAST_GAIN = 0.75
"""Share of a signature's changes that must vanish from the meter where it is removed."""
_HIDDEN_W = 0.5
"""Reading below which a discharging battery hides the load (D3)."""


def level_below_decoys(shown_w: FloatArray, library: Library, error_w: float = 1.5) -> FloatArray:
    """Find signatures on a constant level by their exact shape, and draw a line below each, (batch, minute).

    A decoy holds the level of its first minute; the level after it has changed by the load of all its minutes.
    """
    level_w = shown_w.copy()
    for signature, length in zip(library.watts[:-1], library.lengths[:-1], strict=True):
        if length < _SHORTEST:
            continue
        row, start = np.nonzero(np.abs(np.diff(shown_w[:, : 1 - length]) - np.diff(signature[:2])) <= error_w)
        for minute in range(2, length):
            rise_w = shown_w[row, start + minute] - shown_w[row, start]
            fits = np.abs(rise_w - (signature[minute] - signature[0])) <= error_w
            row, start = row[fits], start[fits]
        first_w, after_w = shown_w[row, start] - signature[0], shown_w[row, start + length]
        for minute in range(length):
            level_w[row, start + minute] = first_w + (after_w - first_w) * minute / length
    return level_w


def load_without_decoys(shown_w: FloatArray, library: Library) -> FloatArray:
    """Remove signatures that were added to the load, and bridge the minutes in which the meter shows nothing.

    A signature is removed where the meter changes less without it. Discharging is mostly cut at the load, so
    that the meter shows 0 W; the load before and after is all that is known of it. Returns (batch, minute).
    """
    load_w, minutes = shown_w.copy(), shown_w.shape[1]
    change_w = np.diff(shown_w, axis=1, prepend=shown_w[:, :1])
    gain = np.zeros((library.size, *shown_w.shape))
    for n, (signature, length) in enumerate(zip(library.watts[:-1], library.lengths[:-1], strict=True)):
        if not _SHORTEST <= length < minutes:
            continue
        edge_w = np.diff(signature[:length], prepend=0.0, append=0.0)
        starts = minutes - length
        for minute, rise_w in enumerate(edge_w):
            part_w = change_w[:, minute : minute + starts]
            gain[n, :, :starts] += np.abs(part_w) - np.abs(part_w - rise_w)
        gain[n] /= np.abs(edge_w).sum()
    best, which = gain.max(axis=0), gain.argmax(axis=0)
    row, start = np.nonzero(best >= _LEAST_GAIN)
    order = np.argsort(-best[row, start], kind="stable")
    taken = np.zeros(shown_w.shape, dtype=np.bool_)
    for one, begin in zip(row[order], start[order], strict=True):
        n = which[one, begin]
        inside = slice(begin, begin + library.lengths[n])
        if not taken[one, inside].any():
            taken[one, inside] = True
            load_w[one, inside] -= library.watts[n, : library.lengths[n]]
    return _bridged(np.where(shown_w < _HIDDEN_W, np.nan, np.maximum(load_w, 0.0)))


def _bridged(values: FloatArray) -> FloatArray:
    """Draw lines over unknown minutes; zero where a row knows nothing."""
    clock = np.arange(values.shape[1])
    rows = []
    for row in values:
        known = np.flatnonzero(~np.isnan(row))
        rows.append(np.interp(clock, known, row[known]) if known.size else np.zeros_like(row))
    return np.stack(rows)
