"""Sleep and absence by rule, held to homes whose days are known."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from meterveil.audit.audit import audit
from meterveil.audit.presence import base_load_w, quiet_stretches, slot_means
from meterveil.audit.record import interval_minutes
from meterveil.data.synthetic.habits import Routine, child, plan_days
from meterveil.data.synthetic.house import FIRST_DAY, household
from meterveil.data.synthetic.segments import join, minute_means

ZONE = "Europe/London"


def day_of(active_hours, base_w=100.0, days=1):
    """Days on which the house draws 800 W in these hours and its base load in the others."""
    minutes = pd.date_range("2024-01-01", periods=1440 * days, freq="min", tz=ZONE)
    active = np.isin(minutes.hour, list(active_hours))
    return minutes, np.where(active, 800.0, base_w)


def found_in(minutes, watts, unattended=None):
    nothing = np.zeros(len(watts), dtype=bool)
    return [
        (part.state, part.start // 60, part.end // 60, part.sure)
        for part in quiet_stretches(minutes, watts, nothing if unattended is None else unattended)
    ]


def test_quiet_by_night_is_sleep_and_by_day_absence():
    minutes, watts = day_of({7, 8, 17, 18, 19, 20, 21, 22, 23})
    assert found_in(minutes, watts) == [("asleep", 0, 7, True), ("empty", 9, 17, True)]


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        (range(12, 15), []),
        (range(12, 17), [("empty", 12, 17, False)]),
        (range(12, 18), [("empty", 12, 18, True)]),
        (range(1, 4), [("asleep", 1, 4, False)]),
    ],
)
def test_short_quiet_is_unsure_or_says_nothing(hours, expected):
    minutes, watts = day_of(set(range(24)) - set(hours))
    assert found_in(minutes, watts) == expected


def test_a_day_and_a_night_of_quiet_are_absence():
    minutes, watts = day_of({8, 9}, days=3)
    watts[600 : 1440 * 2 + 480] = 100.0
    assert ("empty", 10, 56, True) in found_in(minutes, watts)


def test_a_machine_that_runs_by_itself_does_not_break_the_quiet():
    minutes, watts = day_of({7, 8, 17, 18, 19, 20, 21, 22, 23})
    watts[720:780] = 2000.0
    washing = np.zeros(1440, dtype=bool)
    assert ("empty", 9, 17, True) not in found_in(minutes, watts, washing)
    washing[720:780] = True
    assert ("empty", 9, 17, True) in found_in(minutes, watts, washing)


def test_a_fridge_is_no_sign_of_life():
    minutes, watts = day_of({7, 8, 17, 18, 19, 20, 21, 22, 23})
    watts = watts + np.where(np.arange(1440) % 50 < 22, 160.0, 0.0)
    assert ("asleep", 0, 7, True) in found_in(minutes, watts)


def test_an_unknown_night_is_not_called_sleep():
    minutes, watts = day_of({7, 8, 17, 18, 19, 20, 21, 22, 23})
    watts[:420] = np.nan
    assert [state for state, *_ in found_in(minutes, watts)] == ["empty"]


def test_half_an_hour_that_is_mostly_unknown_has_no_mean():
    watts = np.full(60, 50.0)
    watts[:16] = np.nan
    assert np.isnan(slot_means(watts)[0])
    assert slot_means(watts)[1] == 50.0


def test_the_base_load_is_what_remains_at_night():
    _, watts = day_of(range(7, 23))
    assert base_load_w(watts) == pytest.approx(100.0)


@pytest.mark.parametrize("seed", [0, 5])
def test_sleep_of_a_known_household_is_found_also_in_half_hourly_readings(seed, model):
    days = 14
    home = household(np.random.default_rng(seed), days)
    number = int(np.random.default_rng(seed).integers(2**63))
    plan = plan_days(number, Routine.draw(child(number, 2)), FIRST_DAY, days, ZONE)
    up = minute_means(join(day.presence() for day in plan), len(home.minutes)) > 0.5
    found = audit(home, model)
    asleep, empty = (found.state_minutes(state) == 1 for state in ("asleep", "empty"))
    night = (home.minutes.hour >= 22) | (home.minutes.hour < 9)
    assert np.mean(~up[asleep]) > 0.9
    assert np.mean((asleep | empty)[~up & night]) > 0.85
    coarse = np.repeat(home.aggregate_w.reshape(-1, 30).mean(axis=1), 30)
    assert interval_minutes(coarse) == 30
    by_halves = np.zeros(len(up), dtype=bool)
    for part in quiet_stretches(home.minutes, coarse, by_halves):
        by_halves[part.start : part.end] = part.state == "asleep"
    assert np.mean(by_halves == asleep) > 0.9


def test_solar_power_does_not_pass_for_a_base_load(home, model):
    hour = home.minutes.hour.to_numpy() + home.minutes.minute.to_numpy() / 60
    sun_w = 2500.0 * np.clip(np.sin((hour - 6) / 12 * np.pi), 0.0, None)
    plain, sunny = (
        audit(dataclasses.replace(home, aggregate_w=home.aggregate_w - less), model) for less in (0.0, sun_w)
    )
    assert 0 < sunny.base_w < plain.base_w + 50
    night = (hour >= 22) | (hour < 6)
    same = plain.state_minutes("asleep") == sunny.state_minutes("asleep")
    assert np.mean(same[night]) > 0.9
