"""Intervals over days, t-tests over seeds, and mutual information."""

import numpy as np
import pytest
from scipy import stats

from meterveil.bench.estimates import estimate, information_bits, is_harmful, mean, p_value, welch_p
from meterveil.errors import InputError


def test_p_values_are_those_of_a_one_sample_t_test():
    masked = np.random.default_rng(3).normal(1.0, 0.8, (20, 5))
    raw = np.linspace(-0.5, 1.5, 20)
    expected = [stats.ttest_1samp(*case).pvalue for case in zip(masked, raw, strict=True)]
    np.testing.assert_allclose(p_value(masked, raw), expected, rtol=1e-9)


def test_seeds_that_all_agree_leave_no_doubt():
    masked = np.array([[0.1] * 5, [0.1] * 5, [0.3] * 5])
    np.testing.assert_allclose(p_value(masked, [0.1, 0.7, np.nan]), [1, 0, np.nan], atol=1e-12)


def test_one_seed_is_no_sample():
    with pytest.raises(InputError, match="at least 2 seeds, not 1"):
        p_value(np.ones((3, 1)), np.zeros(3))


def test_only_a_significant_change_that_harms_the_attacker_counts():
    change, p = [5.0, 5.0, -5.0, 0.0], [0.01, 0.05, 0.01, 0.01]
    assert is_harmful("rmse", change, p).tolist() == [True, False, False, False]
    assert is_harmful("f1", change, p).tolist() == [False, False, True, False]
    assert not is_harmful("f1", -0.3, np.nan)


def test_days_that_agree_leave_no_doubt_and_few_days_give_no_interval():
    assert estimate(np.full((1, 20), 3.0), mean) == (3.0, 3.0, 3.0)
    value, low, high = estimate(np.array([[1.0, 2.0]]), mean)
    assert value == 1.5
    assert np.isnan([low, high]).all()


def test_an_interval_is_that_of_the_mean_over_days_and_comes_out_again():
    days = np.random.default_rng(0).normal(10.0, 2.0, (1, 100))
    found = estimate(days, mean)
    assert found == estimate(days, mean)
    assert found.low < days.mean() < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * 2.0 / 10, rel=0.2)


def test_two_sets_of_seeds_are_compared_as_welch_does():
    first, second = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    t = 3.0 / np.sqrt(1 / 3 + 1 / 3)  # equal variances and sizes: four degrees of freedom
    x = t / np.sqrt(t**2 + 4)
    assert welch_p(first, second) == pytest.approx(1 - 1.5 * x + 0.5 * x**3)
    assert welch_p(np.full(3, 2.0), np.full(3, 2.0)) == 1.0
    assert welch_p(np.full(3, 2.0), np.full(3, 2.1)) == 0.0


def mixture(seed, share_on, step_w, minutes=12_000):
    """Return (truth, reading) of an appliance of `step_w` in a Gaussian background of 100 W."""
    rng = np.random.default_rng(seed)
    on = rng.random(minutes) < share_on
    return on * 1000.0, rng.normal(400.0 + step_w * on, 100.0)


def integrated_bits(share_on, step_w):
    """Mutual information of the same mixture, by integration."""
    grid = np.linspace(-2000.0, 4000.0, 200_001)
    densities = [
        weight * np.exp(-(((grid - mean) / 100.0) ** 2) / 2) / (100.0 * np.sqrt(2 * np.pi))
        for weight, mean in ((1 - share_on, 0.0), (share_on, step_w))
    ]
    whole = np.sum(densities, axis=0)
    bits = [
        np.trapezoid(np.where(d > 0, d * np.log2(np.where(d > 0, d, 1) / np.maximum(weight * whole, 1e-300)), 0), grid)
        for d, weight in zip(densities, (1 - share_on, share_on), strict=True)
    ]
    return float(np.sum(bits))


def bits_of(truth_w, reading_w, seed=0):
    return information_bits(truth_w, reading_w, 500.0, np.random.default_rng(seed))


@pytest.mark.parametrize(("share_on", "step_w"), [(0.5, 100.0), (0.3, 200.0), (0.05, 300.0), (0.02, 1000.0)])
def test_the_estimate_is_that_of_the_integral(share_on, step_w):
    bits = [bits_of(*mixture(seed, share_on, step_w, minutes=40_000)) for seed in range(4)]
    assert np.mean(bits) == pytest.approx(integrated_bits(share_on, step_w), abs=0.008)


def test_a_meter_that_does_not_show_the_appliance_tells_nothing():
    bits = [bits_of(*mixture(seed, 0.3, 0.0)) for seed in range(4)]
    assert abs(np.mean(bits)) < 0.006
    truth, reading = mixture(1, 0.3, 300.0)
    assert abs(bits_of(truth, np.full_like(reading, 400.0))) < 0.012


def test_a_meter_that_shows_the_appliance_alone_tells_the_whole_entropy():
    truth, _ = mixture(1, 0.3, 0.0)
    assert bits_of(truth, truth) == pytest.approx(0.8813, abs=0.01)


@pytest.mark.parametrize("used_minutes", [0, 1])
def test_an_appliance_that_is_hardly_used_has_nothing_to_tell(used_minutes):
    truth = np.zeros(100)
    truth[:used_minutes] = 1000.0
    assert bits_of(truth, np.arange(100.0)) == 0


def test_neither_unit_nor_offset_nor_the_state_that_is_called_on_matters():
    truth, reading = mixture(2, 0.2, 250.0)
    bits = bits_of(truth, reading)
    assert bits_of(truth, 1000.0 - 4.0 * reading) == pytest.approx(bits, abs=2e-3)
    assert bits_of(1000.0 - truth, reading) == pytest.approx(bits, abs=1e-12)
    assert bits_of(truth, np.exp(reading / 200.0)) == pytest.approx(bits, abs=0.02)


def test_unknown_minutes_are_left_out():
    truth, reading = mixture(7, 0.3, 300.0)
    truth[:3000], reading[-3000:] = np.nan, np.nan
    kept = slice(3000, -3000)
    assert bits_of(truth, reading) == pytest.approx(bits_of(truth[kept], reading[kept]), abs=2e-3)
