from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.core.arrays import runs
from meterveil.data.coverage import by_day, channels, general_notes, longest_gaps, silent_channels
from meterveil.data.household import Household
from meterveil.plots.household import channel_rows

MINUTES = pd.date_range("2024-03-30", periods=1440 + 1380, freq="min", tz="Europe/London", unit="s")


@pytest.fixture
def household():
    aggregate_w, kettle_w, lamp_w = (np.full(len(MINUTES), watts) for watts in (1000.0, 100.0, 0.0))
    aggregate_w[100:400] = kettle_w[100:400] = np.nan
    kettle_w[1440 : 1440 + 690] = np.nan
    lamp_w[:] = np.nan
    notes = ("kettle: 3 minutes filled", "drawn by hand")
    units = {"aggregate": "VA"}
    return Household("here", MINUTES, aggregate_w, {"kettle": kettle_w, "lamp": lamp_w}, units, notes)


def test_each_channel_says_its_share_unit_energy_and_notes(household):
    aggregate, kettle, lamp = channels(household)
    assert (aggregate.unit, kettle.unit) == ("VA", "W")
    assert aggregate.coverage == pytest.approx(1 - 300 / len(MINUTES))
    assert kettle.energy_kwh_per_day == pytest.approx(2.4)
    assert np.isnan(lamp.energy_kwh_per_day)
    assert kettle.notes == ("3 minutes filled",)
    assert general_notes(household) == ("drawn by hand",)


def test_the_longest_gaps_come_first_and_channels_share_them(household):
    lamp, kettle, both = longest_gaps(household)
    assert (lamp.channels, lamp.minutes) == (("lamp",), len(MINUTES))
    assert (kettle.channels, kettle.minutes, kettle.start) == (("kettle",), 690, MINUTES[1440])
    assert (both.channels, both.minutes, both.start) == (("aggregate", "kettle"), 300, MINUTES[100])


def test_a_days_share_is_of_its_own_minutes_also_where_the_clocks_change(household):
    days, known = by_day(household)
    assert days == [date(2024, 3, 30), date(2024, 3, 31)]
    assert known[0] == pytest.approx([1 - 300 / 1440, 1.0])
    assert known[1] == pytest.approx([1 - 300 / 1440, 0.5])
    assert silent_channels(household) == ["lamp"]


def test_a_channel_of_which_little_is_known_tells_its_energy_in_the_days_that_are_known(household):
    household.appliances_w["kettle"][288:] = np.nan
    rows = {name: energy for name, _, _, energy, _ in channel_rows(household)}
    assert rows["aggregate"] == "24.00\u00a0kVAh"
    assert rows["kettle"].split("\u00a0") == ["0.17", "kWh", "in", "0.1", "days"]
    assert rows["lamp"] == ""


def test_events_apart_by_more_than_the_pause_stay_apart():
    on = np.array([1, 0, 0, 1, 0, 1, 1], dtype=bool)
    starts, stops = runs(on, pause=1)
    assert starts.tolist() == [0, 3]
    assert stops.tolist() == [1, 7]
    assert [found.size for found in runs(np.zeros(5, dtype=bool), pause=3)] == [0, 0]
