from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from meterveil.data.household import Household
from meterveil.data.splits import (
    Scaler,
    check_recorded,
    complete_starts,
    consecutive_pieces,
    day_coverage,
    day_range,
    held_out_days,
    sliding_windows,
    training_and_validation_days,
)
from meterveil.errors import InputError

FIRST = date(2021, 6, 1)


def household(days: int, timezone: str = "Europe/London") -> Household:
    start = pd.Timestamp(FIRST, tz=timezone)
    minutes = pd.date_range(start, periods=days * 1440, freq="min")
    watts = np.full(len(minutes), 100.0)
    return Household("home", minutes, watts, {"kettle": np.zeros(len(minutes))})


def days(first: int, last: int) -> tuple[date, ...]:
    return day_range(FIRST + timedelta(days=first), FIRST + timedelta(days=last))


def test_a_range_of_days_leaves_out_its_end():
    assert day_range(date(2013, 3, 19), date(2013, 3, 21)) == (date(2013, 3, 19), date(2013, 3, 20))


def test_the_last_fifth_of_the_days_with_readings_validates():
    home = household(12)
    home.aggregate_w[1440:2880] = np.nan
    assert training_and_validation_days(home) == ((*days(0, 1), *days(2, 10)), days(10, 12))
    with pytest.raises(InputError, match="home has 1 days with readings; an attacker needs two"):
        training_and_validation_days(household(1))


def test_a_day_that_is_not_recorded_or_only_in_part_or_without_a_reading_is_refused():
    with pytest.raises(InputError, match="does not record 2021-06-13 from midnight to midnight"):
        check_recorded(household(12), days(0, 13))
    whole = household(3)
    part = Household("home", whole.minutes[60:], whole.aggregate_w[60:])
    with pytest.raises(InputError, match="does not record 2021-06-01"):
        check_recorded(part, days(0, 2))
    whole.aggregate_w[1440:2880] = np.nan
    with pytest.raises(InputError, match="has no aggregate reading on 2021-06-02"):
        check_recorded(whole, days(0, 2))
    whole.appliances_w["kettle"][1440:2880] = np.nan
    with pytest.raises(InputError, match="leave kettle out with --appliances"):
        check_recorded(whole.metered_by("submeters"), days(0, 2))


def test_held_out_days_are_well_covered_and_unseen():
    home = household(20)
    home.appliances_w["kettle"][1440 * 12 : 1440 * 12 + 100] = np.nan
    chosen = held_out_days(home, seen=days(0, 5))
    assert chosen == (*days(5, 12), *days(13, 20))
    assert day_coverage(home)[FIRST + timedelta(days=12)] == pytest.approx(1340 / 1440)


def test_too_few_held_out_days_say_how_many_there_are():
    with pytest.raises(InputError, match=r"home has 7 held-out days .* 14 are needed"):
        held_out_days(household(12), seen=days(0, 5))


def test_pieces_do_not_reach_across_a_day_that_is_left_out():
    pieces = consecutive_pieces(household(6), [*days(0, 2), *days(3, 4)])
    assert [piece.days() for piece in pieces] == [list(days(0, 2)), list(days(3, 4))]
    assert consecutive_pieces(household(2), []) == []


def test_windows_are_views_of_the_record():
    values = np.arange(10.0)
    views = sliding_windows(values, 8)
    assert views.tolist() == [list(range(start, start + 8)) for start in range(3)]
    assert np.shares_memory(views, values)


def test_a_window_is_complete_where_every_channel_knows_all_minutes():
    rng = np.random.default_rng(0)
    values = rng.random((2, 500))
    values[rng.random((2, 500)) < 0.02] = np.nan
    for length in (1, 7, 60, 500):
        views = sliding_windows(values, length)  # (channel, window, minute)
        expected = np.flatnonzero(~np.isnan(views).any(axis=(0, 2)))
        np.testing.assert_array_equal(complete_starts(values, length), expected)


def test_a_window_longer_than_the_record_is_refused():
    with pytest.raises(InputError, match="a window of 60 minutes does not fit into 59"):
        sliding_windows(np.zeros(59), 60)


def test_a_scaler_gives_zero_mean_and_unit_spread():
    watts = np.array([100.0, 300.0, np.nan, 500.0])
    scaler = Scaler.fit(watts)
    assert scaler == Scaler(300.0, pytest.approx(np.sqrt(80000 / 3)))
    scaled = scaler.transform(watts)
    assert (np.nanmean(scaled), np.nanstd(scaled)) == (pytest.approx(0.0), pytest.approx(1.0))
    np.testing.assert_array_equal(Scaler.fit(np.full(5, 7.0)).transform(np.full(5, 7.0)), np.zeros(5))
    with pytest.raises(InputError, match="all unknown"):
        Scaler.fit(np.full(5, np.nan))
