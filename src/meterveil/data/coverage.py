"""How much of a household is known: by channel, by day, and where the long gaps lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from meterveil.data.household import FloatArray, Household, Unit

LITTLE_KNOWN = 0.2
"""A channel with a smaller share of known minutes says nothing about the days between them."""


@dataclass(frozen=True)
class Channel:
    """Describe one channel over the whole record."""

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
    """Hold one run of unknown minutes, and the channels that lack exactly these."""

    channels: tuple[str, ...]
    start: pd.Timestamp
    minutes: int


def all_channels(household: Household) -> dict[str, FloatArray]:
    """Put the aggregate before the appliances."""
    return {"aggregate": household.aggregate_w, **household.appliances_w}


def channels(household: Household) -> list[Channel]:
    """Describe the aggregate and every appliance."""
    rows = []
    for name, watts in all_channels(household).items():
        known = watts[~np.isnan(watts)]
        rows.append(
            Channel(
                name=name,
                unit=household.units.get(name, "W"),
                coverage=len(known) / len(watts),
                known_days=len(known) / 1440,
                energy_kwh_per_day=float(known.mean()) * 24 / 1000 if len(known) else float("nan"),
                notes=channel_notes(household, name),
            )
        )
    return rows


def channel_notes(household: Household, name: str) -> tuple[str, ...]:
    """Pick the notes that are about one channel, without its name."""
    prefix = f"{name}: "
    return tuple(note.removeprefix(prefix) for note in household.notes if note.startswith(prefix))


def general_notes(household: Household) -> tuple[str, ...]:
    """Pick the notes that are about no channel in particular."""
    prefixes = tuple(f"{name}: " for name in all_channels(household))
    return tuple(note for note in household.notes if not note.startswith(prefixes))


def longest_gaps(household: Household, count: int = 5) -> list[Gap]:
    """Find the longest runs of unknown minutes; channels that miss the same minutes share a gap."""
    missing: dict[tuple[pd.Timestamp, int], list[str]] = {}
    for name, watts in all_channels(household).items():
        for run in _runs(household.minutes, np.isnan(watts)):
            missing.setdefault(run, []).append(name)
    longest = sorted(missing, key=lambda run: (-run[1], run[0]))[:count]
    return [Gap(tuple(missing[run]), *run) for run in longest]


def little_known(household: Household) -> list[str]:
    """Name the channels known in too few of the minutes that the meter knows to speak for the record."""
    metered = float(np.mean(~np.isnan(household.aggregate_w)))
    return [channel.name for channel in channels(household) if 0 < channel.coverage < LITTLE_KNOWN * metered]


def silent_channels(household: Household) -> list[str]:
    """Name the channels without a single known minute."""
    return [name for name, watts in all_channels(household).items() if np.all(np.isnan(watts))]


def by_day(household: Household) -> tuple[list[date], FloatArray]:
    """Return the civil days touched by the record and the share known of each channel, (channel, day).

    The share is of the minutes that the record holds of that day, so a record may begin at noon.
    """
    midnights = household.minutes.tz_localize(None).normalize()
    starts = np.flatnonzero(np.diff(midnights.asi8, prepend=midnights.asi8[0] - 1))
    lengths = np.diff(starts, append=len(midnights))
    known = [
        np.add.reduceat(~np.isnan(watts), starts, dtype=np.int64)
        for watts in all_channels(household).values()
    ]
    return [stamp.date() for stamp in midnights[starts]], np.stack(known) / lengths


def _runs(
    minutes: pd.DatetimeIndex, missing: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> list[tuple[pd.Timestamp, int]]:
    edges = np.diff(missing.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return [(minutes[int(start)], int(end - start)) for start, end in zip(starts, ends, strict=True)]
