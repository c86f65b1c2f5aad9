"""States of a day that follow from the uses of appliances, and what meters of other resolutions show."""

import numpy as np
import pytest

from meterveil.data import synthetic
from meterveil.data.protocols import STATES, on_threshold_w
from meterveil.data.simulation import Resolution
from meterveil.data.states import day_states, with_states
from meterveil.errors import InputError

DAY = 1440


def test_a_day_begins_with_the_first_hands_on_use_and_ends_after_the_last():
    kettle_w, microwave_w = np.zeros((2, DAY)), np.zeros((2, DAY))
    kettle_w[0, [30, 420, 421]] = 2000.0  # half past midnight belongs to the evening before
    microwave_w[0, 1100:1103] = 900.0
    states = day_states({"kettle": kettle_w, "microwave": microwave_w}, np.arange(DAY))
    assert states.shape == (2, len(STATES), DAY)
    assert dict(zip(STATES, states[0].argmax(axis=1), strict=True)) == {"up": 420, "retired": 1103, "meal": 1100}
    assert np.all(np.diff(states[0], axis=1) >= 0)
    assert not states[1].any()


def test_states_of_a_household_are_further_appliances_of_whole_days():
    home = synthetic.household(np.random.default_rng(0), days=2)
    known = with_states(home.between(*home.days())).appliances_w
    assert {*STATES} <= {*known}
    on = (known["kettle"] >= 1000.0) | (known["microwave"] >= 200.0) | (known["toaster"] >= 500.0)
    assert known["up"].argmax() == np.flatnonzero(on & (np.arange(DAY) >= 240))[0]
    assert on_threshold_w("up") == 0.5


def test_a_coarse_meter_shows_the_mean_of_known_minutes_in_whole_steps():
    meter_w = np.array([[10.0, 20.0, np.nan, 100.0, 105.0, 110.0], [np.nan, np.nan, np.nan, 1.0, 2.0, 3.0]])
    expected_w = [[15.0] * 3 + [105.0] * 3, [np.nan] * 3 + [2.0] * 3]
    np.testing.assert_array_equal(Resolution(3).shown(meter_w), expected_w)
    np.testing.assert_array_equal(Resolution(3, 10.0).shown(meter_w)[0], [20.0] * 3 + [100.0] * 3)
    assert Resolution().shown(meter_w) is meter_w
    with pytest.raises(InputError, match="divide an hour"):
        Resolution(7)
