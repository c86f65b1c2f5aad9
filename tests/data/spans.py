"""Shares of a stretch of time, as the descriptions of the data sets state them."""

import numpy as np

from meterveil.data.minutes import Series


def known_percent(series: Series, first_minute: int, last_minute: int) -> float:
    """Per cent of the minutes from `first_minute` to `last_minute`, both included, that are known."""
    low, high = np.searchsorted(series.minute, [first_minute, last_minute + 1])
    return 100 * float(high - low) / (last_minute + 1 - first_minute)
