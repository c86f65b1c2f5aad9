"""Records of any make become whole days with a known interval, or a plain refusal."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.audit.record import cut_out, interval_minutes, whole_days
from meterveil.data.household import Household
from meterveil.errors import InputError


def record(start, count, watts=None, tz="Europe/London"):
    minutes = pd.date_range(start, periods=count, freq="min", tz=tz)
    rng = np.random.default_rng(0)
    return Household("home", minutes, rng.uniform(100, 3000, count) if watts is None else watts)


def test_a_record_that_begins_at_noon_gets_unknown_minutes_before():
    whole = whole_days(record("2024-03-01 12:00", 1440))
    assert [str(day) for day in whole.days()] == ["2024-03-01", "2024-03-02"]
    assert np.isnan(whole.aggregate_w[:720]).all()
    assert not np.isnan(whole.aggregate_w[720:2160]).any()


def test_the_last_month_is_read_unless_other_days_are_asked_for():
    home = record("2024-01-01", 1440 * 60)
    assert cut_out(home, None, None).days()[0] == date(2024, 1, 30)
    assert len(cut_out(home, None, None).days()) == 31
    chosen = cut_out(home, date(2024, 1, 3), date(2024, 1, 5))
    assert chosen.days() == [date(2024, 1, 3), date(2024, 1, 4)]


def test_a_last_day_that_has_hardly_begun_is_left_out():
    assert len(cut_out(record("2024-01-01", 1440 * 2 + 60), None, None).days()) == 2


def test_days_that_are_not_recorded_are_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"2024-01-01 up to, not including, 2024-01-03"):
        cut_out(record("2024-01-01", 2880), date(2023, 12, 1), None)


def test_too_short_a_record_is_refused():
    with pytest.raises(InputError, match=r"100 minutes are known.*360"):
        cut_out(record("2024-01-01", 100), None, None)


def test_a_meter_that_never_changes_is_refused():
    with pytest.raises(InputError, match="reads 5 W in every minute"):
        cut_out(record("2024-01-01", 1440, np.full(1440, 5.0)), None, None)


def test_a_meter_that_was_never_read_is_refused():
    with pytest.raises(InputError, match="no reading"):
        cut_out(record("2024-01-01", 1440, np.full(1440, np.nan)), None, None)


@pytest.mark.parametrize("step", [5, 15, 30, 60])
@pytest.mark.parametrize("offset", [0, 7])
def test_held_readings_betray_their_interval(step, offset):
    rng = np.random.default_rng(1)
    watts = np.repeat(rng.uniform(100, 900, 2880 // step), step)
    assert interval_minutes(np.roll(watts, offset)) == step


def test_true_minutes_are_told_from_held_ones():
    assert interval_minutes(record("2024-01-01", 1440).aggregate_w) == 1
    pulses = np.where(np.arange(1440) % 480 < 3, 2000.0, 100.0)
    assert interval_minutes(pulses) == 1


def test_an_interval_shows_through_rounding_and_through_stamps_within_a_minute():
    rng = np.random.default_rng(1)
    watts = np.repeat(rng.uniform(100, 900, 96), 15) + rng.normal(0, 1e-9, 1440)
    assert interval_minutes(watts) == 15
    blended = watts.copy()
    blended[15::15] = (watts[14:-1:15] + watts[15::15]) / 2
    assert interval_minutes(blended) == 15
