import numpy as np
import pytest
from meterveil.bench.significance import delta, headline_percent, is_harmful, p_value
from scipy import stats

from meterveil.errors import InputError


def test_delta_is_masked_minus_raw():
    np.testing.assert_allclose(delta([90.0, 0.7], [120.0, 0.2]), [30.0, -0.5])


def test_a_headline_is_a_ratio_of_means_in_the_direction_that_harms():
    assert headline_percent("rmse", [10, 90], [40, 110]) == pytest.approx(50)
    assert headline_percent("f1", [0.2, 0.8], [0.3, 0.1]) == pytest.approx(60)


def test_a_case_without_a_score_counts_neither_before_nor_after():
    assert headline_percent("rmse", [10, 90, np.nan, 50], [40, 110, 70, np.nan]) == pytest.approx(50)
    assert np.isnan(headline_percent("f1", [0.0, 0.0], [0.0, 0.1]))


def test_p_values_are_those_of_a_one_sample_t_test():
    masked = np.random.default_rng(3).normal(1.0, 0.8, (20, 5))
    raw = np.linspace(-0.5, 1.5, 20)
    expected = [stats.ttest_1samp(*case).pvalue for case in zip(masked, raw, strict=True)]
    np.testing.assert_allclose(p_value(masked, raw), expected, rtol=1e-9)


def test_seeds_that_all_agree_leave_no_doubt():
    masked = np.array([[0.1] * 5, [0.1] * 5, [0.3] * 5])
    np.testing.assert_allclose(p_value(masked, [0.1, 0.7, np.nan]), [1, 0, np.nan], atol=1e-12)


def test_one_seed_is_no_sample():
    with pytest.raises(InputError, match="a t-test over 1 seed says nothing; give at least 2"):
        p_value(np.ones((3, 1)), np.zeros(3))


def test_only_a_significant_change_that_harms_the_attacker_counts():
    change, p = [5.0, 5.0, -5.0, 0.0], [0.01, 0.05, 0.01, 0.01]
    assert is_harmful("rmse", change, p).tolist() == [True, False, False, False]
    assert is_harmful("f1", change, p).tolist() == [False, False, True, False]
    assert not is_harmful("f1", -0.3, np.nan)
