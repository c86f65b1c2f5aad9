"""The study of small batteries adds one shower a day and counts the spikes that look like it."""

import numpy as np

from experiments.small_batteries import SHOWER_CLOCK, shower_figures, with_showers
from meterveil.data import synthetic


def test_every_day_gets_one_shower_in_the_morning():
    home = synthetic.household(np.random.default_rng(0), days=3).select([])
    wet, inside = with_showers(home, np.random.default_rng(1))
    added_w = wet.aggregate_w - home.aggregate_w
    assert np.all((added_w >= 7000.0) == inside)
    begins = np.flatnonzero(np.diff(inside.astype(int), prepend=0) == 1)
    assert len(begins) == 3
    assert np.all((begins % 1440 >= SHOWER_CLOCK[0]) & (begins % 1440 < SHOWER_CLOCK[1]))
    assert 6 * 3 <= inside.sum() <= 10 * 3


def test_a_shower_is_hidden_only_if_all_its_minutes_have_the_height_of_a_spike():
    shower = np.zeros(100, dtype=bool)
    shower[10:17] = shower[40:47] = True
    meter_w = np.full(100, 300.0)
    meter_w[10:20] = meter_w[40:46] = meter_w[70:80] = 4000.0
    found = shower_figures(meter_w, shower, 4000.0, 1)
    assert found == {"showers_hidden_percent": 50.0, "spikes_seen": 3.0}
