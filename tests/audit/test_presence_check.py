import numpy as np
import pytest

from meterveil.audit.model import load_model
from meterveil.audit.presence_check import Judged, judge


def test_shares_are_those_of_the_minutes_that_a_question_is_about():
    up = np.array([0, 0, 1, 1, 0, 0], dtype=bool)
    night = np.array([1, 1, 1, 0, 0, 0], dtype=bool)
    asleep = np.array([1, 0, 1, 0, 0, 0], dtype=bool)
    empty = np.array([0, 0, 0, 1, 1, 1], dtype=bool)
    sure = np.array([0, 0, 0, 0, 1, 1], dtype=bool)
    assert Judged(up, night, asleep, empty, sure).shares() == pytest.approx(
        {
            "called asleep, right": 1 / 2,
            "nights called asleep or empty": 1 / 2,
            "called empty, right": 2 / 3,
            "called empty and likely, right": 1.0,
            "called empty but unsure, right": 0.0,
            "absences by day that are found": 1.0,
            "all minutes, right": 3 / 6,
        }
    )


def test_the_plan_is_that_of_the_home_that_is_audited():
    judged = judge([100, 101], 7, load_model())
    assert len(judged.up) == 2 * 7 * 1440
    assert judged.shares()["called asleep, right"] > 0.9
    assert judged.shares()["nights called asleep or empty"] > 0.85
