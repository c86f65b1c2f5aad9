import numpy as np
import pytest
from worlds import play

from meterveil.defenders.published import Nill

FULL = 0.9 - 1e-9


def test_the_first_load_is_the_level_of_the_stable_state():
    trace = play(Nill(), [400.0, 2400.0, 100.0])
    np.testing.assert_allclose(trace.meter_w[0], 400.0)


def test_a_battery_that_would_overflow_is_emptied_half_an_ampere_below_the_load():
    # 0.5 A at 230 V are 115 W
    trace = play(Nill(), [1000.0, 400.0, 400.0, 500.0], soc=FULL)
    np.testing.assert_allclose(trace.meter_w[0], [1000.0, 285.0, 285.0, 285.0], atol=0.01)


def test_a_high_recovery_never_asks_for_less_than_nothing():
    trace = play(Nill(), [1000.0, 60.0, 60.0], soc=FULL)
    np.testing.assert_allclose(trace.meter_w[0], [1000.0, 0.0, 0.0], atol=0.01)


def test_a_high_recovery_follows_a_load_that_falls_below_its_level_while_the_battery_is_full():
    trace = play(Nill(), [1000.0, 400.0, 200.0], soc=0.9)
    np.testing.assert_allclose(trace.meter_w[0, 1], 285.0)
    # 115 W for a minute made room for 115 W: 85 W more than the load still fit
    np.testing.assert_allclose(trace.meter_w[0, 2], 285.0)
    falls = play(Nill(), [1000.0, 400.0, 100.0], soc=0.9)
    np.testing.assert_allclose(falls.meter_w[0, 2], 0.0)


def test_a_rise_by_five_amperes_ends_a_high_recovery_and_moves_the_level_half_way():
    # recovery at 285 W saw 400 and 600 W: level (1000 + 500) / 2; 5 A are 1,150 W, so 1,435 W end it
    trace = play(Nill(), [1000.0, 400.0, 600.0, 1434.0, 1436.0], soc=FULL)
    seen_w = np.mean([400.0, 600.0, 1434.0])
    expected_w = [1000.0, 285.0, 285.0, 285.0, (1000.0 + seen_w) / 2]
    np.testing.assert_allclose(trace.meter_w[0], expected_w, atol=0.01)


def test_a_high_recovery_ends_where_half_of_the_usable_range_is_left():
    load_w = np.r_[1000.0, np.full(2000, 300.0)]
    trace = play(Nill(), load_w, soc=0.9, budget_kwh=np.inf)
    recovering = np.isclose(trace.meter_w[0], 185.0)
    # 0.4 of 8 kWh at 115 W
    assert recovering.sum() == pytest.approx(3200.0 / 115.0 * 60.0, abs=1.0)
    assert trace.soc[0].min() == pytest.approx(0.5, abs=1e-3)
    after_w = trace.meter_w[0, np.flatnonzero(recovering)[-1] + 1]
    assert after_w == pytest.approx((1000.0 + 300.0) / 2)


def test_an_empty_battery_is_filled_at_the_recovery_level_to_four_fifths_of_the_range():
    load_w = np.r_[100.0, np.full(2000, 200.0)]
    trace = play(Nill(), load_w, soc=0.1, budget_kwh=np.inf)
    recovering = np.isclose(trace.meter_w[0], 500.0)
    # 0.8 of the range of 6.4 kWh at 300 W
    assert recovering.sum() == pytest.approx(0.8 * 6400.0 / 300.0 * 60.0, abs=1.0)
    assert trace.soc[0].max() == pytest.approx(0.1 + 0.8 * 0.8, abs=1e-3)
    after_w = trace.meter_w[0, np.flatnonzero(recovering)[-1] + 1]
    assert after_w == pytest.approx((100.0 + 200.0) / 2)


def test_a_gap_changes_nothing_but_the_minutes_that_it_takes():
    with_gap = play(Nill(), [1000.0, 400.0, np.nan, 600.0, 1500.0], soc=FULL)
    without = play(Nill(), [1000.0, 400.0, 600.0, 1500.0], soc=FULL)
    np.testing.assert_allclose(np.delete(with_gap.meter_w[0], 2), without.meter_w[0])


def test_lower_voltage_means_smaller_steps():
    trace = play(Nill(volts=120.0), [1000.0, 400.0], soc=0.9)
    np.testing.assert_allclose(trace.meter_w[0], [1000.0, 340.0])
