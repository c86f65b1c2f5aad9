import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from meterveil.bench.metrics import event_detection

NAN = np.nan
calm = settings(deadline=None, max_examples=60)
states = hnp.arrays(np.bool_, (2, 60))


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


def test_a_flickering_prediction_finds_a_use_once():
    assert scores(day((20, 5)), day((20, 1), (22, 1))) == (0.5, 1, pytest.approx(2 / 3))


def test_matching_in_the_order_of_time_leaves_no_use_without_its_only_partner():
    assert scores(day((20, 1), (22, 1)), day((22, 1), (24, 1))) == (1, 1, 1)


def test_a_day_without_uses_has_no_recall_and_false_alarms_have_no_precision():
    precision, recall, f1 = scores(day(), day((20, 2)))
    assert precision == 0
    assert np.isnan([recall, f1]).all()
    assert np.isnan(scores(day(), day())).all()


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
def test_a_batch_scores_as_its_rows_do(truth, prediction, gap):
    truth_w = np.where(gap, NAN, 1.0 * truth)
    batch = np.stack(event_detection(truth_w, 1.0 * prediction, 1.0), axis=-1)
    rows = [event_detection(*row, 1.0) for row in zip(truth_w, 1.0 * prediction, strict=True)]
    np.testing.assert_array_equal(batch, np.array(rows))
