"""The inner loop: once per reading, patient, damped, and right on the mean of the interval."""

import pytest

from meterveil.live.follower import FollowerSettings, FollowerState, Seen, commanded, follow

SETTINGS = FollowerSettings(most_correction_w=0.0)


def play(readings, settings=SETTINGS, target_w=500.0):
    """Feed (second, meter, battery) readings; return the commands by second."""
    state, commands = FollowerState(), {}
    for second, meter_w, battery_w in readings:
        state, command_w = follow(settings, state, Seen(meter_w, battery_w, second, second), target_w)
        if command_w is not None:
            commands[second] = command_w
            state = commanded(settings, state, command_w, second)
    return commands, state


def test_a_command_is_the_target_minus_the_load():
    assert play([(1, 800.0, 0.0)])[0] == {1: -300.0}


def test_the_same_reading_is_used_once():
    assert play([(1, 800.0, 0.0), (1, 800.0, 0.0)])[0] == {1: -300.0}


def test_small_deviations_are_left_alone():
    assert play([(1, 515.0, 0.0), (2, 485.0, 0.0)])[0] == {}


def test_commands_on_their_way_are_not_repeated_and_a_further_change_is_added_to_them():
    commands, _ = play([(1, 800.0, 0.0), (2, 800.0, 0.0), (3, 650.0, -150.0), (4, 3300.0, -300.0)])
    assert commands == {1: -300.0, 4: -3100.0}


def test_energy_that_commands_on_their_way_will_bring_is_foreseen():
    settings = FollowerSettings(deadband_w=0.0, ramp_w_per_s=5000.0)
    commands, _ = play([(30, 500.0, 0.0), (31, 3300.0, 0.0), (32, 3300.0, 0.0)], settings)
    late_ws = 2800.0  # of each second until the first command acts
    assert commands == {31: pytest.approx(-2800.0 - 3 * late_ws / 27.0)}


def test_a_reader_of_ten_seconds_is_corrected_within_ten_seconds():
    settings = FollowerSettings(deadband_w=0.0, interval_s=10.0)
    commands, _ = play([(30, 500.0, 0.0), (31, 1500.0, 0.0)], settings)
    assert commands[31] == pytest.approx(-1000.0 - 3 * 1000.0 / 7.0)
    _, state = play([(30, 500.0, 0.0), (31, 1500.0, 0.0), (38, 500.0, -1000.0)], settings)
    assert state.command_w == pytest.approx(-1000.0)  # acts with the next interval


def test_repeated_reversals_lower_the_gain():
    hunting = [(8 * n, 500.0 + 400.0 * (-1) ** n, 0.0) for n in range(1, 9)]
    _, state = play(hunting)
    assert state.gain == SETTINGS.least_gain


def test_energy_missing_in_the_interval_is_made_up_for_within_it():
    settings = FollowerSettings(deadband_w=0.0)
    commands, state = play([(30, 500.0, 0.0), (31, 3300.0, 0.0)], settings)
    assert state.excess_ws == 2800.0
    assert commands[31] == pytest.approx(500.0 - 3300.0 - 3 * 2800.0 / 27.0)  # until the command acts
    _, later = play([(30, 500.0, 0.0), (31, 3300.0, 0.0), (61, 500.0, 0.0)], settings)
    assert later.excess_ws == pytest.approx(-later.shift_w)


def test_what_a_minute_ended_with_is_made_up_for_in_its_quarter_hour_and_not_after_it():
    settings = FollowerSettings(deadband_w=0.0)
    minute = [(30, 500.0, 0.0), (31, 3300.0, 0.0)]
    _, later = play([*minute, (61, 500.0, 0.0)], settings)
    assert later.shift_w == pytest.approx(-2800.0 / 839.0)
    _, far = play([*minute, (32, 90_000.0, 0.0), (61, 500.0, 0.0)], settings)
    assert far.shift_w == -settings.most_shift_w
    _, next_quarter = play([*minute, (901, 500.0, 0.0)], settings)
    assert (next_quarter.billing_ws, next_quarter.shift_w) == (0.0, 0.0)


def test_energy_before_the_first_reading_is_not_made_up_for():
    commands, state = play([(44, 486.0, 0.0)], FollowerSettings(deadband_w=0.0))
    assert state.excess_ws == 0.0
    assert commands == {44: 14.0 + 2 * 14.0 / 14.0}  # for the dead time to come


def test_a_device_that_takes_a_command_a_minute_gets_no_more():
    settings = FollowerSettings(gap_s=60.0)
    commands, _ = play([(second, 500.0 + 100.0 * second, 0.0) for second in range(1, 200)], settings)
    assert list(commands) == [1, 61, 121, 181]
