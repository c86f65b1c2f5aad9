from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from meterveil.data.household import Household
from meterveil.data.windows import Scaler, channel_w, complete_starts, complete_windows, sliding_windows
from meterveil.errors import InputError


def test_windows_are_views_of_the_record():
    values = np.arange(10.0)
    views = sliding_windows(values, 4, stride=3)
    assert views.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert np.shares_memory(views, values)


def test_a_window_with_an_unknown_minute_is_dropped():
    values = np.arange(8.0)
    values[4] = np.nan
    assert complete_windows(values, 3).tolist() == [[0, 1, 2], [1, 2, 3], [5, 6, 7]]
    assert complete_starts(values, 3).tolist() == [0, 1, 5]


def test_channels_of_a_window_stay_aligned():
    channels = np.stack([np.arange(8.0), np.arange(8.0) * 10])
    channels[0, 1], channels[1, 6] = np.nan, np.nan
    kept = complete_windows(channels, 2, stride=2)
    assert kept.tolist() == [[[2, 3], [4, 5]], [[20, 30], [40, 50]]]


def test_dropping_windows_agrees_with_looking_at_each():
    rng = np.random.default_rng(0)
    values = rng.random(500)
    values[rng.random(500) < 0.05] = np.nan
    for length, stride in [(1, 1), (7, 3), (60, 30), (500, 1)]:
        views = sliding_windows(values, length, stride)
        expected = views[~np.isnan(views).any(axis=1)]
        np.testing.assert_array_equal(complete_windows(values, length, stride), expected)


def test_a_window_longer_than_the_record_is_refused():
    with pytest.raises(InputError, match="a window of 60 minutes does not fit into 59"):
        sliding_windows(np.zeros(59), 60)
    with pytest.raises(InputError, match="give 1 or more of both"):
        complete_starts(np.zeros(59), 10, stride=0)


def test_a_scaler_gives_zero_mean_and_unit_spread_and_back():
    watts = np.array([100.0, 300.0, np.nan, 500.0])
    scaler = Scaler.fit(watts)
    assert scaler == Scaler(300.0, pytest.approx(np.sqrt(80000 / 3)))
    scaled = scaler.transform(watts)
    assert np.nanmean(scaled) == pytest.approx(0.0)
    assert np.nanstd(scaled) == pytest.approx(1.0)
    np.testing.assert_allclose(scaler.inverse(scaled), watts)


def test_a_channel_that_never_changes_scales_to_zeros():
    np.testing.assert_array_equal(Scaler.fit(np.full(5, 7.0)).transform(np.full(5, 7.0)), np.zeros(5))


def test_a_scaler_does_not_see_the_test_day():
    start = date(2021, 6, 1)
    minutes = pd.date_range(pd.Timestamp(start, tz="UTC"), periods=3 * 1440, freq="min")
    watts = np.random.default_rng(1).random(len(minutes)) * 1000
    home = Household("home", minutes, watts, {"kettle": watts / 2})
    training = [start, start + timedelta(days=2)]
    before = Scaler.fit_days(home, training), Scaler.fit_days(home, training, "kettle")
    watts[1440:2880] = 9999.0
    home.appliances_w["kettle"][1440:2880] = 9999.0
    assert (Scaler.fit_days(home, training), Scaler.fit_days(home, training, "kettle")) == before
    watts[0] += 1.0
    assert Scaler.fit_days(home, training) != before[0]


def test_nothing_to_fit_is_refused():
    minutes = pd.date_range("2021-06-01", periods=1440, freq="min", tz="UTC")
    home = Household("home", minutes, np.full(1440, np.nan), {})
    with pytest.raises(InputError, match="no known minute"):
        Scaler.fit_days(home, [date(2021, 6, 1)])
    with pytest.raises(InputError, match="no training day"):
        Scaler.fit_days(home, [])
    with pytest.raises(InputError, match="home has no oven"):
        channel_w(home, "oven")
