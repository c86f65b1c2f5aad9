"""States of a day that follow from uses of appliances: up, retired, meal begun (docs/behaviour.md).

A state begins at some minute and lasts until midnight. Its probability at a minute is thus the probability
that it has begun by then, and the minute at which it passes one half is the median of the time it began. An
attacker reads states as it reads appliances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.data.household import Household
from meterveil.data.protocols import STATES, on_threshold_w

HANDS_ON = ("kettle", "microwave", "toaster")
"""Appliances with a person beside them; washing machines and dishwashers may start by a timer."""
COOKING = ("microwave", "toaster")
FIRST_MINUTE = 4 * 60
"""Minute of the day before which a use belongs to the evening before."""
EVENING = (16 * 60, 22 * 60)
"""Minutes of the day between which a cooking appliance prepares the evening meal."""


def day_states(power_w: Mapping[str, FloatArray], minute_of_day: IntArray) -> FloatArray:
    """Return the states of civil days, (..., state, minute), from the power of appliances, (..., minute) each."""
    hands_on = _in_use(power_w, HANDS_ON) & (minute_of_day >= FIRST_MINUTE)
    cooking = _in_use(power_w, COOKING) & (minute_of_day >= EVENING[0]) & (minute_of_day < EVENING[1])
    up = np.maximum.accumulate(hands_on, axis=-1)
    in_use_later = np.flip(np.maximum.accumulate(np.flip(hands_on, -1), axis=-1), -1)
    states = {"up": up, "retired": up & ~in_use_later, "meal": np.maximum.accumulate(cooking, axis=-1)}
    return np.stack([states[name] for name in STATES], axis=-2).astype(np.float64)


def with_states(household: Household) -> Household:
    """Add the states as further appliances; they are unknown on days that are not wholly recorded."""
    states = np.full((len(STATES), len(household.minutes)), np.nan)
    minute_of_day = np.asarray(household.minutes.hour * 60 + household.minutes.minute, dtype=np.int64)
    for day in household.days():
        part = household.day(day)
        first = int(household.minutes.searchsorted(part.minutes[0]))
        inside = slice(first, first + len(part.minutes))
        states[:, inside] = day_states(part.appliances_w, minute_of_day[inside])
    return replace(household, appliances_w={**household.appliances_w, **dict(zip(STATES, states, strict=True))})


def _in_use(power_w: Mapping[str, FloatArray], names: tuple[str, ...]) -> BoolArray:
    """Mark the minutes in which any of these appliances is on; unknown minutes count as off."""
    on = [power_w[name] >= on_threshold_w(name) for name in names if name in power_w]
    never = np.zeros(np.shape(next(iter(power_w.values()))), dtype=np.bool_)
    return np.asarray(np.any([never, *on], axis=0))
