from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from experiments.household_statistics import measure_appliance
from meterveil.core.arrays import runs
from meterveil.data.household import midnight
from meterveil.data.synthetic import FIRST_DAY, decoy_signatures, household
from meterveil.data.synthetic.routine import Routine, child, plan_days
from meterveil.data.synthetic.segments import Segments, minute_means
from meterveil.errors import InputError

APPLIANCES = ["fridge", "kettle", "microwave", "toaster", "washing_machine"]
APPLIANCES += ["dishwasher", "oven", "lighting", "electronics", "standby"]


def home(seed=0, **options):
    return household(np.random.default_rng(seed), **options)


@pytest.fixture(scope="module")
def year():
    return home(days=365, start=date(2024, 1, 1))


@pytest.fixture(scope="module")
def month():
    return home(days=28)


def assert_same_readings(one, other):
    np.testing.assert_array_equal(one.minutes, other.minutes)
    np.testing.assert_array_equal(one.aggregate_w, other.aggregate_w)
    assert list(one.appliances_w) == list(other.appliances_w)
    for name, watts in one.appliances_w.items():
        np.testing.assert_array_equal(watts, other.appliances_w[name], err_msg=name)


def test_the_default_is_two_weeks_from_a_monday_in_spring():
    default = home()
    assert FIRST_DAY.weekday() == 0
    assert default.days() == [FIRST_DAY + timedelta(days=n) for n in range(14)]
    assert default.timezone == "Europe/London"
    assert list(default.appliances_w) == APPLIANCES


def test_the_same_seed_draws_the_same_trace_bit_for_bit():
    assert_same_readings(home(7), home(7))


def test_another_seed_is_another_household():
    one, other = home(1), home(2)
    one_w, other_w = one.appliances_w["kettle"], other.appliances_w["kettle"]
    assert measure_appliance("kettle", one_w) != measure_appliance("kettle", other_w)
    assert abs(np.corrcoef(one.aggregate_w, other.aggregate_w)[0, 1]) < 0.5


@pytest.mark.parametrize("seed", range(6))
def test_more_days_leave_the_earlier_ones_as_they_are(seed):
    short, long = home(seed, days=3), home(seed, days=40)
    assert_same_readings(short, long.between(FIRST_DAY, FIRST_DAY + timedelta(days=3)))


@pytest.mark.parametrize(("before", "hours"), [(date(2024, 3, 30), 24 + 23 + 24), (date(2024, 10, 26), 24 + 25 + 24)])
def test_days_on_which_the_clocks_change_have_23_and_25_hours(before, hours):
    trace = home(days=3, start=before)
    assert len(trace.minutes) == hours * 60
    assert len(trace.days()) == 3
    assert np.all(trace.aggregate_w > 0)


@pytest.mark.parametrize("before", [date(2024, 3, 30), date(2024, 10, 26)])
def test_habits_follow_the_clock_on_the_wall_when_it_changes(before):
    plan = plan_days(5, Routine.draw(child(5, 2)), before, 3, "Europe/London")[1:]
    for number, day in enumerate(plan):
        today = before + timedelta(days=number)
        for hour in (1, 7, 13, 23):
            wall = (
                pd.Timestamp(today).replace(hour=hour).tz_localize("Europe/London", ambiguous=True, nonexistent="NaT")
            )
            if wall is not pd.NaT:
                elapsed_s = (wall - midnight(before, "Europe/London")).total_seconds()
                assert day.at_s(np.array([hour]))[0] == elapsed_s


def test_another_time_zone_lives_by_its_own_clock():
    there = home(days=7, timezone="America/New_York")
    by_hour = pd.Series(there.aggregate_w).groupby(there.minutes.hour).mean()
    assert by_hour.loc[17:22].mean() > 1.5 * by_hour.loc[1:4].mean()


def test_no_days_are_refused_with_a_reason():
    with pytest.raises(InputError, match="days=0 is too few"):
        home(days=0)


def test_minute_means_equal_the_mean_of_finely_sampled_power():
    rng = np.random.default_rng(0)
    start_s = np.round(rng.uniform(-100, 700, 40), 1)
    load = Segments(start_s, start_s + np.round(rng.uniform(0.1, 200, 40), 1), rng.uniform(1, 100, 40))
    instants_s = np.arange(0.05, 600, 0.1)
    power = sum(
        w * ((instants_s > a) & (instants_s < b)) for a, b, w in zip(load.start_s, load.stop_s, load.watts, strict=True)
    )
    np.testing.assert_allclose(minute_means(load, 10), power.reshape(10, 600).mean(axis=1), atol=1e-9)


def test_kettle_events_have_partial_minutes_at_their_edges(month):
    kettle_w = month.appliances_w["kettle"]
    plateau_w = np.percentile(kettle_w[kettle_w > 1000], 95)
    starts, stops = runs(kettle_w > 20)
    edges = np.concatenate([kettle_w[starts], kettle_w[stops - 1]])
    assert np.mean((edges > 0.05 * plateau_w) & (edges < 0.95 * plateau_w)) > 0.7


def test_the_meter_reads_more_than_its_sub_meters_but_for_their_clocks(month):
    residual_w = month.aggregate_w - np.sum(list(month.appliances_w.values()), axis=0)
    assert np.mean(residual_w < -10) < 0.005
    assert 0.25 < residual_w.sum() / month.aggregate_w.sum() < 0.6


def test_people_go_away_now_and_then_and_only_the_cold_and_standby_remain(year):
    every = [year.day(day) for day in year.days()]
    quiet_w = [day.aggregate_w.mean() for day in every if day.appliances_w["kettle"].max() < 500]
    assert 3 <= len(quiet_w) <= 60
    assert min(quiet_w) < 0.6 * year.aggregate_w.mean()


def test_weekends_begin_later_and_winter_evenings_are_lit_longer(year):
    early = year.minutes.hour < 8
    weekend = year.minutes.day_of_week >= 5
    kettle = year.appliances_w["kettle"] > 1000
    assert kettle[early & ~weekend].mean() > 1.5 * kettle[early & weekend].mean()
    light_w = year.appliances_w["lighting"]
    assert light_w[year.minutes.month == 12].mean() > 1.7 * light_w[year.minutes.month == 6].mean()


def test_a_washing_machine_heats_first_and_spins_last():
    watts = home(3, days=28).appliances_w["washing_machine"]
    starts, stops = runs(watts > 20, pause=20)
    whole = [(a, b) for a, b in zip(starts, stops, strict=True) if 50 <= b - a <= 130]
    assert len(whole) >= 5
    for start, stop in whole:
        length = stop - start
        assert watts[start : start + length // 2].max() > 1500
        assert watts[start + length // 2 : stop].max() < 1000
        assert watts[stop - length // 5 : stop].max() > 200


def test_a_dishwasher_heats_at_least_twice():
    watts = home(3, days=28).appliances_w["dishwasher"]
    programmes, heats = runs(watts > 20, pause=20)[0], runs(watts > 1500)[0]
    assert heats.size >= 2 * programmes.size - 1 >= 9


@pytest.mark.parametrize("seed", range(10))
def test_decoys_have_the_make_up_of_the_papers_library(seed):
    signatures = decoy_signatures(np.random.default_rng(seed))
    names = [name for name, _ in signatures]
    assert sorted(names) == sorted(2 * ["kettle", "toaster", "microwave", "washing_machine", "dishwasher"])
    lengths = np.array([watts.size for _, watts in signatures])
    medians_w = np.array([np.median(watts) for _, watts in signatures])
    assert np.all((lengths >= 5) & (lengths <= 35))
    assert np.all((medians_w >= 300) & (medians_w <= 2500))
    assert np.mean(lengths <= 10) > 0.5
    assert np.mean(medians_w >= 1500) > 0.5
    first_w = np.array([watts[0] for _, watts in signatures])
    assert np.mean(first_w < 0.95 * medians_w) > 0.5


def test_nothing_is_on_at_night_that_needs_a_hand(month):
    night = (month.minutes.hour >= 3) & (month.minutes.hour < 5)
    for name in ("kettle", "microwave", "toaster", "oven"):
        assert measure_appliance(name, month.appliances_w[name][night])["events/day"] == 0
