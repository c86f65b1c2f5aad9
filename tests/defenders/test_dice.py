"""Dice start decoys at plausible hours and at the rate that was asked for."""

import numpy as np
import pytest
from worlds import LIBRARY

from meterveil.defenders.veil.dice import ANY_HOUR, SLOTS, Dice, hours_of_use
from meterveil.errors import InputError

HOUSES = 400


def starts(dice, minutes=1440):
    """Throw the dice for many households of a day; return the starts of signatures and of spikes, (minute,) each."""
    rng = np.random.default_rng(0)
    running, quiet = dice.initial(HOUSES), np.zeros(HOUSES, dtype=bool)
    signatures, spikes = np.zeros(minutes), np.zeros(minutes)
    for minute in range(minutes):
        before = running
        clock = np.full(HOUSES, minute)
        running = dice.thrown(running, LIBRARY, clock, quiet, rng.random((HOUSES, 2)))
        signatures[minute] = np.sum((running.signature < LIBRARY.size) & (running.elapsed == 0))
        spikes[minute] = np.sum((running.spike_left > 0) & (before.spike_left <= 1))
    return signatures, spikes


def test_as_many_decoys_start_as_were_asked_for():
    signatures, spikes = starts(Dice(10 / 1440, spike_rate=4 / 1440, spikes=((np.inf, 5),)))
    assert signatures.sum() / HOUSES == pytest.approx(10.0, rel=0.1)
    assert spikes.sum() / HOUSES == pytest.approx(4.0, rel=0.1)


def test_decoys_start_at_the_hours_that_were_learned():
    hours = tuple(1.0 if 14 <= slot < 18 else 0.0 for slot in range(SLOTS))
    signatures, _ = starts(Dice(10 / 1440, hours))
    assert signatures[7 * 60 : 9 * 60].sum() == signatures.sum() > 5 * HOUSES


def test_usual_hours_come_from_the_rises_of_earlier_days_and_no_hour_is_impossible():
    days_w = np.full((5, 1440), 200.0)
    days_w[:, 7 * 60 + 5 : 7 * 60 + 15] = 2500.0
    hours = np.array(hours_of_use(days_w, 1000.0))
    assert hours.argmax() == 14
    assert hours.min() > 0.0


def test_hours_are_learned_once_and_given_ones_are_kept():
    days_w = np.full((2, 1440), 200.0)
    days_w[:, 600:610] = 2500.0
    assert np.argmax(Dice(0.01).fitted(days_w).hours) == 20
    assert Dice(0.01, ANY_HOUR).fitted(days_w).hours == ANY_HOUR
    assert Dice().fitted(days_w) == Dice()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": -0.1}, "not from 0 to 1"),
        ({"rate": 0.6, "spike_rate": 0.6}, "not from 0 to 1"),
        ({"rate": float("nan")}, "not from 0 to 1"),
        ({"rate": 0.1, "hours": (1.0,) + (0.0,) * (SLOTS - 1)}, "not from 0 to 1"),
        ({"hours": (1.0,)}, "48 weights"),
        ({"hours": (0.0,) * SLOTS}, "48 weights"),
        ({"spikes": ()}, "give one"),
    ],
)
def test_dice_that_cannot_be_thrown_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Dice(**settings)
