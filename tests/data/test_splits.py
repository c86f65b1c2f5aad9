from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from meterveil.data.household import Household
from meterveil.data.splits import (
    Scaler,
    Split,
    complete_starts,
    consecutive_pieces,
    day_coverage,
    day_range,
    held_out_days,
    sliding_windows,
    split_days,
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


def test_the_last_fifth_of_the_training_days_validates():
    split = split_days(household(12), days(0, 10), days(10, 11))
    assert split == Split(days(0, 8), days(8, 10), days(10, 11))


@pytest.mark.parametrize(("training", "test"), [((0, 10), (9, 11)), ((0, 10), (0, 1)), ((0, 10), (5, 6))])
def test_a_day_that_trains_and_tests_is_refused_by_name(training, test):
    shared = FIRST + timedelta(days=test[0])
    with pytest.raises(InputError, match=f"{shared} is in .* and in test; give each day to one part only"):
        split_days(household(12), days(*training), days(*test))


def test_a_split_that_is_made_by_hand_is_checked_too():
    with pytest.raises(InputError, match="is in train and in validation"):
        Split(days(0, 3), days(2, 4), days(5, 6))
    with pytest.raises(InputError, match="give each day once, in order"):
        Split((FIRST, FIRST), (), ())


def test_a_day_that_the_household_lacks_is_refused():
    with pytest.raises(InputError, match="does not record 2021-06-13 from midnight to midnight"):
        split_days(household(12), days(0, 10), days(12, 13))


def test_a_day_that_is_recorded_in_part_is_refused():
    whole = household(3)
    part = Household("home", whole.minutes[60:], whole.aggregate_w[60:])
    with pytest.raises(InputError, match="does not record 2021-06-01"):
        split_days(part, days(0, 1), days(1, 2), validation_share=0.0)


def test_a_day_of_nothing_but_gaps_is_refused():
    home = household(3)
    home.aggregate_w[1440:2880] = np.nan
    with pytest.raises(InputError, match="has no aggregate reading on 2021-06-02"):
        split_days(home, days(0, 1), days(1, 2), validation_share=0.0)


def test_a_validation_share_that_leaves_nothing_to_learn_is_refused():
    with pytest.raises(InputError, match="1 training days leave none to learn from"):
        split_days(household(3), days(0, 1), days(1, 2), validation_share=0.9)
    with pytest.raises(InputError, match=r"validation share of 1\.5"):
        split_days(household(3), days(0, 1), days(1, 2), validation_share=1.5)


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
