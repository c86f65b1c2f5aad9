"""Preparation of records, and the rule for sleep and absence."""

import dataclasses
from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.audit.findings import (
    audit,
    base_load_w,
    cut_out,
    interval_minutes,
    quiet_stretches,
    slot_means,
    whole_days,
)
from meterveil.data.household import Household
from meterveil.errors import InputError

ZONE = "Europe/London"
ACTIVE = {7, 8, 17, 18, 19, 20, 21, 22, 23}


def record(start, count, watts=None):
    minutes = pd.date_range(start, periods=count, freq="min", tz=ZONE)
    rng = np.random.default_rng(0)
    return Household("home", minutes, rng.uniform(100, 3000, count) if watts is None else watts)


def test_a_record_that_begins_at_noon_is_padded_with_unknown_minutes():
    whole = whole_days(record("2024-03-01 12:00", 1440))
    assert whole.days() == [date(2024, 3, 1), date(2024, 3, 2)]
    assert np.isnan(whole.aggregate_w[:720]).all()
    assert not np.isnan(whole.aggregate_w[720:2160]).any()


def test_the_last_month_is_the_default_and_a_day_that_has_hardly_begun_is_left_out():
    days = cut_out(record("2024-01-01", 1440 * 60), None, None).days()
    assert (days[0], len(days)) == (date(2024, 1, 30), 31)
    chosen = cut_out(record("2024-01-01", 1440 * 60), date(2024, 1, 3), date(2024, 1, 5))
    assert chosen.days() == [date(2024, 1, 3), date(2024, 1, 4)]
    assert len(cut_out(record("2024-01-01", 1440 * 2 + 60), None, None).days()) == 2


@pytest.mark.parametrize(
    ("home", "start", "message"),
    [
        (record("2024-01-01", 2880), date(2023, 12, 1), "2024-01-01 up to, not including, 2024-01-03"),
        (record("2024-01-01", 100), None, "100 minutes.*360"),
        (record("2024-01-01", 1440, np.full(1440, 5.0)), None, "5 W in every minute"),
        (record("2024-01-01", 1440, np.full(1440, np.nan)), None, "no reading"),
    ],
    ids=["unrecorded day", "too short", "constant", "never read"],
)
def test_records_that_cannot_be_audited_are_refused(home, start, message):
    with pytest.raises(InputError, match=message):
        cut_out(home, start, None)


@pytest.mark.parametrize(("step", "offset"), [(5, 0), (15, 7), (30, 0), (60, 7)])
def test_the_interval_of_coarse_readings_is_found(step, offset):
    rng = np.random.default_rng(1)
    watts = np.repeat(rng.uniform(100, 900, 2880 // step), step) + rng.normal(0, 1e-9, 2880)
    blended = watts.copy()  # a stamp within a minute blends two readings
    blended[step::step] = (watts[step - 1 : -1 : step] + watts[step::step]) / 2
    assert interval_minutes(np.roll(watts, offset)) == interval_minutes(blended) == step


def test_minutes_are_told_from_coarse_readings():
    assert interval_minutes(record("2024-01-01", 1440).aggregate_w) == 1
    assert interval_minutes(np.where(np.arange(1440) % 480 < 3, 2000.0, 100.0)) == 1


def day_of(active_hours=ACTIVE, days=1):
    """Days with 800 W in these hours and a base load of 100 W in the others."""
    minutes = pd.date_range("2024-01-01", periods=1440 * days, freq="min", tz=ZONE)
    return minutes, np.where(np.isin(minutes.hour, list(active_hours)), 800.0, 100.0)


def states(minutes, watts, unattended=None):
    nothing = np.zeros(len(watts), dtype=bool)
    return [
        (part.state, part.start // 60, part.end // 60, part.sure)
        for part in quiet_stretches(minutes, watts, nothing if unattended is None else unattended)
    ]


@pytest.mark.parametrize(
    ("quiet_hours", "expected"),
    [
        (set(range(24)) - ACTIVE, [("asleep", 0, 7, True), ("empty", 9, 17, True)]),
        (range(12, 15), []),
        (range(12, 17), [("empty", 12, 17, False)]),
        (range(12, 18), [("empty", 12, 18, True)]),
        (range(1, 4), [("asleep", 1, 4, False)]),
    ],
)
def test_quiet_is_sleep_at_night_and_absence_by_day_if_long_enough(quiet_hours, expected):
    assert states(*day_of(set(range(24)) - set(quiet_hours))) == expected


def test_a_quiet_day_and_night_are_absence():
    minutes, watts = day_of({8, 9}, days=3)
    watts[600 : 1440 * 2 + 480] = 100.0
    assert ("empty", 10, 56, True) in states(minutes, watts)


def test_unattended_machines_and_fridges_do_not_interrupt_the_quiet():
    minutes, watts = day_of()
    fridge_w = np.where(np.arange(1440) % 50 < 22, 160.0, 0.0)
    assert ("asleep", 0, 7, True) in states(minutes, watts + fridge_w)
    watts[720:780] = 2000.0
    washing = np.zeros(1440, dtype=bool)
    assert ("empty", 9, 17, True) not in states(minutes, watts, washing)
    washing[720:780] = True
    assert ("empty", 9, 17, True) in states(minutes, watts, washing)


def test_unknown_hours_have_no_state_and_no_mean():
    minutes, watts = day_of()
    watts[:420] = np.nan
    assert [state for state, *_ in states(minutes, watts)] == ["empty"]
    assert np.isnan(slot_means(np.where(np.arange(60) < 16, np.nan, 50.0))).tolist() == [True, False]
    assert base_load_w(day_of(range(7, 23))[1]) == pytest.approx(100.0)


def test_solar_power_does_not_lower_the_base_load(home, model):
    hour = home.minutes.hour.to_numpy() + home.minutes.minute.to_numpy() / 60
    sun_w = 2500.0 * np.clip(np.sin((hour - 6) / 12 * np.pi), 0.0, None)
    plain, sunny = (
        audit(dataclasses.replace(home, aggregate_w=home.aggregate_w - less), model) for less in (0.0, sun_w)
    )
    assert 0 < sunny.base_w < plain.base_w + 50
    same = plain.state_minutes("asleep") == sunny.state_minutes("asleep")
    assert np.mean(same[(hour >= 22) | (hour < 6)]) > 0.9
