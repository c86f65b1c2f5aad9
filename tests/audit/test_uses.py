"""Runs of on-minutes become uses, and scores become probabilities."""

import numpy as np
import pytest

from meterveil.audit.calibration import Curve, fit_curve
from meterveil.audit.scoring import score
from meterveil.audit.uses import SHAPES, Shape, agreeing, minutes_of, runs_of, word_of

SHAPE = Shape(pause_minutes=2, least_minutes=3, most_minutes=6, attended=True)


def on(text):
    return np.array([letter == "#" for letter in text])


def test_a_pause_joins_and_a_longer_break_parts():
    assert runs_of(on("..##..##...###."), SHAPE) == [(2, 8), (11, 14)]


def test_a_run_that_is_too_short_or_too_long_is_no_use():
    assert runs_of(on("##......#######"), SHAPE) == []


def test_a_silent_record_has_no_uses():
    assert runs_of(np.zeros(10, dtype=bool), SHAPE) == []


def test_the_minutes_of_uses_include_their_pauses():
    assert minutes_of([(1, 3), (5, 6)], 6).tolist() == [False, True, True, False, False, True]


def test_a_found_use_is_right_where_half_of_it_is_true():
    found, true = [(0, 10), (20, 30), (40, 50)], [(2, 6), (36, 44)]
    assert agreeing(found, true, 60).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("probability", "word"), [(0.95, "almost certain"), (0.7, "likely"), (0.3, "unsure")]
)
def test_probabilities_have_words(probability, word):
    assert word_of(probability) == word


def test_a_curve_recovers_how_often_scores_come_true():
    rng = np.random.default_rng(0)
    true = Curve(0.5, -1.0)
    scores = rng.normal(0.0, 3.0, 20_000)
    fitted = fit_curve(scores, rng.random(20_000) < true.probability(scores))
    assert fitted.slope == pytest.approx(0.5, abs=0.03)
    assert fitted.shift == pytest.approx(-1.0, abs=0.06)


def test_without_cases_a_curve_stays_plain():
    assert fit_curve(np.zeros(0), np.zeros(0, dtype=bool)) == Curve(1.0, 0.0)


def test_a_perfect_reading_scores_one_and_an_empty_one_nothing():
    truth_w = np.where(on("...##.....##..."), 2000.0, 0.0)
    perfect = score("kettle", truth_w, (truth_w > 0).astype(float))
    assert (perfect.f1, perfect.use_f1, perfect.uses) == (1.0, 1.0, 2)
    assert score("kettle", truth_w, np.zeros(15)).use_f1 == 0.0


def test_an_appliance_that_stood_still_has_no_score():
    assert np.isnan(score("kettle", np.zeros(9), np.ones(9)).use_f1)


def test_every_shipped_appliance_has_a_shape(model):
    assert list(model.decisions) == list(SHAPES)
