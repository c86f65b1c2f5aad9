"""Uses of appliances: runs of minutes in which one seems to be on, joined where it only pauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.audit.features import FloatArray

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Shape:
    """Say what one use of an appliance looks like in time."""

    pause_minutes: int
    """A break of up to this many minutes is a pause within one use."""
    least_minutes: int
    """A shorter run is no use."""
    most_minutes: int
    """A longer run is something else."""
    attended: bool
    """Whether somebody must be at home and awake for it to begin."""


SHAPES: dict[str, Shape] = {
    "kettle": Shape(pause_minutes=1, least_minutes=1, most_minutes=15, attended=True),
    "microwave": Shape(pause_minutes=2, least_minutes=1, most_minutes=60, attended=True),
    "fridge": Shape(pause_minutes=2, least_minutes=4, most_minutes=720, attended=False),
    "dishwasher": Shape(pause_minutes=45, least_minutes=20, most_minutes=300, attended=False),
    "washing_machine": Shape(pause_minutes=30, least_minutes=20, most_minutes=300, attended=False),
}
"""The appliances that the shipped model knows, in the order of its outputs."""

OTHER = Shape(pause_minutes=5, least_minutes=1, most_minutes=1440, attended=False)

WORDS = ((0.9, "almost certain"), (0.65, "likely"), (0.0, "unsure"))
"""Least probability -> word."""

AGREEMENT = 0.5
"""A found use is right where at least this share of its minutes lies in a true use."""
SLACK_MINUTES = 2


class Use(NamedTuple):
    """One use, as minutes of the record from `start` up to, not including, `end`."""

    appliance: str
    start: int
    end: int
    probability: float


def word_of(probability: float) -> str:
    """Say in a word how sure a reading is."""
    return next(word for least, word in WORDS if probability >= least)


def runs_of(on: BoolArray, shape: Shape) -> list[tuple[int, int]]:
    """List the uses in (minute,) on-minutes as half-open ranges."""
    edges = np.flatnonzero(np.diff(on.astype(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]
    if len(starts) == 0:
        return []
    apart = starts[1:] - ends[:-1] > shape.pause_minutes
    firsts, lasts = starts[np.append(True, apart)], ends[np.append(apart, True)]
    return [
        (int(start), int(end))
        for start, end in zip(firsts, lasts, strict=True)
        if shape.least_minutes <= end - start <= shape.most_minutes
    ]


def minutes_of(runs: list[tuple[int, int]], length: int) -> BoolArray:
    """Mark the minutes of uses, pauses included."""
    marked = np.zeros(length + 1, dtype=np.int64)
    for start, end in runs:
        marked[start] += 1
        marked[end] -= 1
    return np.asarray(np.cumsum(marked)[:-1] > 0)


def agreeing(found: list[tuple[int, int]], true: list[tuple[int, int]], length: int) -> BoolArray:
    """Mark the found uses of which enough lies in true ones, give or take the clocks of two meters."""
    spread = [(max(start - SLACK_MINUTES, 0), min(end + SLACK_MINUTES, length)) for start, end in true]
    covered = np.concatenate([[0], np.cumsum(minutes_of(spread, length))])
    shares = [(covered[end] - covered[start]) / (end - start) for start, end in found]
    return np.asarray(shares, dtype=np.float64) >= AGREEMENT


def score_of_run(logit: FloatArray, start: int, end: int) -> float:
    """Rate a use by the mean log-odds of the better half of its minutes: pauses say nothing against it."""
    part = np.sort(logit[start:end])
    return float(part[len(part) // 2 :].mean())
