from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meterveil.core.tariff import PAPER_TARIFF, PriceSeries
from meterveil.data.household import Household, Series, fill_short_gaps, minute_means, to_household
from meterveil.data.simulation import episodes, span
from meterveil.errors import InputError


def household(start="2013-03-29 00:00", minutes=4 * 1440 - 60, timezone="Europe/London", **appliances):
    index = pd.date_range(start, periods=minutes, freq="min", tz=timezone)
    return Household("home", index, np.arange(minutes, dtype=np.float64) % 900, appliances)


def test_civil_days_may_have_23_and_25_hours():
    spring = household()
    assert [len(spring.day(day).minutes) for day in spring.days()] == [1440, 1440, 1380, 1440]
    autumn = household("2013-10-27", minutes=1500)
    assert [len(autumn.day(day).minutes) for day in autumn.days()] == [1500]


def test_days_that_are_only_partly_recorded_are_not_days():
    partly = household("2013-03-29 00:01", minutes=2 * 1440)
    assert partly.days() == [date(2013, 3, 30)]


def test_days_that_are_not_recorded_are_refused_with_the_span():
    with pytest.raises(InputError, match=r"not wholly recorded; the record holds 2013-03-29 .* to 2013-04-01"):
        household().between(date(2013, 4, 1), date(2013, 4, 3))
    with pytest.raises(InputError, match="end must be after start"):
        household().between(date(2013, 3, 30), date(2013, 3, 30))


def test_coverage_counts_the_known_minutes_of_each_channel():
    kettle = np.zeros(1440)
    kettle[:360] = np.nan
    assert household(minutes=1440, kettle=kettle).coverage() == {"aggregate": 1.0, "kettle": 0.75}


def test_an_unknown_appliance_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="has no toaster; it has kettle"):
        household(minutes=60, kettle=np.zeros(60)).select(["toaster"])


def test_the_sum_of_the_sub_meters_is_unknown_where_one_is():
    fridge, kettle = np.array([50.0, 60.0]), np.array([2000.0, np.nan])
    total = household(minutes=2, fridge=fridge, kettle=kettle).metered_by_submeters()
    np.testing.assert_array_equal(total.aggregate_w, [2050.0, np.nan])
    assert "sum of the sub-meters" in total.notes[-1]
    with pytest.raises(InputError, match="no sub-meters"):
        household(minutes=2).metered_by_submeters()


def test_active_power_is_the_sub_meters_and_a_share_of_the_rest():
    home = household(minutes=3, fridge=np.array([50.0, 60.0, 80.0]))
    home = replace(home, aggregate_w=np.array([150.0, 60.0, 70.0]), units={"aggregate": "VA", "fridge": "W"})
    active = home.metered_by("active")
    np.testing.assert_allclose(active.aggregate_w, [50.0 + 0.57 * 100.0, 60.0, 80.0])
    assert (active.aggregate, active.units["aggregate"]) == ("active", "W")
    assert "0.57 of the apparent power of the rest" in active.notes[-1]
    assert home.metered_by("mains") is home
    with pytest.raises(InputError, match="both read W, so there is no active power to estimate; use the mains"):
        replace(home, units={}).metered_by("active")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minutes": pd.DatetimeIndex([], tz="UTC")}, "no minutes"),
        ({"minutes": pd.date_range("2013-01-01", periods=3, freq="min")}, "no time zone"),
        ({"minutes": pd.date_range("2013-01-01", periods=3, freq="2min", tz="UTC")}, "not consecutive"),
        ({"minutes": pd.date_range("2013-01-01 00:00:30", periods=3, freq="min", tz="UTC")}, "not consecutive"),
        ({"aggregate_w": np.zeros(2)}, "one value for each minute"),
        ({"aggregate_w": np.zeros(3, dtype=np.float32)}, "give float64"),
        ({"aggregate_w": np.array([0.0, 2e5, 0.0])}, "200,000 W is more than a home can draw"),
    ],
)
def test_what_is_not_a_household_is_refused(change, message):
    minutes = pd.date_range("2013-01-01", periods=3, freq="min", tz="UTC")
    with pytest.raises(InputError, match=message):
        Household(**{"name": "home", "minutes": minutes, "aggregate_w": np.zeros(3), **change})


def test_a_span_carries_over_midnight_and_remembers_the_hour_before():
    scenario = span(household(), date(2013, 3, 30), date(2013, 4, 1), PAPER_TARIFF)
    assert (scenario.batch, scenario.lead, scenario.minutes.tolist()) == (1, 60, [1440 + 1380])
    assert scenario.minute_of_day[0, [0, 59, 60]].tolist() == [1380, 1439, 0]
    assert np.unique(scenario.day).size == 3
    assert scenario.load_w[0, 60] == household().aggregate_w[1440]
    assert scenario.load_w[0, 0] == household().aggregate_w[1380]


def test_the_first_day_of_a_record_is_led_in_by_its_first_minute():
    scenario = span(household(), date(2013, 3, 29), date(2013, 3, 30), PAPER_TARIFF)
    assert set(scenario.load_w[0, :60]) == {household().aggregate_w[0]}


def test_days_are_rows_that_end_when_the_day_does():
    home = household()
    scenario = episodes(home, home.days(), PAPER_TARIFF)
    assert scenario.minutes.tolist() == [1440, 1440, 1380, 1440]
    seven = scenario.minute_of_day == 420
    assert set(scenario.price[seven & (np.arange(1500) >= 60)]) == {0.3075}


def test_a_half_hourly_price_series_follows_the_clock_of_the_world_not_of_the_wall():
    home = household()
    first = int(home.minutes[0].timestamp()) // 60
    starts = first + np.arange(0, 5 * 1440, 30)
    series = PriceSeries(starts, np.arange(len(starts), dtype=np.float64))
    scenario = span(home, date(2013, 3, 31), date(2013, 4, 1), series)
    assert scenario.price[0, 60] == 96.0
    assert scenario.price[0, -1] == 96.0 + 45.0


def test_a_day_without_any_reading_is_refused():
    index = pd.date_range("2013-01-01", periods=1440, freq="min", tz="UTC")
    with pytest.raises(InputError, match="no reading at all"):
        span(Household("home", index, np.full(1440, np.nan)), date(2013, 1, 1), date(2013, 1, 2), PAPER_TARIFF)


@pytest.mark.parametrize(
    ("timezone", "start", "hours"),
    [("America/Havana", "2023-03-12 01:00", 23), ("America/Sao_Paulo", "2017-10-15 01:00", 23)],
)
def test_a_day_whose_midnight_the_clocks_skip_is_still_a_whole_day(timezone, start, hours):
    home = household(start, minutes=hours * 60 + 1440, timezone=timezone)
    first = date.fromisoformat(start[:10])
    assert home.days()[0] == first
    assert len(home.day(first).minutes) == hours * 60
    scenario = span(home, first, date(first.year, first.month, first.day + 2), PAPER_TARIFF)
    assert scenario.minutes.tolist() == [hours * 60 + 1440]


def test_a_day_whose_midnight_comes_twice_has_25_hours():
    index = pd.date_range("2023-11-05 04:00", periods=1500, freq="min", tz="UTC").tz_convert("America/Havana")
    home = Household("home", index, np.zeros(1500))
    assert home.days() == [date(2023, 11, 5)]
    assert len(home.day(date(2023, 11, 5)).minutes) == 1500


START = 1_363_564_800  # 2013-03-18 00:00 UTC
MINUTE = START // 60


def series(watts_by_offset: dict[int, float]) -> Series:
    minute = np.array([MINUTE + offset for offset in watts_by_offset], dtype=np.int64)
    return Series(minute, np.array(list(watts_by_offset.values()), dtype=float))


def test_samples_are_averaged_over_the_minute_in_which_they_lie():
    means = minute_means(np.array([START, START + 59, START + 60]), np.array([10.0, 30.0, 5.0]))
    assert means.minute.tolist() == [MINUTE, MINUTE + 1]
    assert means.watts.tolist() == [20.0, 5.0]
    assert means.notes == ()


def test_unknown_samples_are_ignored_even_where_they_repeat_a_stamp():
    means = minute_means(np.array([START, START, START + 60]), np.array([4.0, np.nan, np.nan]))
    assert means.minute.tolist() == [MINUTE]
    assert means.watts.tolist() == [4.0]


@pytest.mark.parametrize("watts", [np.array([]), np.array([np.nan])])
def test_no_known_sample_at_all_is_an_error(watts):
    with pytest.raises(InputError, match=r"kettle\.csv: no readings"):
        minute_means(np.full(len(watts), START), watts, where="kettle.csv")


@pytest.mark.parametrize(
    ("factor", "unit"), [(1_000, "milliseconds"), (1_000_000, "microseconds"), (10**9, "nanoseconds")]
)
def test_stamps_in_a_finer_unit_are_suspected_and_named(factor, unit):
    with pytest.raises(InputError, match=f"look like {unit}"):
        minute_means(np.array([START, START + 60]) * factor, np.ones(2))


@pytest.mark.parametrize("stamp", [0, -5, np.nan, 10**11])
def test_stamps_outside_living_memory_are_rejected(stamp):
    with pytest.raises(InputError, match="not between the years 1990 and 2100"):
        minute_means(np.array([START, stamp]), np.ones(2))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 3000)), min_size=1, max_size=80))
def test_minute_means_equal_a_pandas_resample(samples):
    offsets, watts = np.array(samples, dtype=float).T
    frame = pd.Series(watts, index=pd.to_datetime(START + offsets, unit="s", utc=True))
    expected = frame[~frame.index.duplicated(keep="last")].sort_index().resample("1min").mean().dropna()
    means = minute_means(START + offsets, watts)
    assert (means.minute * 60).tolist() == expected.index.as_unit("s").asi8.tolist()
    np.testing.assert_allclose(means.watts, expected.to_numpy(), rtol=1e-12)


def test_a_gap_up_to_the_limit_holds_the_minute_before_it():
    filled = fill_short_gaps(series({0: 1.0, 4: 2.0}), max_fill_minutes=3)
    assert (filled.minute - MINUTE).tolist() == [0, 1, 2, 3, 4]
    assert filled.watts.tolist() == [1, 1, 1, 1, 2]
    assert filled.notes == ("3 minutes in gaps of up to 3 filled with the minute before",)


def test_a_gap_longer_than_the_limit_stays_a_gap_in_full():
    long_gap = series({0: 1.0, 5: 2.0})
    assert fill_short_gaps(long_gap, max_fill_minutes=3) is long_gap


def test_the_household_spans_the_aggregate_and_an_appliance_is_unknown_elsewhere():
    home = to_household(
        "home", series({0: 300.0, 1: 310.0, 9: 320.0}), {"kettle": series({-2: 5.0, 1: 0.0, 3: 4.0})}, "UTC"
    )
    assert len(home.minutes) == 10
    np.testing.assert_array_equal(home.appliances_w["kettle"], [5, 0, 0, 4] + [np.nan] * 6)
    assert np.isnan(home.aggregate_w[2:9]).all()
    assert any(note.startswith("kettle: 3 minutes in gaps") for note in home.notes)


def test_minutes_run_through_the_change_to_summer_time():
    before = pd.Timestamp("2013-03-31 00:59", tz="UTC").timestamp() // 60 - MINUTE
    home = to_household("home", series({int(before): 1.0, int(before) + 1: 2.0}), {}, "Europe/London")
    assert [stamp.hour for stamp in home.minutes] == [0, 2]


def test_without_an_aggregate_the_sum_of_the_sub_meters_takes_its_place():
    home = to_household("home", None, {"tv": series({0: 1.0, 1: 2.0}), "fridge": series({1: 50.0, 2: 60.0})}, "UTC")
    np.testing.assert_array_equal(home.aggregate_w, [np.nan, 52.0, np.nan])
    assert "aggregate is the sum of the sub-meters" in home.notes


def test_slightly_negative_appliance_power_becomes_zero_and_is_noted():
    home = to_household("home", series({0: 9.0}), {"tv": series({0: -3.0})}, "UTC")
    assert home.appliances_w["tv"].tolist() == [0.0]
    assert "tv: 1 slightly negative minutes set to 0 W" in home.notes


@pytest.mark.parametrize("aggregate", [None, series({0: 1.0}), series({})])
def test_a_channel_that_is_all_gaps_is_an_error(aggregate):
    with pytest.raises(InputError, match="all gaps"):
        to_household("home", aggregate, {"tv": series({})}, "UTC")


def test_an_appliance_recorded_only_outside_the_aggregate_is_all_gaps():
    with pytest.raises(InputError, match="home: tv is all gaps in the minutes that the aggregate spans"):
        to_household("home", series({0: 1.0}), {"tv": series({7: 1.0})}, "UTC")


@pytest.mark.parametrize("aggregate", [None, series({0: 300.0})])
def test_a_sub_meter_may_not_take_the_name_of_the_mains(aggregate):
    with pytest.raises(InputError, match="home: a sub-meter is named aggregate"):
        to_household("home", aggregate, {"aggregate": series({0: 7.0})}, "UTC")


def test_no_channel_at_all_is_an_error():
    with pytest.raises(InputError, match="neither an aggregate nor an appliance"):
        to_household("home", None, {}, "UTC")
