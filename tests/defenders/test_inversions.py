"""What the rules of NILL, stepping and a network of powers tell about the load, from a meter in whole watts."""

import numpy as np
import pytest
from worlds import LIBRARY, play

from meterveil.attackers.protocol import Meter
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders import defender
from meterveil.defenders.trained_policies import Mlp, QPolicy

STEPPING = ["stepping_ls1", "stepping_ls2", "stepping_lc", "stepping_rc"]


@pytest.fixture(scope="module")
def day_w():
    return synthetic.household(np.random.default_rng(3), days=1).aggregate_w[None]


def read(policy, load_w):
    """Return what the meter shows and what the policy's inversion makes of it."""
    shown_w = play(policy, load_w).meter_w.round()
    minute = np.broadcast_to(np.arange(shown_w.shape[1]), shown_w.shape)
    return shown_w, policy.invert(Meter(shown_w, minute % 1440, np.zeros_like(minute)), Setup(LIBRARY))


@pytest.mark.parametrize("name", STEPPING)
def test_steps_bound_the_load(name, day_w):
    shown_w, found_w = read(defender(name), day_w)
    error_w, meter_error_w = (np.abs(part - day_w).mean() for part in (found_w, shown_w))
    assert error_w < 0.8 * meter_error_w


def test_a_spike_on_a_level_of_nill_is_the_rest_of_a_large_load():
    load_w = np.full((1, 120), 300.0)
    load_w[0, 60:62] = 5000.0
    shown_w, found_w = read(defender("nill"), load_w)
    assert shown_w[0, 60] == 1000.0  # 4,000 W come from the battery
    np.testing.assert_allclose(found_w[0, 58:64], load_w[0, 58:64], atol=20.0)


def test_the_answers_of_a_network_tell_the_load_from_the_reading():
    powers_w = np.arange(-40, 41) * 50.0
    load_w = np.full((2, 240), 300.0) + np.arange(2)[:, None]
    load_w[0, 100:110] = 2300.0
    shown_w, found_w = read(_halving(powers_w), load_w)
    assert np.abs(shown_w - load_w).max() > 900.0
    np.testing.assert_allclose(found_w, load_w, atol=51.0)


def _halving(powers_w):
    """Build a policy that halves the distance from 300 W: the power nearest to (300 W - load) / 2 has most value."""
    first = np.zeros((6, 2))
    first[0, 0] = 1.0
    power_kw = powers_w / 1000.0
    last = np.stack([-power_kw, 0.3 * power_kw - power_kw**2])  # 2 (0.15 - load / 2) power - power^2
    weights = (first, np.eye(2), last)
    return QPolicy(Mlp(weights, (np.array([0.0, 1.0]), np.zeros(2), np.zeros(len(powers_w))), "relu"), powers_w)
