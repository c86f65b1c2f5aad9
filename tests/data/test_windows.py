import numpy as np
import pytest

from meterveil.data.splits import Scaler, complete_starts, sliding_windows
from meterveil.errors import InputError


def test_windows_are_views_of_the_record():
    values = np.arange(10.0)
    views = sliding_windows(values, 4, stride=3)
    assert views.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert np.shares_memory(views, values)


def test_a_window_is_complete_where_every_channel_knows_all_minutes():
    rng = np.random.default_rng(0)
    values = rng.random((2, 500))
    values[rng.random((2, 500)) < 0.02] = np.nan
    for length, stride in [(1, 1), (7, 3), (60, 30), (500, 1)]:
        views = sliding_windows(values, length, stride)  # (channel, window, minute)
        expected = np.flatnonzero(~np.isnan(views).any(axis=(0, 2))) * stride
        np.testing.assert_array_equal(complete_starts(values, length, stride), expected)


def test_a_window_longer_than_the_record_is_refused():
    with pytest.raises(InputError, match="a window of 60 minutes does not fit into 59"):
        sliding_windows(np.zeros(59), 60)
    with pytest.raises(InputError, match="give 1 or more of both"):
        complete_starts(np.zeros(59), 10, stride=0)


def test_a_scaler_gives_zero_mean_and_unit_spread():
    watts = np.array([100.0, 300.0, np.nan, 500.0])
    scaler = Scaler.fit(watts)
    assert scaler == Scaler(300.0, pytest.approx(np.sqrt(80000 / 3)))
    scaled = scaler.transform(watts)
    assert (np.nanmean(scaled), np.nanstd(scaled)) == (pytest.approx(0.0), pytest.approx(1.0))
    np.testing.assert_array_equal(Scaler.fit(np.full(5, 7.0)).transform(np.full(5, 7.0)), np.zeros(5))
    with pytest.raises(InputError, match="all unknown"):
        Scaler.fit(np.full(5, np.nan))
