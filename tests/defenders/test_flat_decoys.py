import numpy as np
import pytest
from worlds import LIBRARY, play

from meterveil.defenders.flat import Flat
from meterveil.defenders.flat_decoys import FlatDecoys


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
