"""From a household's days and a tariff to the scenario that the core runs on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pandas as pd

from meterveil.core.arrays import IntArray
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import Tariff
from meterveil.data.household import Household
from meterveil.errors import InputError

LEAD_MINUTES = 60
"""Minutes before the first day that windows may look back on."""


def span(household: Household, start: date, end: date, tariff: Tariff, lead: int = LEAD_MINUTES) -> Scenario:
    """Make one row of the civil days from `start` up to, not including, `end`: SoC is carried over (D16)."""
    part = household.between(start, end)
    if np.all(np.isnan(part.aggregate_w)):
        raise InputError(f"{household.name}: no reading at all from {start} to {end}; choose other days")
    first = int(household.minutes.searchsorted(part.minutes[0]))
    before_w = household.aggregate_w[max(first - lead, 0) : first]
    load_w = np.concatenate([np.full(lead - len(before_w), part.aggregate_w[0]), before_w, part.aggregate_w])
    begin = part.minutes[0] - pd.Timedelta(minutes=lead)
    minute_of_day, day, utc_minute = _calendar(pd.date_range(begin, periods=len(load_w), freq="min"))
    acting_price = tariff.price(minute_of_day[lead:], utc_minute[lead:])
    return Scenario(
        load_w=load_w[None, :],
        minute_of_day=minute_of_day[None, :],
        day=day[None, :],
        price=np.concatenate([np.full(lead, acting_price[0]), acting_price])[None, :],
        minutes=np.array([len(part.minutes)], dtype=np.int64),
        lead=lead,
    )


def _calendar(minutes: pd.DatetimeIndex) -> tuple[IntArray, IntArray, IntArray]:
    """Return the local minute of the day, the number of the local civil day and the UTC minute."""
    minute_of_day = np.asarray(minutes.hour * 60 + minutes.minute, dtype=np.int64)
    midnights = minutes.tz_localize(None).normalize()
    day = np.asarray((midnights - pd.Timestamp("1970-01-01")) // pd.Timedelta(days=1), dtype=np.int64)
    return minute_of_day, day, np.asarray(minutes.as_unit("s").asi8 // 60, dtype=np.int64)


def days(household: Household, wanted: Sequence[date], tariff: Tariff, lead: int = LEAD_MINUTES) -> Scenario:
    """Make one row of each civil day: every day is an episode of its own (D6)."""
    return stack([span(household, day, day + timedelta(days=1), tariff, lead) for day in wanted])
