"""Coverage and statistics of a household, over its known minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd

from meterveil.core.arrays import BoolArray, IntArray
from meterveil.data.appliances import kind
from meterveil.data.household import FloatArray, Household, Unit
from meterveil.data.protocols import ON_THRESHOLD_W

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


OTHER_THRESHOLD_W = 50.0
"""On-threshold of an appliance that D10 does not name; D10's own value for circuits of many loads."""
PAUSE_MIN = {"dishwasher": 20, "oven": 10, "washer_dryer": 20, "washing_machine": 20}
"""Longest pause inside one event: these machines soak, drain or hold a temperature, then go on."""
LAGS_MIN = (1, 5, 15, 60, 1440)
STEP_W = 200.0
BASE_PERCENTILE = 5.0

MINUTES_PER_DAY = 1440
_KWH_PER_DAY = 24 / 1000


@dataclass(frozen=True)
class ApplianceStatistics:
    """Describe how often, how long and how strongly one appliance runs; NaN where it never did."""

    duty_cycle: float
    """Share of the minutes in which it is on."""
    events_per_day: float
    event_median_min: float
    event_p90_min: float
    event_power_w: float
    """Median over events of the mean power in the event's on-minutes."""
    energy_kwh_per_day: float


@dataclass(frozen=True)
class HouseholdStatistics:
    """Describe a household's meter reading and each of its appliances."""

    name: str
    days: float
    """Length of the known part of the aggregate."""
    energy_kwh_per_day: float
    submetered_share: float
    base_load_w: float
    peak_w: float
    step_share: float
    """Share of minutes whose reading differs from the one before by more than 200 W."""
    autocorrelation: Mapping[int, float]
    """Lag in minutes -> correlation of the aggregate with itself."""
    appliances: Mapping[str, ApplianceStatistics]

    def figures(self) -> dict[str, float]:
        """Lay everything out flat, as label -> value; an appliance's labels begin with its name."""
        house = {
            "energy (kWh/day)": self.energy_kwh_per_day,
            "sub-metered share": self.submetered_share,
            "base load (W)": self.base_load_w,
            "peak (W)": self.peak_w,
            "steps over 200 W (share)": self.step_share,
            **{f"autocorrelation, {lag} min": value for lag, value in self.autocorrelation.items()},
        }
        for name, appliance in self.appliances.items():
            for field, label in _APPLIANCE_LABELS.items():
                house[f"{name}: {label}"] = getattr(appliance, field)
        return house


_APPLIANCE_LABELS = {
    "duty_cycle": "duty cycle",
    "events_per_day": "events/day",
    "event_median_min": "event length, median (min)",
    "event_p90_min": "event length, p90 (min)",
    "event_power_w": "event power (W)",
    "energy_kwh_per_day": "energy (kWh/day)",
}


def measure(household: Household) -> HouseholdStatistics:
    """Measure one household."""
    aggregate_w = household.aggregate_w
    known = aggregate_w[~np.isnan(aggregate_w)]
    steps = np.abs(np.diff(aggregate_w))
    return HouseholdStatistics(
        name=household.name,
        days=known.size / MINUTES_PER_DAY,
        energy_kwh_per_day=_mean(known) * _KWH_PER_DAY,
        submetered_share=submetered_share(household),
        base_load_w=float(np.percentile(known, BASE_PERCENTILE)) if known.size else np.nan,
        peak_w=float(known.max()) if known.size else np.nan,
        step_share=_mean(steps[~np.isnan(steps)] > STEP_W),
        autocorrelation={lag: autocorrelation(aggregate_w, lag) for lag in LAGS_MIN},
        appliances={name: measure_appliance(name, watts) for name, watts in household.appliances_w.items()},
    )


def measure_appliance(name: str, watts: FloatArray) -> ApplianceStatistics:
    """Measure one appliance, on from its threshold upwards (D10)."""
    known = ~np.isnan(watts)
    on = known & (watts >= ON_THRESHOLD_W.get(kind(name), OTHER_THRESHOLD_W))
    starts, stops = events(on, PAUSE_MIN.get(kind(name), 0))
    lengths = stops - starts
    any_event = lengths.size > 0
    powers = [_mean(watts[start:stop][on[start:stop]]) for start, stop in zip(starts, stops, strict=True)]
    days = known.sum() / MINUTES_PER_DAY
    return ApplianceStatistics(
        duty_cycle=_mean(on[known]),
        events_per_day=lengths.size / days if days else np.nan,
        event_median_min=float(np.median(lengths)) if any_event else np.nan,
        event_p90_min=float(np.percentile(lengths, 90)) if any_event else np.nan,
        event_power_w=float(np.median(powers)) if any_event else np.nan,
        energy_kwh_per_day=_mean(watts[known]) * _KWH_PER_DAY,
    )


def events(on: BoolArray, pause_min: int = 0) -> tuple[IntArray, IntArray]:
    """Find the first minute of each event and the minute after its last; short pauses belong to the event."""
    edges = np.diff(np.concatenate([[0], on.astype(np.int64), [0]]))
    starts, stops = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    apart = starts[1:] - stops[:-1] > pause_min
    first, last = np.ones(starts.size, dtype=bool), np.ones(starts.size, dtype=bool)
    first[1:], last[:-1] = apart, apart
    return starts[first], stops[last]


def submetered_share(household: Household) -> float:
    """Add up each sub-meter's share of the energy in the minutes that it and the mains both know.

    Channels of real houses cover different minutes: where all are known together may be hardly any time.
    A channel of which little is known is left out: its few minutes do not speak for the record.
    """
    aggregate_w, share = household.aggregate_w, 0.0
    little = little_known(household)
    for watts in (watts for name, watts in household.appliances_w.items() if name not in little):
        both = ~np.isnan(aggregate_w) & ~np.isnan(watts)
        total_w = aggregate_w[both].sum()
        share += float(watts[both].sum() / total_w) if total_w else 0.0
    return share


def left_out(household: Household) -> list[str]:
    """Say in one line which sub-meters the share of the sub-metered energy leaves out."""
    little = [name for name in little_known(household) if name != "aggregate"]
    known = f"known for less than {LITTLE_KNOWN:.0%} of the record"
    return [f"{', '.join(little)}: {known}, left out of the sub-metered share"] if little else []


def autocorrelation(watts: FloatArray, lag: int) -> float:
    """Correlate a trace with itself `lag` minutes later, over the pairs of minutes that are both known."""
    early, late = watts[:-lag], watts[lag:]
    both = ~np.isnan(early) & ~np.isnan(late)
    if both.sum() < 2:
        return np.nan
    early, late = early[both] - early[both].mean(), late[both] - late[both].mean()
    scale = np.sqrt(np.sum(early**2) * np.sum(late**2))
    return float(np.sum(early * late) / scale) if scale else np.nan


def comparison_table(columns: Mapping[str, Mapping[str, float]]) -> str:
    """Render figures as a Markdown table: a row for each figure, a column for each named household.

    A figure that a household lacks is left empty.
    """
    labels = list(dict.fromkeys(label for figures in columns.values() for label in figures))
    lines = [_row("statistic", list(columns)), _row("---", ["---:"] * len(columns))]
    lines += [_row(label, [_cell(figures.get(label)) for figures in columns.values()]) for label in labels]
    return "\n".join(lines) + "\n"


def compare(households: Sequence[Household]) -> str:
    """Measure households and render them side by side."""
    return comparison_table({household.name: measure(household).figures() for household in households})


def mean_figures(households: Sequence[Household]) -> dict[str, float]:
    """Average each figure over households that have the same appliances, such as several seeds."""
    every = [measure(household).figures() for household in households]
    columns = {label: np.array([figures[label] for figures in every]) for label in every[0]}
    return {label: _mean(values[~np.isnan(values)]) for label, values in columns.items()}


def _row(label: str, cells: Sequence[str]) -> str:
    return f"| {label} | {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    if value is None or np.isnan(value):
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _mean(values: FloatArray | BoolArray) -> float:
    return float(np.mean(values)) if values.size else np.nan
