"""Routine of the people of a household: when they get up, leave, cook and sleep on each day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pandas as pd

from meterveil.core.arrays import BoolArray
from meterveil.data.household import FloatArray, midnight
from meterveil.data.synthetic.segments import Rng, Segments

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
LATITUDE_DEG = 51.5
TRIP_SHARE = 0.015
"""Probability that a trip of one to three days begins on a given day."""


def child(seed: int, *keys: int) -> Rng:
    """Return the generator of one purpose, so that more days or appliances do not shift its draws."""
    return np.random.default_rng([seed, *keys])


@dataclass(frozen=True)
class Routine:
    """Usual hours of a household."""

    wake_h: float
    lie_in_h: float
    sleep_h: float
    leave_h: float
    return_h: float
    works_away: float
    dinner_h: float
    activity: float

    @classmethod
    def draw(cls, rng: Rng) -> Routine:
        return cls(
            wake_h=rng.normal(6.9, 0.5),
            lie_in_h=rng.uniform(0.5, 2.0),
            sleep_h=rng.normal(22.9, 0.5),
            leave_h=rng.normal(8.4, 0.3),
            return_h=rng.normal(17.3, 0.6),
            works_away=rng.choice([0.9, 0.7, 0.3]),
            dinner_h=rng.normal(18.7, 0.5),
            activity=rng.uniform(0.8, 1.35),
        )


@dataclass(frozen=True)
class Day:
    """Hours of one civil day by the wall clock, above 24 after midnight."""

    start_s: float
    """Seconds from the start of the trace to this day's midnight."""
    length_s: float
    weekend: bool
    away: bool
    wake_h: float
    leave_h: float
    return_h: float
    lunch_h: float
    dinner_h: float
    sleep_h: float
    dawn_h: float
    dusk_h: float
    cold: float
    """Need for heating, 0 in July to 1 in January."""

    def at_s(self, hour: FloatArray) -> FloatArray:
        """Return the seconds of the trace at these wall-clock hours; clocks change at night."""
        return self.start_s + hour * HOUR_S + np.where(hour >= 3, self.length_s - DAY_S, 0.0)

    def second(self, hour: float) -> float:
        return float(self.at_s(np.array(hour)))

    def home(self, hour: FloatArray) -> BoolArray:
        out = (hour >= self.leave_h) & (hour < self.return_h)
        return (hour >= self.wake_h) & (hour < self.sleep_h) & ~out & (not self.away)

    def presence(self) -> Segments:
        """Return the stretches in which people are home and awake, with a weight of one."""
        stays = [(self.wake_h, min(self.leave_h, self.sleep_h)), (self.return_h, self.sleep_h)]
        start_h, stop_h = np.array([] if self.away else stays).reshape(-1, 2).T
        return Segments.of(self.at_s(start_h), self.at_s(stop_h), 1.0)


@dataclass(frozen=True)
class Habit:
    """Activity with a mean number of times a day, around a moment of the day."""

    anchor: str  # field of `Day`
    offset_h: float
    spread_h: float
    per_day: float
    weekend: float = 1.0
    """Factor on `per_day` at weekends."""


HABITS: dict[str, tuple[Habit, ...]] = {
    "kettle": (
        Habit("wake_h", 0.3, 0.4, 1.5),
        Habit("wake_h", 3.0, 1.5, 1.2),
        Habit("lunch_h", 0.3, 0.8, 1.3),
        Habit("dinner_h", -1.0, 1.0, 1.3),
        Habit("sleep_h", -2.0, 1.0, 1.0),
    ),
    "microwave": (
        Habit("wake_h", 0.4, 0.3, 0.9),
        Habit("lunch_h", 0.0, 0.4, 1.1),
        Habit("dinner_h", 0.0, 0.6, 2.0),
        Habit("sleep_h", -1.5, 0.8, 0.5),
    ),
    "toaster": (Habit("wake_h", 0.4, 0.3, 0.7), Habit("lunch_h", 0.0, 0.5, 0.3)),
    "washing_machine": (Habit("wake_h", 2.0, 1.2, 0.45, 1.8), Habit("return_h", 1.5, 1.0, 0.4)),
    "dishwasher": (Habit("dinner_h", 1.3, 0.7, 0.6), Habit("lunch_h", 1.0, 0.8, 0.12, 2.0)),
    "oven": (Habit("dinner_h", -0.8, 0.4, 0.45), Habit("lunch_h", -1.0, 0.5, 0.1, 2.5)),
    "hair_dryer": (Habit("wake_h", 0.5, 0.2, 0.6), Habit("sleep_h", -1.0, 0.5, 0.2)),
    "hob": (Habit("dinner_h", -0.4, 0.3, 0.8), Habit("lunch_h", -0.3, 0.3, 0.3, 1.5)),
    "cleaning": (Habit("wake_h", 3.0, 1.5, 0.12, 2.5), Habit("return_h", 1.5, 1.0, 0.1)),
}


def hours_of(rng: Rng, day: Day, habits: Sequence[Habit], activity: float) -> FloatArray:
    """Draw the wall-clock hours of these habits, in order, while people are home."""
    drawn = [np.empty(0)]
    for habit in habits:
        count = rng.poisson(habit.per_day * activity * (habit.weekend if day.weekend else 1.0))
        centre_h = getattr(day, habit.anchor) + habit.offset_h
        drawn.append(centre_h + habit.spread_h * rng.standard_normal(count))
    hours = np.sort(np.concatenate(drawn))
    return hours[day.home(hours)]


def plan_days(seed: int, routine: Routine, start: date, days: int, timezone: str) -> list[Day]:
    """Plan the days of the trace and the day before it, whose late events run into it."""
    origin = midnight(start, timezone)
    trips = child(seed, 0).random((days + 4, 2))
    nights = np.where(trips[:, 0] < TRIP_SHARE, 1 + (3 * trips[:, 1]).astype(int), 0)
    plan = []
    for number in range(days + 1):
        today = start + timedelta(days=number - 1)
        away = any(nights[number + 3 - back] > back for back in range(4))
        plan.append(_plan_day(child(seed, 1, number), routine, today, origin, away))
    return plan


def _plan_day(rng: Rng, routine: Routine, today: date, origin: pd.Timestamp, away: bool) -> Day:
    first, last = (midnight(day, str(origin.tz)) for day in (today, today + timedelta(days=1)))
    weekend = today.weekday() >= 5
    late_h = rng.normal(0.0, 0.5)
    wake_h = routine.wake_h + (routine.lie_in_h if weekend else 0.0) + 0.6 * late_h
    leave_h, return_h = _absence(rng, routine, weekend, wake_h)
    dawn_h, dusk_h = _daylight(today, first + pd.Timedelta(hours=12))
    return Day(
        start_s=(first - origin).total_seconds(),
        length_s=(last - first).total_seconds(),
        weekend=weekend,
        away=away,
        wake_h=wake_h,
        leave_h=leave_h,
        return_h=return_h,
        lunch_h=rng.normal(12.8, 0.4),
        dinner_h=max(routine.dinner_h + rng.normal(0.0, 0.8), return_h + 0.6),
        sleep_h=max(routine.sleep_h + (0.5 if weekend else 0.0) + late_h, return_h + 1.5),
        dawn_h=dawn_h + abs(rng.normal(0.0, 0.4)),
        dusk_h=dusk_h - abs(rng.normal(0.0, 0.6)),
        cold=float(np.clip(0.3 + 0.7 * np.cos(2 * np.pi * (today.timetuple().tm_yday - 20) / 365), 0, 1)),
    )


def _absence(rng: Rng, routine: Routine, weekend: bool, wake_h: float) -> tuple[float, float]:
    if not weekend and rng.random() < routine.works_away:
        leave_h = max(routine.leave_h + rng.normal(0.0, 0.2), wake_h + 0.7)
        return leave_h, max(routine.return_h + rng.normal(0.0, 0.7), leave_h + 2)
    if rng.random() < 0.55:
        leave_h = wake_h + rng.uniform(2.0, 7.0)
        return leave_h, leave_h + rng.uniform(0.7, 4.5)
    return 14.0, 14.0


def _daylight(today: date, noon: pd.Timestamp) -> tuple[float, float]:
    """Return sunrise and sunset in wall-clock hours at the latitude of London, approximately."""
    declination = -np.radians(23.44) * np.cos(2 * np.pi * (today.timetuple().tm_yday + 10) / 365)
    half_day_h = np.degrees(np.arccos(-np.tan(np.radians(LATITUDE_DEG)) * np.tan(declination))) / 15
    solar_noon_h = 12 + (noon.dst() or timedelta()).total_seconds() / HOUR_S
    return float(solar_noon_h - half_day_h), float(solar_noon_h + half_day_h)
