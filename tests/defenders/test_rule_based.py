import numpy as np
from worlds import play

from meterveil.defenders.rule_based import RuleBased


def test_a_steady_load_is_left_alone():
    ramp_w = 100.0 + 199.0 * np.arange(20)
    np.testing.assert_array_equal(play(RuleBased(), ramp_w).power_w, 0.0)


def test_a_step_is_answered_by_the_signature_nearest_to_it():
    # 2,000 W lie nearer to the kettle's 2,500 than to the toaster's 900; 800 W nearer to the toaster
    trace = play(RuleBased(), [300.0, 2300.0, 2300.0, 2300.0, 1500.0, 1500.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 1500.0, 2500.0, 0.0, 900.0, 0.0])


def test_a_battery_above_half_answers_by_discharging_behind_the_load():
    trace = play(RuleBased(), [300.0, 2300.0, 2300.0, 2300.0], soc=0.6)
    np.testing.assert_allclose(trace.power_w[0], [0.0, -1500.0, -2300.0, 0.0])


def test_a_decoy_under_way_is_not_interrupted_by_further_steps():
    trace = play(RuleBased(), [300.0, 2300.0, 300.0, 300.0, 300.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 1500.0, 2500.0, 0.0, 0.0])


def test_a_step_behind_a_gap_counts_from_the_last_known_load():
    trace = play(RuleBased(), [300.0, np.nan, 310.0, np.nan, 1300.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 0.0, 0.0, 0.0, 900.0])
