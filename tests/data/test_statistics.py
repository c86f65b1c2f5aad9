from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.bench.household_page import channel_rows
from meterveil.data.household import Household
from meterveil.data.load import load
from meterveil.data.statistics import (
    autocorrelation,
    by_day,
    channels,
    compare,
    comparison_table,
    events,
    general_notes,
    left_out,
    little_known,
    longest_gaps,
    measure,
    measure_appliance,
    silent_channels,
    submetered_share,
)


def house(aggregate_w, name="home", **appliances_w):
    minutes = pd.date_range("2024-04-15", periods=len(aggregate_w), freq="min", tz="Europe/London")
    return Household(
        name,
        minutes,
        np.asarray(aggregate_w, dtype=float),
        {key: np.asarray(watts, dtype=float) for key, watts in appliances_w.items()},
    )


def test_a_day_of_known_events_measures_as_counted_by_hand():
    kettle_w = np.zeros(1440)
    kettle_w[100:102] = [2000, 3000]
    kettle_w[500:504] = 2000
    assert measure_appliance("kettle", kettle_w) == pytest.approx(
        {
            "duty cycle": 6 / 1440,
            "events/day": 2,
            "event length, median (min)": 3,
            "event length, p90 (min)": 3.8,
            "event power (W)": (2500 + 2000) / 2,
            "energy (kWh/day)": (2000 + 3000 + 4 * 2000) / 60_000,
        }
    )


def test_an_appliance_is_on_from_its_threshold_upwards():
    assert measure_appliance("kettle", np.full(10, 1000.0))["duty cycle"] == 1
    assert measure_appliance("kettle", np.full(10, 999.9))["duty cycle"] == 0


def test_the_second_of_a_kind_and_a_washer_dryer_are_measured_as_what_they_are():
    watts = np.tile([30.0, 0.0], 50)
    for name in ("dishwasher_2", "dish_washer_2"):
        assert measure_appliance(name, watts) == measure_appliance("dishwasher", watts)
    assert measure_appliance("washer_dryer", watts) == measure_appliance("washing_machine", watts)
    assert measure_appliance("iron", watts)["duty cycle"] == 0


def test_a_washing_machine_that_soaks_is_still_washing():
    watts = np.zeros(200)
    watts[10:30] = 2000
    watts[50:60] = 300
    assert measure_appliance("washing_machine", watts)["event length, median (min)"] == 50
    assert measure_appliance("kettle", watts)["event length, median (min)"] == 20


def test_events_apart_by_more_than_the_pause_stay_apart():
    on = np.array([1, 0, 0, 1, 0, 1, 1], dtype=bool)
    starts, stops = events(on, pause_min=1)
    assert starts.tolist() == [0, 3]
    assert stops.tolist() == [1, 7]
    assert [found.size for found in events(np.zeros(5, dtype=bool), pause_min=3)] == [0, 0]


def test_unknown_minutes_change_no_rate():
    watts = np.tile([0.0, 0.0, 2000.0, 0.0], 360)
    gappy = np.concatenate([watts, np.full(1440, np.nan)])
    assert measure_appliance("kettle", gappy) == measure_appliance("kettle", watts)
    known, with_gap = measure(house(watts)), measure(house(gappy))
    for label in ("energy (kWh/day)", "steps over 200 W (share)", "base load (W)"):
        assert with_gap[label] == known[label]


def test_a_gap_is_not_a_step():
    assert measure(house([0, 0, np.nan, 1000, 1000]))["steps over 200 W (share)"] == 0
    assert measure(house([0, 0, 1000, 1000, 1000]))["steps over 200 W (share)"] == pytest.approx(1 / 4)


def test_a_household_of_gaps_has_no_figures_and_raises_no_warning():
    figures = measure(house(np.full(2000, np.nan), kettle=np.full(2000, np.nan)))
    assert figures.pop("sub-metered share") == 0
    assert np.all(np.isnan(list(figures.values())))


def test_sub_meters_with_different_gaps_are_each_compared_where_they_are_known():
    home = house([100, 100, 100, 100], fridge=[50, 50, np.nan, np.nan], kettle=[np.nan, np.nan, 20, 20])
    assert submetered_share(home) == pytest.approx(0.5 + 0.2)


def test_a_sub_meter_of_which_little_is_known_does_not_speak_for_the_record():
    pump_w = [100] + [np.nan] * 9
    home = house([100] * 10, fridge=[20] * 10, pump=pump_w)
    assert submetered_share(home) == pytest.approx(0.2)
    assert left_out(home) == [
        "pump: known for less than 20% of the record, left out of the sub-metered share"
    ]
    assert left_out(house([100] * 10, fridge=[20] * 10, lamp=[np.nan] * 10)) == []


def test_the_sub_metered_share_of_a_real_house_is_that_of_its_steady_channels(real_data):
    assert submetered_share(load(real_data / "ukdale", 1)) == pytest.approx(0.21, abs=0.005)


def test_autocorrelation_is_one_at_the_period_and_minus_one_at_half_of_it():
    wave = np.sin(2 * np.pi * np.arange(1000) / 20)
    assert autocorrelation(wave, 20) == pytest.approx(1)
    assert autocorrelation(wave, 10) == pytest.approx(-1)


def test_autocorrelation_equals_the_textbook_correlation_of_the_known_pairs():
    watts = np.random.default_rng(3).normal(size=300).cumsum()
    watts[40:60] = np.nan
    pairs = np.array([(a, b) for a, b in zip(watts[:-5], watts[5:], strict=True) if not np.isnan(a + b)])
    assert autocorrelation(watts, 5) == pytest.approx(np.corrcoef(pairs.T)[0, 1])


def test_a_constant_or_too_short_trace_has_no_autocorrelation():
    assert np.isnan(autocorrelation(np.full(100, 7.0), 5))
    assert np.isnan(autocorrelation(np.arange(5.0), 5))


def test_the_comparison_has_a_row_for_each_figure_and_leaves_missing_ones_empty():
    table = comparison_table(
        {
            "mine": {"peak (W)": 12345.6, "share": 0.12345},
            "theirs": {"peak (W)": 50.04, "kettle: duty": np.nan},
        }
    )
    assert table.splitlines() == [
        "| statistic | mine | theirs |",
        "| --- | ---: | ---: |",
        "| peak (W) | 12,346 | 50.0 |",
        "| share | 0.123 |  |",
        "| kettle: duty |  |  |",
    ]


def test_households_are_compared_under_their_names():
    table = compare([house(np.ones(1500), "here"), house(np.ones(1500), "there", fridge=np.ones(1500))])
    assert table.startswith("| statistic | here | there |")
    assert "| fridge: duty cycle |  | 0 |" in table


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
    assert little_known(household) == ["kettle"]
    rows = {name: energy for name, _, _, energy, _ in channel_rows(household)}
    assert rows["aggregate"] == "24.00\u00a0kVAh"
    assert rows["kettle"].split("\u00a0") == ["0.17", "kWh", "in", "0.1", "days"]
    assert rows["lamp"] == ""
