"""Simulation of a household with a battery: scenarios of its days, masked meters, records of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from meterveil.core import tariff
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery
from meterveil.core.certificate import Certificate
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy, Trace, rollout
from meterveil.core.scenario import Scenario, stack
from meterveil.core.tariff import PAPER_TARIFF, Tariff
from meterveil.data.household import AGGREGATE, Household, midnight
from meterveil.errors import InputError

WELL_KNOWN = 0.9
"""Smallest share of known minutes of a day with meaningful figures."""

LEAD_MINUTES = 60
"""Minutes before the first day that windows may look back on."""

_SAME_W = 1e-3
"""A delivery this close to its request was not clipped."""


@dataclass(frozen=True)
class Resolution:
    """What a meter shows: the mean of each interval, repeated over its minutes, in steps of some watts."""

    minutes: int = 1
    step_w: float = 0.0
    """Step of the readings; 0 for exact ones."""

    def __post_init__(self) -> None:
        if self.minutes < 1 or 60 % self.minutes:
            raise InputError(f"minutes={self.minutes} does not divide an hour; use 1, 5, 10, 15, 30 or 60")

    def shown(self, meter_w: FloatArray) -> FloatArray:
        """Return the readings of whole civil days, (..., minute); an interval is the mean of its known minutes."""
        if self.minutes > 1:
            intervals = meter_w.reshape(*meter_w.shape[:-1], -1, self.minutes)
            known = ~np.isnan(intervals)
            total_w = np.where(known, intervals, 0.0).sum(axis=-1, keepdims=True)
            mean_w = total_w / np.where(known.any(axis=-1), known.sum(axis=-1), np.nan)[..., None]
            meter_w = np.broadcast_to(mean_w, intervals.shape).reshape(meter_w.shape)
        return np.round(meter_w / self.step_w) * self.step_w if self.step_w else meter_w


@dataclass(frozen=True)
class Setup:
    """Settings of a simulation beside household and defence."""

    library: Library
    battery: Battery = field(default_factory=Battery)
    tariff: Tariff = PAPER_TARIFF
    seed: int = 0
    resolution: Resolution = Resolution()
    """Readings that the meter shows of the simulated minutes."""
    soc_start: float = INITIAL_SOC
    """State of charge before the first minute."""


def span(household: Household, start: date, end: date, tariff: Tariff, lead: int = LEAD_MINUTES) -> Scenario:
    """Return one row of the civil days from `start` up to, not including, `end`, SoC carried over (D16)."""
    part = household.between(start, end)
    if np.all(np.isnan(part.aggregate_w)):
        raise InputError(f"{household.name}: no reading at all from {start} to {end}; {part.remedy()}")
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


def episodes(household: Household, wanted: Sequence[date], tariff: Tariff, lead: int = LEAD_MINUTES) -> Scenario:
    """Return one row for each civil day: every day is an episode of its own (D6)."""
    return stack([span(household, day, day + timedelta(days=1), tariff, lead) for day in wanted])


class Masked(NamedTuple):
    """Days of a household with a defence at work, once for each generator."""

    households: tuple[Household, ...]
    """Masked meter as `aggregate_w`, with the true appliances, and the true load under `AGGREGATE`."""
    scenario: Scenario
    trace: Trace


def mask(policy: Policy, setup: Setup, household: Household, rngs: Sequence[np.random.Generator]) -> Masked:
    """Run a policy over a household's whole days, once with each generator, SoC carried over midnight."""
    recorded = household.days()
    if not recorded:
        raise InputError(f"{household.name} records no whole day; a defence is simulated over whole days")
    end = recorded[-1] + timedelta(days=1)
    part = household.between(recorded[0], end)
    scenario = span(household, recorded[0], end, setup.tariff).rows([0] * len(rngs))
    trace = rollout(policy, setup.battery, setup.library, scenario, rngs, setup.soc_start)
    truth = {**part.appliances_w, AGGREGATE: part.aggregate_w}
    shown_w = setup.resolution.shown(trace.meter_w)
    masked = (replace(part, aggregate_w=meter_w.copy(), appliances_w=truth) for meter_w in shown_w)
    return Masked(tuple(masked), scenario, trace)


@dataclass(frozen=True)
class Run:
    """Record of a defence at work, one value for each minute of whole civil days."""

    household: str
    aggregate: str
    """Source of the load: "mains (VA)" or "submeters (W)" (D2)."""
    notes: tuple[str, ...]
    """Notes of the reader of the load."""
    defence: str
    setup: Setup
    minutes: pd.DatetimeIndex
    load_w: FloatArray
    """Load of the household; NaN where unknown."""
    battery_w: FloatArray
    asked_w: FloatArray
    """Battery power that the defence requested; NaN where the load is unknown."""
    soc: FloatArray
    """At the end of each minute."""
    soc_start: float
    price: FloatArray
    decoy: IntArray
    """Row of the library that is replayed; the library's size where none is."""
    certificate: Certificate | None = None
    """Most that each day's readings can tell, (1, day); None for a defence without a certificate (D18)."""

    @property
    def meter_w(self) -> FloatArray:
        return self.load_w + self.battery_w

    @property
    def clipped(self) -> BoolArray:
        """Minutes in which the battery did not deliver the whole request."""
        return np.abs(self.asked_w - self.battery_w) > _SAME_W

    def days(self) -> list[date]:
        first, last = self.minutes[0].date(), self.minutes[-1].date()
        return [first + timedelta(days=n) for n in range((last - first).days + 1)]

    def day(self, day: date) -> Run:
        """Cut out one civil day, with the SoC that it began with."""
        timezone = str(self.minutes.tz)
        bounds = (midnight(begin, timezone) for begin in (day, day + timedelta(days=1)))
        first, last = (int(self.minutes.searchsorted(bound)) for bound in bounds)
        inside = slice(first, last)
        arrays = ("load_w", "battery_w", "asked_w", "soc", "price", "decoy")
        cut: dict[str, Any] = {name: getattr(self, name)[inside] for name in arrays}
        soc_start = float(self.soc[first - 1]) if first else self.soc_start
        if self.certificate:
            number = self.days().index(day)
            cut["certificate"] = Certificate(*(part[:, [number]] for part in self.certificate))
        return replace(self, minutes=self.minutes[inside], soc_start=soc_start, **cut)

    def doubts(self) -> tuple[str, ...]:
        """Warn in one line about days with too few known minutes."""
        shares = {day: float(np.mean(~np.isnan(self.day(day).load_w))) for day in self.days()}
        little = [day for day, share in shares.items() if share < WELL_KNOWN]
        if not little:
            return ()
        share = f"{WELL_KNOWN:.0%} of their minutes"
        doubt = f"of {len(shares)} days, {len(little)} are known for less than {share}"
        if len(little) == 1:
            doubt = f"only {shares[little[0]]:.1%} of the minutes of {little[0]} are known"
        return (f"{doubt}; the battery idles in unknown minutes",)

    def decoy_names(self) -> pd.Series[str]:
        """Name the appliance that each minute imitates; missing where no decoy runs."""
        names = np.array([*self.setup.library.names, None], dtype=object)
        return pd.Series(names[self.decoy], dtype="string")

    def budget_left_kwh(self) -> FloatArray:
        """Return the energy that may still be moved today, at the end of each minute."""
        moved_kwh = pd.Series(np.abs(self.battery_w) * KWH_PER_W_MINUTE)
        today = moved_kwh.groupby(np.asarray(self.minutes.date)).cumsum().to_numpy()
        return np.maximum(self.setup.battery.budget_kwh - today, 0.0)

    def table(self) -> pd.DataFrame:
        names = ("load_w", "battery_w", "meter_w", "soc", "price")
        numbers = {name: getattr(self, name) for name in names}
        return pd.DataFrame({"minute": self.minutes, **numbers, "decoy": self.decoy_names()})


class Figures(NamedTuple):
    """Totals of a run."""

    known: float  # share of minutes with a reading
    throughput_kwh: float  # in and out together
    soc_end: float
    energy_cost: float
    degradation_cost: float
    total_cost: float
    soc_neutral_cost: float
    missed_minutes: int  # in which the battery could not do what the defence asked for; of a veil also unknown ones
    rms_w: float  # root mean square of the battery power: how far the meter is from the truth
    certified_bits: float | None  # most that a day of readings tells, median of the days; None without a certificate
    protected_bits: float | None  # the same of the protected hours, which are the whole day unless hours are named


def figures(run: Run) -> Figures:
    """Return the totals of a run, or of one day of it."""
    battery = run.setup.battery
    ends = np.array([run.soc_start]), run.soc[-1:]
    cost = tariff.day_cost(battery, run.price[None], run.battery_w[None], *ends)
    return Figures(
        known=float(np.mean(~np.isnan(run.load_w))),
        throughput_kwh=float(np.sum(np.abs(run.battery_w)) * KWH_PER_W_MINUTE),
        soc_end=float(run.soc[-1]),
        energy_cost=float(cost.energy[0]),
        degradation_cost=float(cost.degradation[0]),
        total_cost=float(cost.total[0]),
        soc_neutral_cost=float(cost.soc_neutral[0]),
        missed_minutes=int(np.sum(run.certificate.protected_missed if run.certificate else run.clipped)),
        rms_w=float(np.sqrt(np.mean(run.battery_w**2))),
        certified_bits=float(np.median(run.certificate.bits)) if run.certificate else None,
        protected_bits=float(np.median(run.certificate.protected_bits)) if run.certificate else None,
    )
