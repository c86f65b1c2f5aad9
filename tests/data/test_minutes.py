import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meterveil.data.household import Series, fill_short_gaps, minute_means, to_household
from meterveil.errors import InputError

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


def test_unsorted_samples_are_sorted_and_noted():
    means = minute_means(np.array([START + 60, START, START + 6]), np.array([7.0, 1.0, 3.0]))
    assert means.watts.tolist() == [2.0, 7.0]
    assert means.notes == ("stamps went back in time 1 times: sorted",)


def test_of_samples_with_the_same_stamp_the_last_one_counts():
    means = minute_means(np.array([START + 6, START, START + 6]), np.array([100.0, 1.0, 3.0]))
    assert means.watts.tolist() == [2.0]
    assert "1 samples had the stamp of another: the last one counts" in means.notes


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
    home = to_household(
        "home", None, {"tv": series({0: 1.0, 1: 2.0}), "fridge": series({1: 50.0, 2: 60.0})}, "UTC"
    )
    np.testing.assert_array_equal(home.aggregate_w, [np.nan, 52.0, np.nan])
    assert "aggregate is the sum of the sub-meters" in home.notes


def test_slightly_negative_appliance_power_becomes_zero_and_is_noted():
    home = to_household("home", series({0: 9.0}), {"tv": series({0: -3.0})}, "UTC")
    assert home.appliances_w["tv"].tolist() == [0.0]
    assert "tv: 1 slightly negative minutes set to 0 W" in home.notes


def test_clearly_negative_appliance_power_is_an_error():
    with pytest.raises(InputError, match="home: tv: -300 W is negative"):
        to_household("home", series({0: 9.0}), {"tv": series({0: -300.0})}, "UTC")


def test_a_negative_aggregate_may_be_feed_in_and_is_noted():
    home = to_household("home", series({0: -900.0}), {}, "UTC")
    assert home.aggregate_w.tolist() == [-900.0]
    assert home.notes == ("aggregate: 1 minutes are negative: feed-in, or noise",)


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
