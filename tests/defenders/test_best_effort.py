import numpy as np
from worlds import play

from meterveil.defenders.best_effort import BestEffort


def test_the_first_reading_is_kept_whatever_the_load_does():
    trace = play(BestEffort(), [300.0, 2300.0, 2300.0, 50.0, 0.0, 700.0])
    np.testing.assert_allclose(trace.meter_w[0], 300.0)
    np.testing.assert_allclose(trace.power_w[0], [0.0, -2000.0, -2000.0, 250.0, 300.0, -400.0])


def test_an_empty_battery_gives_what_it_has_and_the_reading_so_reached_is_kept():
    # 0.01 of 8 kWh above the minimum is 80 Wh: 4,800 W for one minute, so 2,000 + 2,000 + 800 W
    trace = play(BestEffort(), [300.0, 2300.0, 2300.0, 2300.0, 2300.0, 1000.0], soc=0.11)
    np.testing.assert_allclose(trace.meter_w[0], [300.0, 300.0, 300.0, 1500.0, 2300.0, 2300.0])
    np.testing.assert_allclose(trace.power_w[0, -1], 1300.0)


def test_a_full_battery_lets_the_reading_fall_to_the_load():
    trace = play(BestEffort(), [1000.0, 400.0, 400.0, 900.0], soc=0.9)
    np.testing.assert_allclose(trace.meter_w[0], [1000.0, 400.0, 400.0, 400.0])


def test_a_change_beyond_the_inverter_is_followed_by_the_rest_of_it():
    trace = play(BestEffort(), [300.0, 5000.0, 300.0])
    np.testing.assert_allclose(trace.power_w[0], [0.0, -4000.0, 700.0])


def test_the_reading_before_a_gap_is_kept_after_it():
    trace = play(BestEffort(), [300.0, np.nan, np.nan, 800.0])
    np.testing.assert_allclose(trace.power_w[0], [0.0, 0.0, 0.0, -500.0])
