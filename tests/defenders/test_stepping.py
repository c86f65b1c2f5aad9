import numpy as np
import pytest
from worlds import play

from meterveil.defenders.published import LazyCharging, LazyStepping, RandomCharging

LOAD_W = [700.0, 900.0, 1010.0, 1010.0, 300.0]
VARIANTS = {
    "ls1": LazyStepping(),
    "ls2": LazyStepping(coin=True),
    "lc": LazyCharging(),
    "rc": RandomCharging(),
}


@pytest.fixture(params=VARIANTS)
def variant(request):
    return VARIANTS[request.param]


def test_the_meter_shows_multiples_of_the_step_and_the_battery_no_more_than_one(variant):
    load_w = np.abs(np.random.default_rng(0).normal(600.0, 500.0, (8, 600)))
    trace = play(variant, load_w, budget_kwh=np.inf, capacity_kwh=100.0)
    np.testing.assert_allclose(trace.meter_w % 500.0, 0.0, atol=1e-9)
    assert np.abs(trace.power_w).max() <= 500.0 + 1e-9


def test_a_load_that_is_a_multiple_needs_no_battery(variant):
    np.testing.assert_array_equal(play(variant, [500.0] * 5).power_w, 0.0)


def test_lazy_stepping_keeps_its_level_until_the_load_is_a_step_away():
    # 700 is lowered to 500; 1,010 is 510 away, and a battery below half takes the multiple above
    trace = play(LazyStepping(), LOAD_W, soc=0.45)
    np.testing.assert_allclose(trace.meter_w[0], [500.0, 500.0, 1500.0, 1500.0, 500.0])


def test_ls1_discharges_a_battery_that_is_more_than_half_full():
    trace = play(LazyStepping(), LOAD_W, soc=0.6)
    np.testing.assert_allclose(trace.meter_w[0], [500.0, 500.0, 1000.0, 1000.0, 0.0])


def test_ls2_tosses_a_coin_for_its_next_level():
    trace = play(LazyStepping(coin=True), np.tile([700.0, 1010.0], (400, 1)))
    assert set(np.round(trace.meter_w[:, 1])) == {1000.0, 1500.0}
    assert 0.4 < np.mean(trace.meter_w[:, 1] > 1250.0) < 0.6


def test_lc_discharges_until_empty_and_then_charges_until_full():
    # one minute of 200 W is left in the battery; then 300 W go in
    trace = play(LazyCharging(), np.full(2000, 700.0), soc=0.1 + 0.2 / 60 / 8 + 1e-9, budget_kwh=np.inf)
    np.testing.assert_allclose(trace.meter_w[0, :3], [500.0, 1000.0, 1000.0])
    turn = int(np.argmax(trace.meter_w[0, 1:] < 750.0)) + 1
    # 0.8 of 8 kWh at 300 W
    assert turn == pytest.approx(6400.0 / 300.0 * 60.0, abs=2.0)
    np.testing.assert_allclose(trace.meter_w[0, turn:], 500.0)


@pytest.mark.parametrize(("soc", "share"), [(0.3, 0.25), (0.5, 0.5), (0.7, 0.75)])
def test_rc_charges_as_often_as_the_usable_range_is_empty(soc, share):
    trace = play(RandomCharging(), np.full((2000, 1), 700.0), soc=soc)
    assert np.mean(trace.meter_w > 750.0) == pytest.approx(1.0 - share, abs=0.04)


def test_a_full_or_empty_battery_turns_every_variant_round(variant):
    np.testing.assert_allclose(play(variant, [700.0], soc=0.1).meter_w, 1000.0)
    np.testing.assert_allclose(play(variant, [700.0], soc=0.9).meter_w, 500.0)


def test_a_gap_changes_no_level():
    trace = play(LazyStepping(), [700.0, np.nan, 900.0], soc=0.45)
    np.testing.assert_allclose(trace.power_w[0], [-200.0, 0.0, -400.0])
