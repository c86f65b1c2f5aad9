"""Synthetic household, drawn from a seed, that resembles measured ones, and the signatures that ship."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial

import numpy as np
import pandas as pd

from meterveil.core.decoys import Library
from meterveil.data.household import FloatArray, Household, midnight
from meterveil.data.synthetic import appliances as models
from meterveil.data.synthetic.routine import HABITS, Day, Habit, Routine, child, hours_of, plan_days
from meterveil.data.synthetic.segments import MINUTE_S, Rng, Segments, chain, interval_means, join, minute_means
from meterveil.errors import InputError

FIRST_DAY = date(2024, 4, 15)
SHORTEST_MIN, LONGEST_MIN = 5, 35
MEDIAN_RANGE_W = (300.0, 2500.0)
TYPICAL_LONGEST_MIN, TYPICAL_LOWEST_W = 10, 1500.0
PER_APPLIANCE = 2
SHIPPED_SEED = 0

Use = Callable[[Rng], Segments]
"""Draws the power of one use, from second zero."""
Daily = Callable[[Rng, Day], Segments]
"""Draws the power of one day, in seconds of the trace; it may run past midnight."""


def household(
    rng: Rng, days: int = 14, start: date = FIRST_DAY, timezone: str = "Europe/London", name: str = "synthetic"
) -> Household:
    """Draw a household and its readings for some civil days; one generator state is one household.

    More days leave the earlier ones as they are, to the last bit.
    """
    seed = int(rng.integers(2**63))
    minutes, metered, load = _draw(seed, days, start, timezone)
    return Household(
        name=name,
        minutes=minutes,
        aggregate_w=_read(child(seed, 9, 0), minute_means(load, len(minutes)), floor_w=0.8),
        appliances_w={
            channel: _submeter(child(seed, 9, number), part, len(minutes))
            for number, (channel, part) in enumerate(metered.items(), start=1)
        },
        notes=("synthetic: drawn from models, not measured",),
    )


def load_by_second(rng: Rng, days: int = 1, start: date = FIRST_DAY, timezone: str = "Europe/London") -> FloatArray:
    """Draw the load of the same household at one second, (second,), without the noise of a meter."""
    minutes, _, load = _draw(int(rng.integers(2**63)), days, start, timezone)
    return interval_means(load, len(minutes) * int(MINUTE_S), 1.0)


def _draw(seed: int, days: int, start: date, timezone: str) -> tuple[pd.DatetimeIndex, dict[str, Segments], Segments]:
    """Return the minutes of the record, the metered appliances and the whole load."""
    if days < 1:
        raise InputError(f"days={days} is too few; use 1 or more")
    first, after = midnight(start, timezone), midnight(start + timedelta(days=days), timezone)
    minutes = pd.date_range(first, after, freq="min", inclusive="left", unit="s")
    routine = Routine.draw(child(seed, 2))
    plan = plan_days(seed, routine, start, days, timezone)
    busy = minute_means(join(day.presence() for day in plan), len(minutes))
    metered = {
        "fridge": models.Fridge.draw(child(seed, 3)).run(child(seed, 4), busy),
        **_play(seed, 5, _metered(child(seed, 6), routine.activity), plan),
    }
    other = _play(seed, 7, _unmetered(child(seed, 8), routine.activity), plan)
    freezer = _second_freezer(seed, busy)
    return minutes, metered, join([*metered.values(), *other.values(), freezer])


def _metered(rng: Rng, activity: float) -> dict[str, Daily]:
    def used(name: str, use: Use) -> Daily:
        return partial(_uses, use, HABITS[name], activity * rng.lognormal(0.0, 0.2))

    return {
        "kettle": used("kettle", models.Kettle.draw(rng).use),
        "microwave": used("microwave", models.Microwave.draw(rng).use),
        "toaster": used("toaster", models.Toaster.draw(rng).use),
        "washing_machine": used("washing_machine", models.WashingMachine.draw(rng).use),
        "dishwasher": used("dishwasher", models.Dishwasher.draw(rng).use),
        "oven": used("oven", models.Thermostatic.draw(rng).use),
        "lighting": models.Lamps.draw(rng, rooms=int(rng.integers(4, 8))).day,
        "electronics": models.Screens.draw(rng).day,
        "standby": partial(models.standby_day, rng.uniform(12, 35), rng.uniform(5, 18)),
    }


def _unmetered(rng: Rng, activity: float) -> dict[str, Daily]:
    """Draw the load that has no sub-meter, as in real houses."""

    def used(name: str, use: Use) -> Daily:
        return partial(_uses, use, HABITS[name], activity)

    iron = models.Thermostatic(rng.uniform(1600, 2300), 0.0, 90.0, 15.0, 40.0, 1200.0)
    hob = models.Thermostatic(rng.uniform(1100, 1800), 0.0, 300.0, 40.0, 35.0, 900.0)
    return {
        "base": partial(models.standby_day, rng.uniform(30, 100), rng.uniform(5, 18)),
        "lamps": models.Lamps.draw(rng, rooms=int(rng.integers(3, 7)), scale=0.8).day,
        "screens": models.Screens.draw(rng).day,
        "heating": partial(models.heating_day, rng.uniform(60, 120)),
        "hair_dryer": used("hair_dryer", partial(models.run_motor, rng.uniform(900, 1900), 260.0)),
        "hob": used("hob", hob.use),
        "vacuum": used("cleaning", partial(models.run_motor, rng.uniform(700, 1500), 800.0)),
        "iron": used("cleaning", iron.use),
    }


def _uses(use: Use, habits: tuple[Habit, ...], activity: float, rng: Rng, day: Day) -> Segments:
    """Draw the uses of a day; one that would begin before the last has ended is left out."""
    parts, free_s = [], -np.inf
    for start_s in day.at_s(hours_of(rng, day, habits, activity)):
        drawn = use(rng)
        if start_s > free_s:
            parts.append(drawn.delayed(float(start_s)))
            free_s = parts[-1].end_s
    return join(parts)


def _play(seed: int, key: int, loads: Mapping[str, Daily], plan: list[Day]) -> dict[str, Segments]:
    return {
        name: join(load(child(seed, key, number, day_number), day) for day_number, day in enumerate(plan))
        for number, (name, load) in enumerate(loads.items())
    }


def _second_freezer(seed: int, busy: FloatArray) -> Segments:
    """Give about every third household a small freezer without sub-meter."""
    rng = child(seed, 10)
    if rng.random() > 0.35:
        return join([])
    freezer = models.Fridge(rng.uniform(55, 80), 700.0, rng.uniform(1500, 2500), 0.1)
    return freezer.run(child(seed, 11), 0.2 * busy)


def _submeter(rng: Rng, load: Segments, minutes: int) -> FloatArray:
    """Read one appliance some seconds late, since the clocks of sub-meters and mains differ."""
    return _read(rng, minute_means(load.delayed(rng.uniform(0.0, 5.0)), minutes), floor_w=0.0)


def _read(rng: Rng, watts: FloatArray, floor_w: float) -> FloatArray:
    """Add a meter's relative and absolute noise, and round."""
    noise = rng.standard_normal((watts.size, 2))
    read: FloatArray = np.maximum(watts * (1 + 0.004 * noise[:, 0]) + floor_w * noise[:, 1], 0.0)
    return np.round(read, 1)


def decoy_library() -> Library:
    """Return the library that ships with the package: always the same ten signatures."""
    return Library.of(decoy_signatures(np.random.default_rng(SHIPPED_SEED)), source="synthetic")


def decoy_signatures(rng: Rng) -> list[tuple[str, FloatArray]]:
    """Draw ten (appliance, watts per minute) pairs: two units each of five appliances, one use per unit.

    A use that the paper's filter would refuse (5 to 35 minutes, median 300 to 2,500 W) is drawn again, and so
    is a library of which most are not 5 to 10 minutes long or not between 1,500 and 2,500 W.
    """
    while True:
        drawn = [(name, _signature(rng, draw)) for name, draw in _LONG_USES.items() for _ in range(PER_APPLIANCE)]
        short = np.mean([watts.size <= TYPICAL_LONGEST_MIN for _, watts in drawn])
        strong = np.mean([np.median(watts) >= TYPICAL_LOWEST_W for _, watts in drawn])
        if min(short, strong) > 0.5:
            return drawn


def suits_library(watts: FloatArray) -> bool:
    """Apply the paper's filter of length and median power to one use."""
    low_w, high_w = MEDIAN_RANGE_W
    return SHORTEST_MIN <= watts.size <= LONGEST_MIN and bool(low_w <= np.median(watts) <= high_w)


def _signature(rng: Rng, draw: Use) -> FloatArray:
    while True:
        use = draw(rng).delayed(rng.uniform(0, MINUTE_S))
        watts = np.round(minute_means(use, int(np.ceil(use.end_s / MINUTE_S))), 1)
        if suits_library(watts):
            return watts


def _long_boil(rng: Rng) -> Segments:
    """Boil a full kettle, or twice in a row: an ordinary boil is too short for the library."""
    kettle = models.Kettle.draw(rng)
    if rng.random() < 0.5:
        return kettle.boil(rng, 270.0)
    rest = models.pause(rng, 5, 25)
    return chain([kettle.boil(rng, 160.0), rest, kettle.boil(rng, 160.0)])


def _two_rounds(rng: Rng) -> Segments:
    toaster = models.Toaster.draw(rng)
    return chain([toaster.round(rng), models.pause(rng, 5, 25), toaster.round(rng)])


def _dishwashing(rng: Rng) -> Segments:
    dishwasher = models.Dishwasher.draw(rng)
    return dishwasher.heating(rng, MINUTE_S * min(dishwasher.heats_min))


_LONG_USES: dict[str, Use] = {
    "kettle": _long_boil,
    "toaster": _two_rounds,
    "microwave": lambda rng: models.Microwave.draw(rng).heat(rng, 360.0),
    "washing_machine": lambda rng: models.WashingMachine.draw(rng).heating(rng),
    "dishwasher": _dishwashing,
}
