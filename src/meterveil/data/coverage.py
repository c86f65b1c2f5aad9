"""Coverage of a household: known minutes of each channel, gaps and notes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from meterveil.core.arrays import BoolArray, FloatArray, runs
from meterveil.data.household import AGGREGATE, Household, Unit

LITTLE_KNOWN = 0.2
"""Smallest share of known minutes for which a channel represents the whole record."""

MINUTES_PER_DAY = 1440


@dataclass(frozen=True)
class Channel:
    """Coverage and energy of one channel over the whole record."""

    name: str
    unit: Unit
    coverage: float
    """Share of the minutes that are known, 0..1."""
    known_days: float
    """Length of the known minutes together."""
    energy_kwh_per_day: float
    """Over the known minutes, NaN where there is none; kVAh for a channel in VA."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Gap:
    """Run of unknown minutes, with the channels that lack exactly these."""

    channels: tuple[str, ...]
    start: pd.Timestamp
    minutes: int


def all_channels(household: Household) -> dict[str, FloatArray]:
    """Return the aggregate and all appliances by name."""
    return {AGGREGATE: household.aggregate_w, **household.appliances_w}


def channels(household: Household) -> list[Channel]:
    """Describe the aggregate and every appliance."""
    rows = []
    for name, watts in all_channels(household).items():
        known, prefix = watts[~np.isnan(watts)], f"{name}: "
        rows.append(
            Channel(
                name=name,
                unit=household.units.get(name, "W"),
                coverage=len(known) / len(watts),
                known_days=len(known) / MINUTES_PER_DAY,
                energy_kwh_per_day=_mean(known) * 24 / 1000,
                notes=tuple(note.removeprefix(prefix) for note in household.notes if note.startswith(prefix)),
            )
        )
    return rows


def general_notes(household: Household) -> tuple[str, ...]:
    """Return the notes that are not about one channel."""
    prefixes = tuple(f"{name}: " for name in all_channels(household))
    return tuple(note for note in household.notes if not note.startswith(prefixes))


def longest_gaps(household: Household, count: int = 5) -> list[Gap]:
    """Find the longest runs of unknown minutes; channels that miss the same minutes share a gap."""
    missing: dict[tuple[int, int], list[str]] = {}
    for name, watts in all_channels(household).items():
        for start, stop in zip(*runs(np.isnan(watts)), strict=True):
            missing.setdefault((int(start - stop), int(start)), []).append(name)
    longest = sorted(missing)[:count]
    return [Gap(tuple(missing[run]), household.minutes[run[1]], -run[0]) for run in longest]


def silent_channels(household: Household) -> list[str]:
    """Name the channels without a single known minute."""
    return [name for name, watts in all_channels(household).items() if np.all(np.isnan(watts))]


def by_day(household: Household) -> tuple[list[date], FloatArray]:
    """Return the civil days of the record and the known share of each channel, (channel, day).

    The share is of the minutes that the record holds of that day, so a record may begin at noon.
    """
    midnights = household.minutes.tz_localize(None).normalize()
    starts = np.flatnonzero(np.diff(midnights.asi8, prepend=midnights.asi8[0] - 1))
    lengths = np.diff(starts, append=len(midnights))
    every = all_channels(household).values()
    known = [np.add.reduceat(~np.isnan(watts), starts, dtype=np.int64) for watts in every]
    return [stamp.date() for stamp in midnights[starts]], np.stack(known) / lengths


def _mean(values: FloatArray | BoolArray) -> float:
    return float(np.mean(values)) if values.size else np.nan
