"""What an attacker who knows the rule makes of a meter that is held at levels: bounds of the load, and its spikes."""

import numpy as np

from meterveil.core.arrays import BoolArray, FloatArray
from meterveil.core.battery import Battery

ALIKE_MINUTES = 2
"""Minutes on either side in which the load is taken to be the same."""
_LONGEST_SPIKE = 5
"""Minutes after which a spike on a level has ended."""
_HALF_HOUR = 15
"""Minutes on either side that tell whether a level is held."""
_HELD = 0.8
"""Share of unchanged readings above which it is."""


def load_beside_levels(shown_w: FloatArray, battery: Battery) -> FloatArray:
    """Read the minutes in which the battery does not follow; take the mean of the meter in the others.

    A short spike on a level is the rest of a load that the battery discharges against with its full power.
    Between levels the battery is empty or its budget is spent, and the meter shows the load.
    """
    unchanged = np.diff(shown_w, axis=1, prepend=shown_w[:, :1]) == 0.0
    held = np.mean(around(unchanged, _HALF_HOUR), axis=2) >= _HELD
    near_w = around(shown_w, _LONGEST_SPIKE)
    spike = held & (shown_w > np.maximum(near_w[..., 0], near_w[..., -1]))
    hidden_w = np.reshape(battery.discharge_w, (-1, 1))
    return np.where(spike, shown_w + hidden_w, np.where(held, shown_w.mean(axis=1, keepdims=True), shown_w))


def within_a_step(step_w: float, shown_w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the highest load for which a multiple of the step is shown."""
    return np.maximum(shown_w - step_w, 0.0), shown_w + step_w


def middle_w(
    step_w: float, shown_w: FloatArray, lowest_w: FloatArray, highest_w: FloatArray, minutes: int = 0
) -> FloatArray:
    """Return the middle of the loads that a reading and its neighbours allow, or else the reading alone.

    A reading that is no multiple of the step is the load: the battery did not follow.
    """
    low_w, high_w = around(lowest_w, minutes).max(axis=2), around(highest_w, minutes).min(axis=2)
    allowed_w = np.where(low_w <= high_w, low_w + high_w, lowest_w + highest_w) / 2.0
    return np.where(np.remainder(shown_w, step_w) == 0.0, allowed_w, shown_w)


def around(values: FloatArray | BoolArray, minutes: int) -> FloatArray:
    """Return the values up to so many minutes before and after each minute, (batch, minute, 2 minutes + 1)."""
    wide = np.pad(values, ((0, 0), (minutes, minutes)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(wide, 2 * minutes + 1, axis=1)
