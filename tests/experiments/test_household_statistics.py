"""Statistics of households agree with counts by hand."""

import numpy as np
import pandas as pd
import pytest

from experiments import household_statistics
from experiments.household_statistics import (
    autocorrelation,
    compare,
    comparison_table,
    left_out,
    measure,
    measure_appliance,
    submetered_share,
)
from meterveil.data.household import Household
from meterveil.data.load import load


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
    assert left_out(home) == ["pump: known for less than 20% of the record, left out of the sub-metered share"]
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
        {"mine": {"peak (W)": 12345.6, "share": 0.12345}, "theirs": {"peak (W)": 50.04, "kettle: duty": np.nan}}
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


def test_the_command_prints_a_table_and_notes_on_standard_error(capsys, real_data):
    household_statistics.main(["synthetic", f"{real_data / 'redd'}:2"])
    printed = capsys.readouterr()
    assert printed.out.startswith("| statistic | synthetic | REDD house_2 |")
    assert "note: synthetic: drawn from models" in printed.err
