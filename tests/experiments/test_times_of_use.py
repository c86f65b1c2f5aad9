"""Times of a day that probabilities of use tell, and what meters of other resolutions show."""

import numpy as np
import pytest

from experiments.times_of_use import QUESTIONS, any_in_use, steps_until, time_of_use, usual_times
from meterveil.data.simulation import Resolution
from meterveil.errors import InputError

USUAL = usual_times(np.array([100.0, 110.0, np.nan]), 300)
HABIT = np.full(300, 0.01)


def test_a_reader_that_sees_nothing_guesses_the_usual_time():
    time, is_there = time_of_use(USUAL, HABIT, HABIT)
    assert time == pytest.approx(105, abs=1)
    assert is_there == pytest.approx(0.9)


def test_a_clear_use_is_the_answer_however_unusual_and_a_clear_day_without_any_is_empty():
    read = np.full((2, 300), 1e-4)
    read[0, [180, 181, 250]] = 0.999
    time, is_there = time_of_use(USUAL, HABIT, read)
    assert time[0] == 180
    assert is_there[0] > 0.99
    assert is_there[1] < 0.9


def test_questions_look_from_the_side_that_they_ask_for():
    on = np.zeros((2, 1440), dtype=bool)
    on[0, [30, 420, 1200, 1201]] = True  # half past midnight belongs to the evening before
    first, last, meal = (steps_until(question.inside(on)) for question in QUESTIONS.values())
    assert first[0] == 420 - 240
    assert last[0] == 1439 - 1201
    assert meal[0] == 1200 - 960
    assert np.isnan([first[1], last[1], meal[1]]).all()
    assert any_in_use([np.array([0.5]), np.array([0.5])]) == pytest.approx(0.75)


def test_a_coarse_meter_shows_the_mean_of_known_minutes_in_whole_steps():
    meter_w = np.array([[10.0, 20.0, np.nan, 100.0, 105.0, 110.0], [np.nan, np.nan, np.nan, 1.0, 2.0, 3.0]])
    expected_w = [[15.0] * 3 + [105.0] * 3, [np.nan] * 3 + [2.0] * 3]
    np.testing.assert_array_equal(Resolution(3).shown(meter_w), expected_w)
    np.testing.assert_array_equal(Resolution(3, 10.0).shown(meter_w)[0], [20.0] * 3 + [100.0] * 3)
    assert Resolution().shown(meter_w) is meter_w
    with pytest.raises(InputError, match="divide an hour"):
        Resolution(7)
