"""Intervals over days and t-tests over seeds."""

import numpy as np
import pytest
from scipy import stats

from meterveil.bench.estimates import estimate, is_harmful, mean, p_value, welch_p
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
