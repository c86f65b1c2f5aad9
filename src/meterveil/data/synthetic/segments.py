"""Power as steps in continuous time, turned into minute means without sampling.

Switching times are real numbers of seconds, so the minutes at the edges of an event hold a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meterveil.data.household import FloatArray

MINUTE_S = 60.0
Rng = np.random.Generator


@dataclass(frozen=True)
class Segments:
    """Stretches of constant power; where they overlap, their powers add."""

    start_s: FloatArray
    stop_s: FloatArray
    watts: FloatArray

    @classmethod
    def of(cls, start_s: FloatArray, stop_s: FloatArray, watts: FloatArray | float) -> Segments:
        """Build segments with one power for all or one each; empty stretches are dropped."""
        keep = stop_s > start_s
        return cls(start_s[keep], stop_s[keep], np.broadcast_to(watts, start_s.shape)[keep])

    def delayed(self, by_s: float) -> Segments:
        return Segments(self.start_s + by_s, self.stop_s + by_s, self.watts)

    @property
    def end_s(self) -> float:
        """Second at which the last stretch stops; zero if there is none."""
        return float(self.stop_s.max(initial=0.0))


def levels(durations_s: Sequence[float] | FloatArray, watts: Sequence[float] | FloatArray) -> Segments:
    """Hold one power after another without a pause, from second zero."""
    edges = np.concatenate([[0.0], np.cumsum(durations_s)])
    return Segments(edges[:-1], edges[1:], np.asarray(watts, dtype=np.float64))


def join(parts: Iterable[Segments]) -> Segments:
    """Join segments, each at its own time."""
    columns = [np.empty((3, 0)), *(np.stack([part.start_s, part.stop_s, part.watts]) for part in parts)]
    return Segments(*np.concatenate(columns, axis=1))


def chain(parts: Iterable[Segments]) -> Segments:
    """Join parts so that each begins where the one before ends."""
    placed, now_s = [], 0.0
    for part in parts:
        placed.append(part.delayed(now_s))
        now_s = placed[-1].end_s
    return join(placed)


def pulses(rng: Rng, duration_s: float, on_s: float, off_s: float, high_w: float, low_w: float) -> Segments:
    """Switch between two powers as a thermostat or a drum does."""
    count = int(duration_s / (on_s + off_s)) + 1
    spans = np.tile([on_s, off_s], count) * rng.uniform(0.85, 1.15, 2 * count)
    edges = np.minimum(np.concatenate([[0.0], np.cumsum(spans)]), duration_s)
    return Segments(edges[:-1], edges[1:], np.tile([high_w, low_w], count))


def wander(rng: Rng, duration_s: float, watts: float, spread: float, step_s: float) -> Segments:
    """Draw a power that varies around a mean by a relative `spread`, from step to step."""
    count = max(1, int(duration_s / step_s))
    stray = np.convolve(rng.standard_normal(count + 3), [0.6, 0.5, 0.4, 0.3], mode="valid")
    return levels(np.full(count, duration_s / count), watts * np.clip(1 + spread * stray, 0.2, 3.0))


def minute_means(load: Segments, minutes: int) -> FloatArray:
    """Average the power over each of the first `minutes` minutes, exactly."""
    return interval_means(load, minutes, MINUTE_S)


def interval_means(load: Segments, count: int, interval_s: float) -> FloatArray:
    """Average the power over each of the first `count` intervals, exactly.

    A switch-on at a share f of interval k adds (1 - f) of its power to k and all of it to every later one:
    two entries in the differences of the means, so the cost is one sum however long a segment lasts.
    """
    edges = np.clip(np.concatenate([load.start_s, load.stop_s]) / interval_s, 0.0, float(count))
    change_w = np.concatenate([load.watts, -load.watts])
    interval = edges.astype(np.int64)
    share = edges - interval
    change = np.bincount(interval, change_w * (1 - share), count + 2)
    change += np.bincount(interval + 1, change_w * share, count + 2)
    return np.maximum(np.cumsum(change)[:count], 0.0)
