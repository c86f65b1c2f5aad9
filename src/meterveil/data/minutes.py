"""Minute grid of all readers: samples become minute means, and minute means a household.

Readers only find stamps and watts in their files. Sorting, averaging, gaps and signs are handled here, so
that two readers of the same readings give the same household.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from meterveil.data.household import FloatArray, Household, Unit
from meterveil.errors import InputError

IntArray = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
"""Integers or floats, as in the file."""

MAX_FILL_MINUTES = 3
"""Longest gap that is filled with the last known minute."""

MAX_NEGATIVE_NOISE_W = 50.0
"""Noise of a sub-meter below zero; a lower reading is a reversed clamp or a broken file."""

EARLIEST_SECOND = 631_152_000
"""1990-01-01."""

LATEST_SECOND = 4_102_444_800
"""2100-01-01."""


@dataclass(frozen=True)
class Series:
    """Known minutes of one channel; absent minutes are unknown."""

    minute: IntArray
    """(known minute,) minutes since the Unix epoch (UTC), strictly increasing."""
    watts: FloatArray
    """(known minute,) mean over that minute, never NaN."""
    notes: tuple[str, ...] = ()
    """Irregularities of the samples, without the channel's name."""


def minute_means(seconds: Numbers, watts: FloatArray, where: str = "readings") -> Series:
    """Average samples of any rate over their minutes.

    Samples may be unsorted; of two with the same stamp the last counts. NaN watts are ignored. `where` names
    the source in an error.
    """
    known = ~np.isnan(watts)
    if not known.all():
        seconds, watts = seconds[known], watts[known]
    if len(seconds) == 0:
        raise InputError(f"{where}: no readings; give a file with at least one value")
    check_seconds(float(seconds.min()), float(seconds.max()), where)
    seconds, known_watts, backwards, duplicated = in_order(seconds, watts)
    minute, total, count = minute_sums(seconds, known_watts)
    return Series(minute, total / count, order_notes(backwards, duplicated))


def minute_sums(seconds: Numbers, watts: Numbers) -> tuple[IntArray, FloatArray, IntArray]:
    """Sum sorted samples by minute: return minutes, sums and counts."""
    minute = np.floor_divide(seconds, 60).astype(np.int64, copy=False)
    starts = np.append(0, np.flatnonzero(minute[1:] != minute[:-1]) + 1)
    total = np.add.reduceat(watts, starts).astype(np.float64, copy=False)
    return minute[starts], total, np.diff(starts, append=len(minute))


def check_seconds(earliest: float, latest: float, where: str) -> None:
    """Reject stamps that cannot be Unix seconds of a metered household."""
    if earliest >= EARLIEST_SECOND and latest < LATEST_SECOND:
        return
    stamp = latest if earliest >= EARLIEST_SECOND else earliest
    advice = "give Unix seconds"
    for factor, unit in ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        if EARLIEST_SECOND <= stamp / factor < LATEST_SECOND:
            advice = f"these look like {unit}: divide them by {factor:,.0f}"
    raise InputError(f"{where}: the stamp {stamp:.0f} is not between the years 1990 and 2100; {advice}")


def fill_short_gaps(series: Series, max_fill_minutes: int = MAX_FILL_MINUTES) -> Series:
    """Fill gaps of at most `max_fill_minutes` with the minute before, and note how many."""
    if len(series.minute) == 0:
        return series
    steps = np.diff(series.minute, append=series.minute[-1] + 1)
    repeats = np.where(steps <= max_fill_minutes + 1, steps, 1)
    filled = int(repeats.sum()) - len(repeats)
    if filled == 0:
        return series
    starts = np.cumsum(repeats) - repeats
    offset = np.arange(len(repeats) + filled) - np.repeat(starts, repeats)
    note = f"{filled:,} minutes in gaps of up to {max_fill_minutes} filled with the minute before"
    return Series(
        np.repeat(series.minute, repeats) + offset, np.repeat(series.watts, repeats), (*series.notes, note)
    )


def to_household(
    name: str,
    aggregate: Series | None,
    appliances: Mapping[str, Series],
    timezone: str,
    units: Mapping[str, Unit] | None = None,
    notes: tuple[str, ...] = (),
    max_fill_minutes: int = MAX_FILL_MINUTES,
) -> Household:
    """Put channels on the consecutive minutes that the aggregate spans, short gaps filled.

    Without an aggregate the minutes span the appliances and the sum of the sub-meters takes its place (D2).
    """
    if "aggregate" in appliances:
        raise InputError(
            f"{name}: a sub-meter is named aggregate, as the whole house's reading is; give it another name"
        )
    appliances = {key: _without_noise(f"{name}: {key}", series) for key, series in appliances.items()}
    given = appliances if aggregate is None else {"aggregate": _noting_export(aggregate), **appliances}
    if not given:
        raise InputError(f"{name}: neither an aggregate nor an appliance; give at least one channel")
    first, last = _span(name, given if aggregate is None else {"aggregate": aggregate})
    channels = {key: fill_short_gaps(series, max_fill_minutes) for key, series in given.items()}
    watts = {key: _on_grid(f"{name}: {key}", series, first, last) for key, series in channels.items()}
    household = Household(
        name=name,
        minutes=minute_index(first, last, timezone),
        aggregate_w=watts.pop("aggregate", np.full(last + 1 - first, np.nan)),
        appliances_w=watts,
        units=dict(units or {}),
        notes=(*notes, *(f"{key}: {note}" for key, series in channels.items() for note in series.notes)),
    )
    return household.metered_by_submeters() if aggregate is None else household


def minute_index(first_minute: int, last_minute: int, timezone: str) -> pd.DatetimeIndex:
    """Return the minutes from `first_minute` to `last_minute` since the epoch, inclusive, in a time zone."""
    seconds = np.arange(first_minute, last_minute + 1, dtype=np.int64) * 60
    return pd.DatetimeIndex(seconds.astype("datetime64[s]"), tz="UTC").tz_convert(timezone)


def in_order(seconds: Numbers, watts: Numbers) -> tuple[Numbers, Numbers, int, int]:
    """Sort samples by stamp and keep the last of each; count the steps back and the dropped samples."""
    if np.all(seconds[1:] > seconds[:-1]):
        return seconds, watts, 0, 0
    backwards = int(np.sum(seconds[1:] < seconds[:-1]))
    if backwards:
        order = np.argsort(seconds, kind="stable")
        seconds, watts = seconds[order], watts[order]
    last = np.append(seconds[1:] > seconds[:-1], True)
    if last.all():
        return seconds, watts, backwards, 0
    return seconds[last], watts[last], backwards, int(np.sum(~last))


def order_notes(backwards: int, duplicated: int) -> tuple[str, ...]:
    """Note steps back in time and replaced samples."""
    notes = []
    if backwards:
        notes.append(f"stamps went back in time {backwards:,} times: sorted")
    if duplicated:
        notes.append(f"{duplicated:,} samples had the stamp of another: the last one counts")
    return tuple(notes)


def _without_noise(where: str, series: Series) -> Series:
    negative = series.watts < 0
    if not negative.any():
        return series
    lowest = series.watts.min()
    if lowest < -MAX_NEGATIVE_NOISE_W:
        raise InputError(
            f"{where}: {lowest:,.0f} W is negative; an appliance draws 0 W or more "
            f"(noise down to -{MAX_NEGATIVE_NOISE_W:.0f} W is accepted): check the sign of the channel"
        )
    note = f"{int(negative.sum()):,} slightly negative minutes set to 0 W"
    return replace(series, watts=np.maximum(series.watts, 0.0), notes=(*series.notes, note))


def _noting_export(aggregate: Series) -> Series:
    count = int(np.sum(aggregate.watts < 0))
    if count == 0:
        return aggregate
    return replace(aggregate, notes=(*aggregate.notes, f"{count:,} minutes are negative: feed-in, or noise"))


def _span(name: str, channels: Mapping[str, Series]) -> tuple[int, int]:
    for key, series in channels.items():
        if len(series.minute) == 0:
            raise InputError(f"{name}: {key} is all gaps; leave it out or give a file with readings")
    return (
        int(min(series.minute[0] for series in channels.values())),
        int(max(series.minute[-1] for series in channels.values())),
    )


def _on_grid(where: str, series: Series, first: int, last: int) -> FloatArray:
    watts = np.full(last + 1 - first, np.nan)
    low, high = np.searchsorted(series.minute, [first, last + 1])
    if low == high:
        raise InputError(f"{where} is all gaps in the minutes that the aggregate spans; leave it out")
    watts[series.minute[low:high] - first] = series.watts[low:high]
    return watts
