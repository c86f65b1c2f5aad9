"""Which battery a household needs: the veil simulated with many batteries at once, from the meter alone."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from meterveil.bench.simulation import HISTORY_DAYS, first_day, protected_minutes
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import Battery
from meterveil.core.executor import Command
from meterveil.core.rollout import View, rollout, trace_cost
from meterveil.data.household import Household
from meterveil.data.simulation import WELL_KNOWN, Setup, span
from meterveil.defenders.defence import knowing
from meterveil.defenders.veil.policy import Logged, Memory, Veil
from meterveil.errors import InputError

CAPACITIES_KWH = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
POWERS_KW = (1.0, 2.0, 3.0, 4.0, 6.0)
MOST_POWER_PER_KWH = 2.0
"""Highest power in kW for each kWh of capacity; no such home battery is sold beyond it."""
USUAL_BUDGET_KWH = 8.0

ENOUGH = 0.995
"""Smallest share of minutes that a battery must follow to be enough."""

MOST_DAYS = 30
YEAR_DAYS = 365


class Size(NamedTuple):
    """Battery as a buyer names it."""

    capacity_kwh: float
    power_kw: float
    budget_kwh: float  # that it may move a day, in and out together

    @property
    def label(self) -> str:
        """Size as in the results: kWh / kW / kWh a day."""
        return "/".join(f"{part:g}" for part in self)


class Figures(NamedTuple):
    """Figures of one battery, a day."""

    size: Size
    bits: float  # median of the days' certificates
    bits_90: float  # exceeded on a tenth of the days
    followed: float  # share of minutes
    missed_minutes: float  # mean
    moved_kwh: float
    cost: float  # SoC-neutral, wear included; negative is a saving

    @property
    def is_enough(self) -> bool:
        """Whether it follows enough minutes."""
        return self.followed >= ENOUGH


@dataclass(frozen=True)
class Plan:
    """Figures of all batteries on the same days of a household."""

    household: str
    notes: tuple[str, ...]
    setup: Setup
    """With the battery of the household."""
    history: tuple[date, ...]
    """Days that the veil learned the usual load from; empty for the profile that ships."""
    days: tuple[date, ...]
    """Simulated days, SoC carried over midnight."""
    counted: int
    """Days among them that are known well enough to count."""
    undefended_bits: float
    """Of a day without a battery, or of its protected hours, see `compressed_bits`."""
    yours: Figures
    table: tuple[Figures, ...]
    """All batteries, yours included, the smallest first."""
    protect: tuple[tuple[int, int], ...]
    """Hours that bits and missed minutes are about; empty for all day."""
    minutes: pd.DatetimeIndex
    load_w: FloatArray
    meter_w: FloatArray
    """With your battery."""

    @property
    def enough(self) -> Figures | None:
        """Smallest battery that is enough: least capacity, then power, then budget."""
        return next((row for row in self.table if row.is_enough), None)

    @property
    def best(self) -> Figures:
        """Battery that follows most minutes, the smallest of equals."""
        return max(self.table, key=lambda row: row.followed)


def sizes(budgets_kwh: Sequence[float]) -> list[Size]:
    """List the batteries to compare, with each of these daily budgets."""
    return [
        Size(capacity_kwh, power_kw, budget_kwh)
        for capacity_kwh in CAPACITIES_KWH
        for power_kw in POWERS_KW
        for budget_kwh in budgets_kwh
        if power_kw <= MOST_POWER_PER_KWH * capacity_kwh
    ]


def plan(
    household: Household,
    setup: Setup,
    start: date | None = None,
    days: int | None = None,
    on_day: Callable[[], object] | None = None,
    others: Sequence[Size] | None = None,
    veil: Veil | None = None,
) -> Plan:
    """Simulate the veil with the setup's battery and with others on the same days, SoC carried over midnight.

    By default the latest month is simulated, and the veil learns the usual load from the days before it; a
    shorter record is divided so that a third of it is history. The other batteries are `sizes` with the budget
    of the setup's and with twice as much. `on_day` is called after each day. Of a veil that protects some hours,
    bits and missed minutes are those of these hours.
    """
    first, count = span_of(household, start, days)
    recorded = household.days()
    history = tuple(day for day in recorded if day < first)[-HISTORY_DAYS:]
    simulated = tuple(first + timedelta(days=n) for n in range(count))
    part = household.between(first, first + timedelta(days=count))
    known_w = _bridged(household)
    yours = _size(setup.battery)
    every = [yours, *(size for size in (others or sizes(_budgets(yours))) if size != yours)]
    battery, each = _batteries(setup.battery, every), range(len(every))
    earlier = [household.between(history[0], first)] if history else []
    veil = veil or Veil()
    hours = protected_minutes(veil, part)
    counts = np.array([np.mean(~np.isnan(part.day(day).aggregate_w)) >= WELL_KNOWN for day in simulated])
    scenario = span(known_w, first, first + timedelta(days=count), setup.tariff)
    alike = _alike([cast(Veil, knowing(veil, earlier, replace(setup, battery=_rows(battery, [n])))) for n in each])
    found: dict[int, Figures] = {}
    power_w = np.empty(0)
    ends = _Ends(on_day, len(alike))
    for fitted, rows in alike:
        log, batch, own = _Watched(fitted, ends.day_over), scenario.repeated(len(rows)), _rows(battery, rows)
        trace = rollout(log, own, setup.library, batch, [np.random.default_rng(setup.seed) for _ in rows])
        certified = log.certificate(batch, trace)
        cost = trace_cost(own, batch, trace).soc_neutral / count
        moved_kwh = np.abs(trace.power_w).sum(axis=1) * KWH_PER_W_MINUTE / count
        bits, missed = certified.protected_bits[:, counts], certified.protected_missed[:, counts]
        followed = 1.0 - missed.sum(axis=1) / certified.protected_minutes[:, counts].sum(axis=1)
        for n, row in enumerate(rows):
            found[row] = Figures(
                every[row],
                bits=float(np.median(bits[n])),
                bits_90=float(np.quantile(bits[n], 0.9)),
                followed=float(followed[n]),
                missed_minutes=float(missed[n].mean()),
                moved_kwh=float(moved_kwh[n]),
                cost=float(cost[n]),
            )
        if 0 in rows:
            power_w = trace.power_w[rows.index(0)]
    return Plan(
        household=household.name,
        notes=household.notes,
        setup=setup,
        history=history,
        days=simulated,
        counted=int(counts.sum()),
        undefended_bits=float(hours.mean()) * compressed_bits(part.aggregate_w[hours]),
        yours=found[0],
        table=tuple(sorted(found.values(), key=lambda figures: figures.size)),
        protect=veil.rules.protect,
        minutes=part.minutes,
        load_w=part.aggregate_w,
        meter_w=part.aggregate_w + power_w,
    )


def span_of(household: Household, start: date | None, days: int | None) -> tuple[date, int]:
    """Choose the first day and the number of days to simulate; check those that are given."""
    first_day(household)
    recorded = household.days()
    if days is not None and days < 1:
        raise InputError(f"days={days} is too few; simulate 1 day or more")
    if start is None:
        spare = max(len(recorded) - min(HISTORY_DAYS, len(recorded) // 3), 1)
        count = min(days or MOST_DAYS, spare if days is None else len(recorded))
        start = recorded[-count]
    count = days or min(MOST_DAYS, (recorded[-1] - start).days + 1)
    if not recorded[0] <= start <= recorded[-1] or count > (recorded[-1] - start).days + 1:
        raise InputError(
            f"{household.name} does not record {count} days from {start} on; its whole days run from {recorded[0]} to "
            f"{recorded[-1]}: choose days among them"
        )
    part = household.between(start, start + timedelta(days=count))
    shares = [np.mean(~np.isnan(part.day(start + timedelta(days=n)).aggregate_w)) for n in range(count)]
    if max(shares) < WELL_KNOWN:
        raise InputError(
            f"{household.name}: no day from {start} on is known for {WELL_KNOWN:.0%} of its minutes; choose other days"
        )
    return start, count


def compressed_bits(load_w: FloatArray) -> float:
    """Estimate what a day of unprotected readings tells: bits of their changes in whole watts after compression."""
    watts = np.round(load_w[~np.isnan(load_w)]).astype(np.int64)
    changes = np.diff(watts, prepend=0).astype("<i4")
    planes = np.ascontiguousarray(changes.view(np.uint8).reshape(-1, 4).T).tobytes()
    packed = lzma.compress(planes, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 9}])
    return 8.0 * len(packed) / (len(watts) / 1440.0)


class _Ends:
    """Counts the ends of days of several batches, and calls `on_day` as often as there are days."""

    def __init__(self, on_day: Callable[[], object] | None, batches: int) -> None:
        self.on_day, self.batches, self.seen = on_day, batches, 0

    def day_over(self) -> None:
        self.seen += 1
        if self.on_day and self.seen % self.batches == 0:
            self.on_day()


class _Watched(Logged):
    """Log of a veil that tells when a day is over."""

    def __init__(self, veil: Veil, on_day: Callable[[], object] | None) -> None:
        super().__init__(veil)
        self.on_day = on_day

    def decide(self, view: View, memory: Memory) -> tuple[Command, Memory]:
        if self.on_day and view.minute_of_day[0] == 1439:
            self.on_day()
        return super().decide(view, memory)


def _budgets(yours: Size) -> tuple[float, float]:
    if not np.isfinite(yours.budget_kwh):
        return USUAL_BUDGET_KWH, np.inf
    return yours.budget_kwh, 2.0 * yours.budget_kwh


def _size(battery: Battery) -> Size:
    return Size(float(battery.capacity_kwh), float(battery.charge_w) / 1000.0, float(battery.budget_kwh))


def _batteries(yours: Battery, every: Sequence[Size]) -> Battery:
    """Build one battery per row; all but the size is that of yours, which is the first."""
    capacity_kwh, power_kw, budget_kwh = np.array(every).T
    discharge_w = 1000.0 * power_kw
    discharge_w[0] = yours.discharge_w
    return replace(
        yours, capacity_kwh=capacity_kwh, charge_w=1000.0 * power_kw, discharge_w=discharge_w, budget_kwh=budget_kwh
    )


def _rows(battery: Battery, rows: Sequence[int]) -> Battery:
    """Pick some of the batteries."""
    sizes_of = ("capacity_kwh", "charge_w", "discharge_w", "budget_kwh")
    return replace(battery, **{name: np.asarray(getattr(battery, name))[list(rows)] for name in sizes_of})


def _alike(veils: Sequence[Veil]) -> list[tuple[Veil, list[int]]]:
    """Put batteries together whose veils have the same rules and dice: the decoys depend on power and budget."""
    groups: dict[str, tuple[Veil, list[int]]] = {}
    for row, veil in enumerate(veils):
        groups.setdefault(repr((veil.rules, veil.dice)), (veil, []))[1].append(row)
    return list(groups.values())


def _bridged(household: Household) -> Household:
    """Bridge unknown minutes by straight lines: the gaps of a record are not those of a meter in use."""
    known = np.flatnonzero(~np.isnan(household.aggregate_w))
    watts = np.interp(np.arange(len(household.aggregate_w)), known, household.aggregate_w[known])
    return replace(household, aggregate_w=watts)
