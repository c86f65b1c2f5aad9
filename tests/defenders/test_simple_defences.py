"""Rules without training, on loads written down minute by minute; and the VERSION of every defence."""

import numpy as np
import pytest
from worlds import LIBRARY, play

from meterveil.defenders import DEFENDERS, version_of
from meterveil.defenders.baselines import NoDefence, RandomDecoys, RuleBased
from meterveil.defenders.flat import Flat, FlatDecoys
from meterveil.defenders.published import BestEffort
from meterveil.defenders.training_settings import METHODS
from meterveil.errors import InputError


@pytest.mark.parametrize("name", [*DEFENDERS, *METHODS, "rationed", "random_equal:7.5"])
def test_every_defence_and_method_has_a_version(name):
    assert version_of(name) == 1


def test_the_version_of_an_unknown_defence_is_refused():
    with pytest.raises(InputError, match="flta"):
        version_of("flta")


def test_no_defence_leaves_the_meter_alone():
    trace = play(NoDefence(), np.linspace(0.0, 3000.0, 300))
    np.testing.assert_array_equal(trace.meter_w, trace.load_w)


def test_random_decoys_start_with_their_rate_and_charge_and_discharge_alike():
    trace = play(RandomDecoys(rate=0.05), np.full((200, 1440), 5000.0), budget_kwh=np.inf, capacity_kwh=1e4)
    starts = (trace.power_w[:, 1:] != 0.0) & (trace.power_w[:, :-1] == 0.0)
    assert 0.04 < starts.sum() / (trace.power_w == 0.0).sum() < 0.06
    assert set(np.unique(trace.power_w)) == {0.0, 1500.0, 2500.0, 900.0, -1500.0, -2500.0, -900.0}


def test_a_flat_meter_hides_a_kettle_that_the_battery_can_carry():
    load_w = np.full(1440, 300.0)
    load_w[600:603] = 2500.0
    trace = play(Flat(), load_w)
    assert trace.load_w[0, 595:610].std() > 800.0
    assert trace.meter_w[0, 595:610].std() < 10.0


def test_a_flat_meter_brings_the_battery_back_to_its_middle():
    rng = np.random.default_rng(0)
    trace = play(Flat(), np.abs(rng.normal(350.0, 250.0, (16, 5 * 1440))), budget_kwh=np.inf)
    assert np.abs(trace.soc[:, -1] - 0.5).max() < 0.1


def test_a_flat_meter_is_not_misled_by_what_runs_in_its_first_minutes():
    load_w = np.full(1440, 300.0)
    load_w[:5] = 2300.0
    trace = play(Flat(), load_w)
    assert np.abs(trace.meter_w[0, 120:] - 300.0).max() < 200.0
    assert trace.soc.max() < 0.7


def test_without_decoys_it_is_flat():
    load_w = np.abs(np.random.default_rng(0).normal(400.0, 300.0, (4, 600)))
    decoys = play(FlatDecoys(rate=0.0, flat=Flat()), load_w)
    np.testing.assert_allclose(decoys.meter_w, play(Flat(), load_w).meter_w)


def test_the_level_is_lowered_by_what_decoys_draw_on_average():
    # (4,000 + 900) / 2 watt-minutes for a tenth of the decisions, which last 1.05 minutes on average
    assert FlatDecoys(rate=0.1).mean_w(LIBRARY) == pytest.approx(0.1 * 2450.0 / 1.05)


def test_a_decoy_stands_on_the_level_and_hides_the_load_below_it():
    trace = play(FlatDecoys(rate=1.0), np.full((50, 2), 2000.0), discharge_w=1e9)
    level_w = 2000.0 - FlatDecoys(rate=1.0).mean_w(LIBRARY)
    kettle = np.isclose(trace.power_w[:, 1] - trace.power_w[:, 0], 1000.0)
    assert kettle.any()
    np.testing.assert_allclose(trace.meter_w[kettle, 0], level_w + 1500.0)
    assert np.all(
        np.isclose(trace.meter_w[:, 0], level_w + 1500.0) | np.isclose(trace.meter_w[:, 0], level_w + 900.0)
    )


def test_decoys_do_not_fill_the_battery():
    load_w = np.abs(np.random.default_rng(1).normal(400.0, 200.0, (16, 3 * 1440)))
    trace = play(FlatDecoys(), load_w, budget_kwh=np.inf)
    assert trace.soc[:, -1].mean() == pytest.approx(0.5, abs=0.03)
    assert np.abs(trace.soc - 0.5).max() < 0.2


def test_a_real_use_looks_like_none_and_a_decoy_like_one():
    load_w = np.full((32, 1440), 300.0)
    load_w[:, 700:703] = 2500.0
    trace = play(FlatDecoys(), load_w)
    rises = np.diff(trace.meter_w, axis=1) > 800.0
    assert rises[:, 690:705].sum() < 10
    assert rises.sum() > 5 * 32


def test_best_effort_keeps_the_first_reading_whatever_the_load_does():
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


def test_a_steady_load_is_left_alone():
    ramp_w = 100.0 + 199.0 * np.arange(20)
    np.testing.assert_array_equal(play(RuleBased(), ramp_w).power_w, 0.0)


def test_a_step_is_answered_by_the_signature_nearest_to_it():
    # 2,000 W lie nearer to the kettle's 2,500 than to the toaster's 900; 800 W nearer to the toaster
    trace = play(RuleBased(), [300.0, 2300.0, 2300.0, 2300.0, 1500.0, 1500.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 1500.0, 2500.0, 0.0, 900.0, 0.0])


def test_a_battery_above_half_answers_by_discharging_within_the_load():
    trace = play(RuleBased(), [300.0, 2300.0, 2300.0, 2300.0], soc=0.6)
    np.testing.assert_allclose(trace.power_w[0], [0.0, -1500.0, -2300.0, 0.0])


def test_a_decoy_under_way_is_not_interrupted_by_further_steps():
    trace = play(RuleBased(), [300.0, 2300.0, 300.0, 300.0, 300.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 1500.0, 2500.0, 0.0, 0.0])


def test_a_step_behind_a_gap_counts_from_the_last_known_load():
    trace = play(RuleBased(), [300.0, np.nan, 310.0, np.nan, 1300.0], soc=0.4)
    np.testing.assert_allclose(trace.power_w[0], [0.0, 0.0, 0.0, 0.0, 900.0])
