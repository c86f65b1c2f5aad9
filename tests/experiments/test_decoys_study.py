"""The study of decoys tells samples apart only if they differ."""

import numpy as np
import pytest

from experiments.decoys import kinds, separation, uses
from meterveil.data import synthetic


def test_equal_samples_are_not_separated_and_different_ones_are():
    rng = np.random.default_rng(0)
    first, same = rng.normal(size=(400, 7)), rng.normal(size=(400, 7))
    assert abs(separation(first, same, rng) - 0.5) < 0.08
    assert separation(first, same + 2.0, rng) > 0.95


def test_a_use_is_described_by_its_length_height_and_hour():
    watts = np.full(600, 200.0)
    watts[360:365] = 2200.0
    [use] = uses(watts, np.arange(600))
    assert np.exp(use[0]) == pytest.approx(5)
    np.testing.assert_allclose(use[1:5], [2000.0, 2000.0, 2000.0, 0.0])
    np.testing.assert_allclose(use[5:], [0.0, 1.0], atol=1e-12)


def test_own_uses_and_composites_are_made_from_training_days():
    home = synthetic.household(np.random.default_rng(0), days=3)
    made = kinds(synthetic.decoy_library(), home.aggregate_w.reshape(3, 1440))
    base, own = made["library"].library, made["own uses, usual hours"].library
    assert own.size > 5
    assert made["composites, usual hours"].library.size == 2 * base.size
    pair = made["composites, usual hours"].library.signatures()[-1]
    assert " and " in pair[0]
    assert pair[1].max() >= max(watts.max() for name, watts in base.signatures() if name in pair[0].split(" and "))


def test_spikes_take_the_place_of_signatures():
    home = synthetic.household(np.random.default_rng(0), days=3)
    made = kinds(synthetic.decoy_library(), home.aggregate_w.reshape(3, 1440))
    spikes, signatures = made["spikes of 3 min, usual hours"].dice(10.0), made["library"].dice(10.0)
    assert (spikes.rate, spikes.spike_rate, spikes.spikes) == (0.0, 10 / 1440, ((np.inf, 3),))
    assert (signatures.rate, signatures.spike_rate) == (10 / 1440, 0.0)
