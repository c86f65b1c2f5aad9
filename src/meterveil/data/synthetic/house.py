"""Synthetic household: a routine drives appliances, meters read them, and some load has no sub-meter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

import numpy as np
import pandas as pd

from meterveil.data.household import FloatArray, Household, midnight
from meterveil.data.synthetic.background import Fridge, HeatingPump, Lamps, Screens, Standby
from meterveil.data.synthetic.machines import (
    Dishwasher,
    Kettle,
    Machine,
    Microwave,
    Plugged,
    Thermostatic,
    Toaster,
    WashingMachine,
    oven,
)  # fmt: skip
from meterveil.data.synthetic.routine import Day, Habit, Routine, child, hours_of, plan_days
from meterveil.data.synthetic.segments import Segments, join, minute_means
from meterveil.errors import InputError

FIRST_DAY = date(2024, 4, 15)

KETTLE = (
    Habit("wake_h", 0.3, 0.4, 1.5),
    Habit("wake_h", 3.0, 1.5, 1.2),
    Habit("lunch_h", 0.3, 0.8, 1.3),
    Habit("dinner_h", -1.0, 1.0, 1.3),
    Habit("sleep_h", -2.0, 1.0, 1.0),
)
MICROWAVE = (
    Habit("wake_h", 0.4, 0.3, 0.9),
    Habit("lunch_h", 0.0, 0.4, 1.1),
    Habit("dinner_h", 0.0, 0.6, 2.0),
    Habit("sleep_h", -1.5, 0.8, 0.5),
)
TOASTER = (Habit("wake_h", 0.4, 0.3, 0.7), Habit("lunch_h", 0.0, 0.5, 0.3))
WASHING_MACHINE = (Habit("wake_h", 2.0, 1.2, 0.45, 1.8), Habit("return_h", 1.5, 1.0, 0.4))
DISHWASHER = (Habit("dinner_h", 1.3, 0.7, 0.6), Habit("lunch_h", 1.0, 0.8, 0.12, 2.0))
OVEN = (Habit("dinner_h", -0.8, 0.4, 0.45), Habit("lunch_h", -1.0, 0.5, 0.1, 2.5))
HAIR_DRYER = (Habit("wake_h", 0.5, 0.2, 0.6), Habit("sleep_h", -1.0, 0.5, 0.2))
HOB = (Habit("dinner_h", -0.4, 0.3, 0.8), Habit("lunch_h", -0.3, 0.3, 0.3, 1.5))
CLEANING = (Habit("wake_h", 3.0, 1.5, 0.12, 2.5), Habit("return_h", 1.5, 1.0, 0.1))


class Daily(Protocol):
    """Load that is drawn day by day, in seconds of the trace."""

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Draw the power of one day; it may run past midnight."""
        ...


@dataclass(frozen=True)
class Used:
    """Machine with the habits that start it, one use at a time."""

    machine: Machine
    habits: tuple[Habit, ...]
    activity: float

    def day(self, rng: np.random.Generator, day: Day) -> Segments:
        """Draw the day's uses; one that would begin before the last has ended is left out."""
        parts, free_s = [], -np.inf
        for start_s in day.at_s(hours_of(rng, day, self.habits, self.activity)):
            use = self.machine.use(rng)
            if start_s > free_s:
                parts.append(use.delayed(float(start_s)))
                free_s = parts[-1].end_s
        return join(parts)


def household(
    rng: np.random.Generator,
    days: int = 14,
    start: date = FIRST_DAY,
    timezone: str = "Europe/London",
    name: str = "synthetic",
) -> Household:
    """Draw a household and its readings for some civil days; one generator state is one household.

    More days leave the earlier ones as they are, to the last bit.
    """
    if days < 1:
        raise InputError(f"{days} days of a synthetic household are none; ask for at least 1")
    seed = int(rng.integers(2**63))
    first, after = midnight(start, timezone), midnight(start + timedelta(days=days), timezone)
    minutes = pd.date_range(first, after, freq="min", inclusive="left", unit="s")
    routine = Routine.draw(child(seed, 2))
    plan = plan_days(seed, routine, start, days, timezone)
    busy = minute_means(join(day.presence() for day in plan), len(minutes))
    metered = {
        "fridge": Fridge.draw(child(seed, 3)).run(child(seed, 4), busy),
        **_play(seed, 5, _metered(child(seed, 6), routine.activity), plan),
    }
    other = _play(seed, 7, _unmetered(child(seed, 8), routine.activity), plan)
    freezer = _second_freezer(seed, busy)
    total_w = minute_means(join([*metered.values(), *other.values(), freezer]), len(minutes))
    return Household(
        name=name,
        minutes=minutes,
        aggregate_w=_read(child(seed, 9, 0), total_w, floor_w=0.8),
        appliances_w={
            channel: _submeter(child(seed, 9, number), load, len(minutes))
            for number, (channel, load) in enumerate(metered.items(), start=1)
        },
        notes=("synthetic: drawn from models, not measured",),
    )


def _metered(rng: np.random.Generator, activity: float) -> dict[str, Daily]:
    def used(machine: Machine, habits: tuple[Habit, ...]) -> Used:
        return Used(machine, habits, activity * rng.lognormal(0.0, 0.2))

    return {
        "kettle": used(Kettle.draw(rng), KETTLE),
        "microwave": used(Microwave.draw(rng), MICROWAVE),
        "toaster": used(Toaster.draw(rng), TOASTER),
        "washing_machine": used(WashingMachine.draw(rng), WASHING_MACHINE),
        "dishwasher": used(Dishwasher.draw(rng), DISHWASHER),
        "oven": used(oven(rng), OVEN),
        "lighting": Lamps.draw(rng, rooms=int(rng.integers(4, 8))),
        "electronics": Screens.draw(rng),
        "standby": Standby.draw(rng, 12, 35),
    }


def _unmetered(rng: np.random.Generator, activity: float) -> dict[str, Daily]:
    """Draw the load that has no sub-meter, as in real houses."""
    iron = Thermostatic(rng.uniform(1600, 2300), 0.0, 90.0, 15.0, 40.0, 1200.0)
    hob = Thermostatic(rng.uniform(1100, 1800), 0.0, 300.0, 40.0, 35.0, 900.0)
    return {
        "base": Standby.draw(rng, 30, 100),
        "lamps": Lamps.draw(rng, rooms=int(rng.integers(3, 7)), scale=0.8),
        "screens": Screens.draw(rng),
        "heating": HeatingPump(rng.uniform(60, 120)),
        "hair_dryer": Used(Plugged(rng.uniform(900, 1900), 260.0), HAIR_DRYER, activity),
        "hob": Used(hob, HOB, activity),
        "vacuum": Used(Plugged(rng.uniform(700, 1500), 800.0), CLEANING, activity),
        "iron": Used(iron, CLEANING, activity),
    }


def _play(seed: int, key: int, loads: Mapping[str, Daily], plan: list[Day]) -> dict[str, Segments]:
    return {
        name: join(load.day(child(seed, key, number, day_number), day) for day_number, day in enumerate(plan))
        for number, (name, load) in enumerate(loads.items())
    }


def _second_freezer(seed: int, busy: FloatArray) -> Segments:
    """Give about every third household a small freezer without sub-meter."""
    rng = child(seed, 10)
    if rng.random() > 0.35:
        return join([])
    freezer = Fridge(rng.uniform(55, 80), 700.0, rng.uniform(1500, 2500), 0.1, 0, 0.0, 0.0)
    return freezer.run(child(seed, 11), 0.2 * busy)


def _submeter(rng: np.random.Generator, load: Segments, minutes: int) -> FloatArray:
    """Read one appliance some seconds late, since the clocks of sub-meters and mains differ."""
    return _read(rng, minute_means(load.delayed(rng.uniform(0.0, 5.0)), minutes), floor_w=0.0)


def _read(rng: np.random.Generator, watts: FloatArray, floor_w: float) -> FloatArray:
    """Add a meter's relative and absolute noise, and round."""
    noise = rng.standard_normal((watts.size, 2))
    read: FloatArray = np.maximum(watts * (1 + 0.004 * noise[:, 0]) + floor_w * noise[:, 1], 0.0)
    return np.round(read, 1)
