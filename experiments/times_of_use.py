"""Times of a day that uses of appliances tell: the first and last activity, the evening meal, or that nobody was in.

An attacker gives the probability by minute that an appliance is on. `time_of_use` weighs it against the usual time:
where the meter tells nothing more than the habits, the answer is the usual time; where it shows a use, that use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray

DAY = 1440
EMPTY_SHARE = 0.1
"""Share of days without any use that an attacker expects."""
_SPREAD_MINUTES = 30.0
"""Standard deviation of the kernel around the times of the training days."""
_USE_MINUTES = 2.0
"""Minutes that a use lasts: the probabilities of so many minutes count as one look at the meter."""

_Minutes = TypeVar("_Minutes", FloatArray, BoolArray)


class Question(NamedTuple):
    """First or last use of some appliances in a part of the day."""

    appliances: tuple[str, ...]
    begin: int
    end: int
    is_last: bool = False

    def inside(self, minutes: _Minutes) -> _Minutes:
        """Cut out this part of days, (..., minute), in the direction of the question."""
        part = minutes[..., self.begin : self.end]
        return part[..., ::-1] if self.is_last else part


_HANDS_ON = ("kettle", "microwave", "toaster")
QUESTIONS: Mapping[str, Question] = {
    "first_activity": Question(_HANDS_ON, 4 * 60, DAY),
    "last_activity": Question(_HANDS_ON, 4 * 60, DAY, is_last=True),
    "meal": Question(("microwave", "toaster"), 16 * 60, 22 * 60),
}
"""Appliances with a person beside them: washing machines and dishwashers may start by a timer. Before four in the
morning it is still the evening before."""


def steps_until(on: BoolArray) -> FloatArray:
    """Return the minutes until the first on-minute, (..., minute) -> (...); NaN where there is none."""
    return np.where(on.any(axis=-1), np.argmax(on, axis=-1), np.nan)


def usual_times(steps: FloatArray, length: int) -> FloatArray:
    """Return the probability of each minute, (minute,), from the times of training days, (day,)."""
    known = steps[~np.isnan(steps)]
    distance = np.arange(length)[:, None] - known
    density = np.exp(-0.5 * (distance / _SPREAD_MINUTES) ** 2).sum(axis=1) + 1e-3
    return np.asarray(density / density.sum())


def time_of_use(usual: FloatArray, habit: FloatArray, read: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the median time of the first use and the probability that there was one, both (...).

    `usual` is the probability of the time, (minute,); `habit` and `read` are the probability that an appliance is in
    use, without and with a look at the meter, (..., minute). By Bayes' rule a first use at a minute is as much likelier
    than usual as its minute is likelier on, and the minutes before are likelier off.
    """
    before, after = (np.clip(part, 1e-6, 1.0 - 1e-6) for part in (habit, read))
    off = np.cumsum(np.log1p(-after) - np.log1p(-before), axis=-1) / _USE_MINUTES
    until = np.concatenate([np.zeros_like(off[..., :1]), off[..., :-1]], axis=-1)
    weight = np.log(usual * (1.0 - EMPTY_SHARE)) + np.log(after) - np.log(before) + until
    nothing = np.log(EMPTY_SHARE) + off[..., -1]
    top = np.maximum(weight.max(axis=-1), nothing)
    shares = np.exp(weight - top[..., None])
    total = shares.sum(axis=-1)
    median = np.argmax(np.cumsum(shares, axis=-1) >= total[..., None] / 2, axis=-1)
    return median.astype(np.float64), total / (total + np.exp(nothing - top))


def any_in_use(probabilities: Sequence[FloatArray]) -> FloatArray:
    """Return the probability that at least one appliance is on."""
    return np.asarray(1.0 - np.prod([1.0 - part for part in probabilities], axis=0))
