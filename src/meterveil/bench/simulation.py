"""Simulation of a defence on days of a household: the work of `simulate` and of the demo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState
from meterveil.core.certificate import Certificate, spoken_hours
from meterveil.core.decoys import Library
from meterveil.core.executor import Command, Replay
from meterveil.core.rollout import Policy, View
from meterveil.data.coverage import by_day
from meterveil.data.household import Aggregate, Household
from meterveil.data.load import SYNTHETIC, load
from meterveil.data.simulation import WELL_KNOWN, Run, Setup, mask
from meterveil.data.synthetic import FIRST_DAY
from meterveil.defenders import defender
from meterveil.defenders.defence import Defence, find_defence, knowing
from meterveil.defenders.veil.policy import Logged, Veil
from meterveil.errors import InputError

_MOST_SYNTHETIC_DAYS = 366
HISTORY_DAYS = 14
"""Days before the simulated ones that the veil learns the usual load from, where they are recorded."""

_UNLIMITED = Battery(1e6, 1e9, 1e9, 1.0, 1.0, 0.0, 1.0, *[float("inf")] * 3)
"""Battery without limits: what it delivers is what was requested."""


def simulate(
    household: Household,
    defence: str,
    start: date,
    days: int,
    setup: Setup,
    on_day: Callable[[], object] | None = None,
    policy: Policy | None = None,
    rng: np.random.Generator | None = None,
) -> Run:
    """Run a defence on `days` civil days from `start`, SoC carried over midnight.

    `on_day` is called after each day. Without a `policy` it is the defence of this name, without a generator
    that of the setup's seed.
    """
    end = _end(household, start, days)
    earlier = [household.between(household.days()[0], start)] if household.days()[0] < start else []
    acting = knowing(policy or defender(defence), earlier, setup)
    logged = Logged(acting) if isinstance(acting, Veil) else None
    recorder = _Recorder(logged or acting, on_day)
    part = household.between(start, end)
    if logged:
        protected_minutes(logged.veil, part)
    _, scenario, trace = mask(recorder, setup, part, [rng or np.random.default_rng(setup.seed)])
    requested_w, decoy = _requested(setup.library, recorder, trace.load_w[0])
    certified = logged.certificate(scenario, trace) if logged else None
    return Run(
        household=household.name,
        aggregate=f"{household.aggregate} ({household.units.get('aggregate', 'W')})",
        notes=(*household.notes, *(_veil_notes(logged.veil, certified) if logged and certified else ())),
        defence=defence,
        setup=setup,
        minutes=part.minutes,
        load_w=trace.load_w[0],
        battery_w=trace.power_w[0],
        asked_w=requested_w,
        soc=trace.soc[0],
        soc_start=setup.soc_start,
        price=scenario.price[0, scenario.lead :],
        decoy=decoy,
        certificate=certified,
    )


def protected_minutes(veil: Veil, part: Household) -> BoolArray:
    """Mark the minutes that a veil protects, (minute,); raise an error if none of them has a reading."""
    is_protected = veil.rules.protected(60 * part.minutes.hour.to_numpy() + part.minutes.minute.to_numpy())
    if np.isnan(part.aggregate_w[is_protected]).all():
        where = "the protected hours; choose other hours or days" if veil.rules.protect else "these days; choose others"
        raise InputError(f"{part.name} has no reading in {where}")
    return is_protected


def _veil_notes(veil: Veil, certified: Certificate) -> Iterator[str]:
    """Say which days the bits are of, what the veil knew of the household, and which hours it protects."""
    is_alone = certified.bits.size == 1
    days = "this day alone; other days may tell more" if is_alone else "each day; the row `all` has the median"
    yield f"bits are counted for {days}"
    if veil.record is None:
        yield (
            "no whole day is known before the first one, so the veil starts from a usual week that ships with "
            "meterveil; it learns with every half hour"
        )
    if hours := spoken_hours(veil.rules.protect):
        yield (
            f"the battery protects {hours} and rests in the other hours, which show the load; bits are those that the "
            "readings of the protected hours add to them (all readings of a day, the load of the other hours "
            f"included, take {np.median(certified.bits):,.0f} bits)"
        )


def defence_for(text: str) -> Defence:
    """Find a defence with one policy: by name, run folder or bundle."""
    defence = find_defence(text)
    if len(defence.policies) > 1:
        raise InputError(f"{text} holds {len(defence.policies)} trainings; give the folder of one of them")
    return defence


def household_for(
    path: str, house: int | None, start: date | None, days: int, aggregate: Aggregate = "mains", **options: Any
) -> Household:
    """Read the load of a household from this source (D2).

    The synthetic household is drawn long enough for these days.
    """
    if path == SYNTHETIC:
        offset = (start - FIRST_DAY).days if start else 0
        options = {**options, "days": max(14, min(offset + days, _MOST_SYNTHETIC_DAYS))}
    elif aggregate == "mains":
        options = {**options, "appliances": []}
    return load(path, house, **options).metered_by(aggregate)


def first_day(household: Household) -> date:
    """Return the first civil day with few missing minutes, or else the one with fewest."""
    days = household.days()
    if not days:
        raise InputError(
            f"{household.name} records no civil day from midnight to midnight; "
            f"it holds {household.minutes[0]:%Y-%m-%d %H:%M} to {household.minutes[-1]:%Y-%m-%d %H:%M}: "
            "give a longer record"
        )
    touched, shares = by_day(household.select([]))
    known = dict(zip(touched, shares[0], strict=True))
    return next((day for day in days if known[day] >= WELL_KNOWN), max(days, key=known.__getitem__))


def day_with_history(household: Household, days: int) -> date:
    """Return the first well-known day with a fortnight before it, from which on so many days are recorded.

    In a shorter record it is the latest such day, so that the veil knows as much of the household as there is.
    """
    earliest, last = first_day(household), household.days()[-1] - timedelta(days=days - 1)
    touched, shares = by_day(household.select([]))
    known = {day for day, share in zip(touched, shares[0], strict=True) if share >= WELL_KNOWN}
    starts = [day for day in household.days() if day in known and earliest <= day <= last] or [earliest]
    return next((day for day in starts if day >= earliest + timedelta(days=HISTORY_DAYS)), starts[-1])


class _Recorder:
    """Policy that records its commands: a trace holds what the battery did, not what was requested."""

    def __init__(self, policy: Policy, on_day: Callable[[], object] | None) -> None:
        self.policy = policy
        self.on_day = on_day
        self.commands: list[Command] = []
        self.waits: list[BoolArray] = []

    def initial(self, batch: int) -> Any:
        return self.policy.initial(batch)

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        command, memory = self.policy.decide(view, memory)
        self.commands.append(command)
        self.waits.append(view.waits)
        if self.on_day and view.minute_of_day[0] == 1439:
            self.on_day()
        return command, memory


def _requested(library: Library, recorder: _Recorder, load_w: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the requested power and the running signature of every minute.

    All minutes go through the executor as one batch, with a battery that delivers whatever is requested.
    """
    waits = np.concatenate(recorder.waits)
    issued_at = np.maximum.accumulate(np.where(waits, np.arange(len(waits)), 0))
    columns = (np.concatenate(column)[issued_at] for column in zip(*recorder.commands, strict=True))
    command = Command(*columns)
    replay = Replay(command, np.arange(len(waits)) - issued_at, np.ones_like(waits))
    rested = BatteryState(np.full(len(waits), 0.5), np.zeros(len(waits)))
    _, _, requested_w = executor.tick(_UNLIMITED, library, rested, replay, load_w)
    return np.where(np.isnan(load_w), np.nan, requested_w), command.signature


def _end(household: Household, start: date, days: int) -> date:
    if days < 1:
        raise InputError(f"days={days} is too few; simulate 1 day or more")
    recorded = household.days()
    if not recorded or start < recorded[0] or days > (recorded[-1] - start).days + 1:
        first, last = (recorded[0], recorded[-1]) if recorded else (None, None)
        wanted = f"{start}" if days == 1 else f"{days:,} days from {start} on"
        raise InputError(
            f"{household.name} does not record {wanted}; its whole days run from {first} to {last}: "
            "choose days among them"
        )
    return start + timedelta(days=days)
