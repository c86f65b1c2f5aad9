"""Runs a defence on days of a household and says what it did: the work behind `simulate` and `demo`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.executor import Command, Replay
from meterveil.core.rollout import Policy, View
from meterveil.data import settings
from meterveil.data.household import Household
from meterveil.data.load import SYNTHETIC, houses, load
from meterveil.data.simulation import WELL_KNOWN, Run, Setup, mask
from meterveil.data.statistics import by_day
from meterveil.data.synthetic.house import FIRST_DAY
from meterveil.defenders import defender
from meterveil.defenders.defence import Defence, find_defence
from meterveil.errors import InputError

DEMO_DAY = FIRST_DAY
_MOST_SYNTHETIC_DAYS = 366

_UNLIMITED = Battery(1e6, 1e9, 1e9, 1.0, 1.0, 0.0, 1.0, *[float("inf")] * 3)
"""Delivers whatever is asked, so that its delivery tells what was asked."""


def simulate(
    household: Household,
    defence: str,
    start: date,
    days: int,
    setup: Setup,
    on_day: Callable[[], object] | None = None,
    policy: Policy | None = None,
) -> Run:
    """Let a defence act from `start` on, SoC carried over midnight; `on_day` is told of each day done.

    What acts is the defence of this name, or `policy`, such as a trained one, which is then called so.
    """
    end = _end(household, start, days)
    watched = _Watched(policy or defender(defence), on_day)
    part = household.between(start, end)
    _, scenario, trace = mask(watched, setup, part, [np.random.default_rng(setup.seed)])
    asked_w, decoy = _asked(setup.library, watched, trace.load_w[0])
    return Run(
        household=household.name,
        aggregate=f"{household.aggregate} ({household.units.get('aggregate', 'W')})",
        notes=household.notes,
        defence=defence,
        setup=setup,
        minutes=part.minutes,
        load_w=trace.load_w[0],
        battery_w=trace.power_w[0],
        asked_w=asked_w,
        soc=trace.soc[0],
        soc_start=INITIAL_SOC,
        price=scenario.price[0, scenario.lead :],
        decoy=decoy,
    )


def demo_runs(seed: int = 0) -> list[Run]:
    """Let three defences act on the same day of the embedded household."""
    household = load(SYNTHETIC)
    setup = Setup(settings.library(), seed=seed)
    return [simulate(household, name, DEMO_DAY, 1, setup) for name in ("none", "random_equal", "flat")]


def defence_for(text: str) -> Defence:
    """Find a defence with one policy: by name, run folder or bundle."""
    defence = find_defence(text)
    if len(defence.policies) > 1:
        raise InputError(f"{text} holds {len(defence.policies)} trainings; give the folder of one of them")
    return defence


def household_for(
    path: str, house: int | None, start: date | None, days: int, submeters: bool = False, **options: Any
) -> Household:
    """Read the meter of a household, or the sum of its sub-meters (D2).

    The synthetic one is drawn as long as the days that are asked for.
    """
    if path == SYNTHETIC:
        offset = (start - FIRST_DAY).days if start else 0
        options = {**options, "days": max(14, min(offset + days, _MOST_SYNTHETIC_DAYS))}
    else:
        _check_house(path, house)
        options = options if submeters else {**options, "appliances": []}
    household = load(path, house, **options)
    return household.metered_by_submeters() if submeters else household


def first_day(household: Household) -> date:
    """Find the first whole civil day that the meter knows best part of, or the best known one."""
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


class _Watched:
    """Pass a policy's decisions on and write them down: a trace tells what was done, not what was meant."""

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


def _asked(library: Library, watched: _Watched, load_w: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the power asked for and the signature under way in every minute.

    The minutes take the place of the batch: an unlimited battery delivers what each of them was asked.
    """
    waits = np.concatenate(watched.waits)
    issued_at = np.maximum.accumulate(np.where(waits, np.arange(len(waits)), 0))
    columns = (np.concatenate(column)[issued_at] for column in zip(*watched.commands, strict=True))
    command = Command(*columns)
    replay = Replay(command, np.arange(len(waits)) - issued_at, np.ones_like(waits))
    rested = BatteryState(np.full(len(waits), INITIAL_SOC), np.zeros(len(waits)))
    _, _, asked_w = executor.tick(_UNLIMITED, library, rested, replay, load_w)
    return np.where(np.isnan(load_w), np.nan, asked_w), command.signature


def _check_house(path: str, house: int | None) -> None:
    several = houses(path) if house is None else {}
    if len(several) > 1:
        raise InputError(f"{path} has the houses {', '.join(map(str, several))}; choose one with --house")


def _end(household: Household, start: date, days: int) -> date:
    if days < 1:
        raise InputError(f"{days} days are none to simulate; give 1 or more")
    recorded = household.days()
    if not recorded or start < recorded[0] or days > (recorded[-1] - start).days + 1:
        first_recorded, last_recorded = (recorded[0], recorded[-1]) if recorded else (None, None)
        asked = f"{start}" if days == 1 else f"{days:,} days from {start} on"
        raise InputError(
            f"{household.name} does not record {asked}; its whole days run from {first_recorded} "
            f"to {last_recorded}: choose --start and --days inside"
        )
    return start + timedelta(days=days)
