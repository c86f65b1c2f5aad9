"""Uses of appliances: runs of minutes in which an appliance seems to be on, joined over short pauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Shape:
    """Durations of one use of an appliance."""

    pause_minutes: int
    """A break of up to this many minutes is a pause within one use."""
    least_minutes: int
    """Shorter runs are ignored."""
    most_minutes: int
    """Longer runs are something else and are ignored."""
    attended: bool
    """Whether somebody must be at home and awake for a use to begin."""


SHAPES: dict[str, Shape] = {
    "kettle": Shape(pause_minutes=1, least_minutes=1, most_minutes=15, attended=True),
    "microwave": Shape(pause_minutes=2, least_minutes=1, most_minutes=60, attended=True),
    "fridge": Shape(pause_minutes=2, least_minutes=4, most_minutes=720, attended=False),
    "dishwasher": Shape(pause_minutes=45, least_minutes=20, most_minutes=300, attended=False),
    "washing_machine": Shape(pause_minutes=30, least_minutes=20, most_minutes=300, attended=False),
}
"""Appliances that the shipped model knows, in the order of its outputs."""

OTHER = Shape(pause_minutes=5, least_minutes=1, most_minutes=1440, attended=False)

WORDS = ((0.9, "almost certain"), (0.65, "likely"), (0.0, "unsure"))
"""Least probability -> word."""

AGREEMENT = 0.5
"""A detected use is right where at least this share of its minutes lies in a true use."""
SLACK_MINUTES = 2
"""Allowed difference between the clocks of two meters."""


class Use(NamedTuple):
    """One use, as minutes of the record from `start` up to, not including, `end`."""

    appliance: str
    start: int
    end: int
    probability: float

    @property
    def word(self) -> str:
        """State the probability in words."""
        return next(word for least, word in WORDS if self.probability >= least)

    @property
    def is_sure(self) -> bool:
        """Whether the use is called likely or almost certain."""
        return self.word != "unsure"


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


def agreeing(detected: list[tuple[int, int]], true: list[tuple[int, int]], length: int) -> BoolArray:
    """Mark the detected uses that lie to a large enough share in true uses."""
    spread = [(max(start - SLACK_MINUTES, 0), min(end + SLACK_MINUTES, length)) for start, end in true]
    covered = np.concatenate([[0], np.cumsum(minutes_of(spread, length))])
    shares = [(covered[end] - covered[start]) / (end - start) for start, end in detected]
    return np.asarray(shares, dtype=np.float64) >= AGREEMENT


def score_of_run(logit: FloatArray, start: int, end: int) -> float:
    """Rate a use by the mean log-odds of the better half of its minutes, so that pauses do not count."""
    part = np.sort(logit[start:end])
    return float(part[len(part) // 2 :].mean())
