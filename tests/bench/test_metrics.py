import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from meterveil.bench.metrics import (
    HARM_SIGN,
    delta,
    detection,
    event_counts,
    harm_sign,
    headline_percent,
    leak,
    mae,
    power_detection,
    probability_detection,
    rmse,
    sae,
    seen,
)
from meterveil.errors import InputError

NAN = np.nan
calm = settings(deadline=None, max_examples=30)
TRUTH_W = np.array([0.0, 0.0, 2000.0, 2000.0, 0.0, 0.0])
PREDICTION_W = np.array([0.0, 1200.0, 1600.0, 400.0, 0.0, 100.0])

tenths_or_gap = st.one_of(st.integers(0, 40_000).map(lambda tenths: tenths / 10), st.just(NAN))
states = hnp.arrays(np.bool_, (2, 60))
watts = hnp.arrays(np.float64, (3, 40), elements=tenths_or_gap)


def event_detection(*arrays, **options):
    return detection(event_counts(*arrays, **options))


def test_errors_of_a_day_counted_by_hand():
    errors = np.array([0, 1200, -400, -1600, 0, 100])
    assert float(rmse(TRUTH_W, PREDICTION_W)) == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert float(mae(TRUTH_W, PREDICTION_W)) == pytest.approx((1200 + 400 + 1600 + 100) / 6)
    assert float(sae(TRUTH_W, PREDICTION_W)) == pytest.approx((4000 - 3300) / 4000)


def test_on_minutes_counted_by_hand():
    found = power_detection(TRUTH_W, PREDICTION_W, threshold_w=1000)
    assert (float(found.precision), float(found.recall), float(found.f1)) == (0.5, 0.5, 0.5)
    found = power_detection(TRUTH_W, PREDICTION_W, threshold_w=400)
    assert (float(found.precision), float(found.recall)) == (pytest.approx(2 / 3), 1)
    assert float(found.f1) == pytest.approx(4 / 5)


def test_the_threshold_itself_is_on_for_truth_and_prediction():
    found = power_detection(np.array([50.0, 49.9]), np.array([50.0, 49.9]), threshold_w=50)
    assert float(found.f1) == 1
    assert float(power_detection(np.array([50.0]), np.array([49.9]), threshold_w=50).recall) == 0


def test_an_on_off_head_is_cut_at_its_probability_and_the_truth_at_its_power():
    probability = np.array([0.1, 0.4, 0.9, 0.5, 0.2, 0.6])
    assert float(probability_detection(TRUTH_W, probability, 1000).f1) == pytest.approx(4 / 5)
    assert float(probability_detection(TRUTH_W, probability, 1000, cut=0.7).f1) == pytest.approx(2 / 3)


def test_minutes_without_a_meter_reading_are_not_scored():
    reading = np.array([100.0, NAN, 2100.0, 2100.0, 100.0, 100.0])
    assert float(power_detection(TRUTH_W, seen(PREDICTION_W, reading), 1000).precision) == 1


def test_unknown_minutes_are_left_out_of_every_score():
    keep = np.array([True, False, True, True, False, True])
    truth = np.where([1, 0, 1, 1, 1, 1], TRUTH_W, NAN)
    prediction = np.where([1, 1, 1, 1, 0, 1], PREDICTION_W, NAN)
    for score in (rmse, mae, sae):
        assert float(score(truth, prediction)) == pytest.approx(float(score(TRUTH_W[keep], PREDICTION_W[keep])))
    with_gaps, without = (
        power_detection(*days, threshold_w=1000) for days in ((truth, prediction), (TRUTH_W[keep], PREDICTION_W[keep]))
    )
    assert tuple(map(float, with_gaps)) == tuple(map(float, without)) == (1.0, 0.5, pytest.approx(2 / 3))


def test_scores_without_a_known_minute_are_undefined():
    nothing = np.full(4, NAN)
    scores = [rmse(nothing, nothing), mae(nothing, nothing), sae(nothing, nothing)]
    assert np.isnan([*scores, *power_detection(nothing, nothing, 50)]).all()


def test_an_appliance_that_stands_still_has_no_share_of_energy_and_no_f1():
    still, alarm = np.zeros(4), np.array([0.0, 100.0, 0.0, 0.0])
    assert np.isnan(sae(still, still))
    assert np.isnan(sae(still, alarm))
    quiet, alarmed = power_detection(still, still, 50), power_detection(still, alarm, 50)
    assert np.isnan([*quiet, alarmed.recall, alarmed.f1]).all()
    assert float(alarmed.precision) == 0


def test_an_attacker_that_finds_nothing_has_f1_zero_and_no_precision():
    found = power_detection(np.array([0.0, 100.0]), np.zeros(2), 50)
    assert (float(found.recall), float(found.f1)) == (0, 0)
    assert np.isnan(found.precision)


@calm
@given(watts, watts)
def test_a_batch_scores_as_its_rows_do_bit_for_bit(truth, prediction):
    for score in (rmse, mae, sae, lambda *days: np.stack(power_detection(*days, threshold_w=50.0), axis=-1)):
        rows = np.stack([score(*row) for row in zip(truth, prediction, strict=True)])
        np.testing.assert_array_equal(score(truth, prediction), rows)


@calm
@given(watts, watts)
def test_f1_lies_between_precision_and_recall_and_swaps_them_with_its_sides(truth, prediction):
    found, swapped = power_detection(truth, prediction, 50.0), power_detection(prediction, truth, 50.0)
    np.testing.assert_array_equal(found.precision, swapped.recall)
    both = ~np.isnan(found.precision) & ~np.isnan(found.recall)
    np.testing.assert_array_equal(found.f1[both], swapped.f1[both])
    low, high = np.fmin(found.precision, found.recall)[both], np.fmax(found.precision, found.recall)[both]
    assert np.all((low - 1e-12 <= found.f1[both]) & (found.f1[both] <= high + 1e-12))


@calm
@given(watts, watts, st.floats(0.01, 100))
def test_the_energy_error_has_no_unit_and_the_others_have_that_of_power(truth, prediction, scale):
    np.testing.assert_allclose(sae(scale * truth, scale * prediction), sae(truth, prediction), 1e-6, 1e-9)
    np.testing.assert_allclose(rmse(scale * truth, scale * prediction), scale * rmse(truth, prediction), rtol=1e-9)
    assert not np.any(mae(truth, prediction) > rmse(truth, prediction) * (1 + 1e-12))


def test_leak_is_the_share_of_the_way_from_the_prior_to_the_clean_attacker():
    assert float(leak("rmse", prior=100, clean=20, masked=100)) == 0
    assert float(leak("rmse", prior=100, clean=20, masked=20)) == 1
    assert float(leak("rmse", prior=100, clean=20, masked=80)) == 0.25
    assert float(leak("f1", prior=0.2, clean=0.8, masked=0.5)) == pytest.approx(0.5)
    np.testing.assert_allclose(leak("rmse", 100, 20, [180, 12]), [-1, 1.1])
    np.testing.assert_allclose(leak("f1", 0.2, 0.8, [0.05, 0.95]), [-0.25, 1.25])


def test_nothing_leaks_where_the_clean_attacker_is_no_better_than_the_prior():
    assert np.isnan(leak("rmse", [100, 100], [100, 120], [80, 130])).all()
    assert np.isnan(leak("f1", [0.5, 0.5, NAN], [0.5, 0.3, 0.9], 0.4)).all()


def test_an_unknown_metric_lists_the_known_ones():
    assert [harm_sign(name) for name in ("rmse", "f1", "f1_head")] == [1, -1, -1]
    with pytest.raises(InputError, match=f"there is no metric 'auc'; there are {', '.join(HARM_SIGN)}"):
        leak("auc", 0, 1, 1)


def test_delta_is_masked_minus_raw():
    np.testing.assert_allclose(delta([90.0, 0.7], [120.0, 0.2]), [30.0, -0.5])


def test_a_headline_is_a_ratio_of_means_in_the_direction_that_harms():
    assert headline_percent("rmse", [10, 90], [40, 110]) == pytest.approx(50)
    assert headline_percent("f1", [0.2, 0.8], [0.3, 0.1]) == pytest.approx(60)


def test_a_case_without_a_score_counts_neither_before_nor_after():
    assert headline_percent("rmse", [10, 90, np.nan, 50], [40, 110, 70, np.nan]) == pytest.approx(50)
    assert np.isnan(headline_percent("f1", [0.0, 0.0], [0.0, 0.1]))


def day(*uses, minutes=60):
    """Watts of a day with uses (first minute, length) of 2 kW."""
    watts = np.zeros(minutes)
    for first, length in uses:
        watts[first : first + length] = 2000.0
    return watts


def scores(truth, prediction, **options):
    return tuple(map(float, event_detection(truth, prediction, 1000.0, **options)))


def starts(on):
    return np.flatnonzero(on[1:] & ~on[:-1]) + 1


def test_a_use_is_found_up_to_two_minutes_early_or_late():
    for shift in (-2, -1, 0, 1, 2):
        assert scores(day((20, 3)), day((20 + shift, 3))) == (1, 1, 1)
    for shift in (-3, 3):
        assert scores(day((20, 8)), day((20 + shift, 8))) == (0, 0, 0)
    assert scores(day((20, 8)), day((23, 8)), tolerance_minutes=3) == (1, 1, 1)
    assert scores(day((20, 3)), day((20, 30))) == (1, 1, 1)  # how long it lasts does not matter


def test_one_long_prediction_does_not_find_many_uses():
    precision, recall, f1 = scores(day((10, 2), (20, 2), (30, 2), (40, 2)), day((10, 32)))
    assert (precision, recall, f1) == (1, 0.25, pytest.approx(0.4))


def test_matching_in_the_order_of_time_leaves_no_use_without_its_only_partner():
    assert scores(day((20, 1), (22, 1)), day((22, 1), (24, 1))) == (1, 1, 1)


def test_a_use_that_already_runs_in_the_first_minute_is_not_judged():
    truth = day((0, 5), (30, 3))
    assert scores(truth, day((30, 3))) == (1, 1, 1)
    assert scores(truth, day((1, 4), (30, 3))) == (1, 1, 1)
    assert scores(truth, day((3, 2), (30, 3)))[0] == 0.5


def test_a_use_that_comes_out_of_a_gap_is_not_judged():
    truth, prediction = day((20, 6), (40, 3)), day((40, 3))
    truth[18:22] = NAN
    assert scores(truth, prediction) == (1, 1, 1)
    assert scores(truth, day((17, 1), (40, 3))) == (1, 1, 1)
    assert scores(truth, day((14, 1), (40, 3)))[0] == 0.5


def test_a_gap_in_the_prediction_hides_the_true_use_too_and_a_pair_beside_a_gap_counts():
    prediction = day((40, 3))
    prediction[19:21] = NAN
    assert scores(day((20, 6), (40, 3)), prediction) == (1, 1, 1)
    truth = day((20, 2))
    truth[23] = NAN
    assert scores(truth, day((21, 1))) == (1, 1, 1)


def test_an_on_off_head_is_scored_alike():
    probability = day((21, 3)) / 2000 * 0.6
    assert scores(day((20, 3)), probability, cut=0.5)[2] == 1
    assert scores(day((20, 3)), probability, cut=0.7)[2] == 0


@calm
@given(states, states, st.integers(0, 3))
def test_no_other_one_to_one_matching_finds_more(truth, prediction, tolerance):
    edge = slice(5, -5)
    for values in (truth, prediction):
        values[:, :5] = values[:, -5:] = False
    found = event_detection(1.0 * truth, 1.0 * prediction, 1.0, tolerance)
    for row in range(len(truth)):
        true_at, predicted_at = starts(truth[row]), starts(prediction[row])
        near = np.abs(true_at[:, None] - predicted_at) <= tolerance
        best = int((maximum_bipartite_matching(csr_array(near), perm_type="column") >= 0).sum())
        assert not truth[row, edge].any() or found.recall[row] == best / len(true_at)
        assert not prediction[row, edge].any() or found.precision[row] == best / len(predicted_at)


@calm
@given(states, states, hnp.arrays(np.bool_, (2, 60), elements=st.sampled_from([False] * 9 + [True])))
def test_the_uses_of_a_batch_score_as_those_of_its_rows(truth, prediction, gap):
    truth_w = np.where(gap, NAN, 1.0 * truth)
    batch = np.stack(event_detection(truth_w, 1.0 * prediction, 1.0), axis=-1)
    rows = [event_detection(*row, 1.0) for row in zip(truth_w, 1.0 * prediction, strict=True)]
    np.testing.assert_array_equal(batch, np.array(rows))
