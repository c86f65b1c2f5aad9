"""Inner loop: the battery power that keeps the meter at a target, once for each new meter reading.

The load is the meter minus the battery, so a command is the target minus the load. It looks ahead by the dead time:
commands that are on their way are known, so it adds to them and does not repeat them. It ignores changes inside the
deadband, is damped where commands keep reversing, and makes up for the energy that the interval will have too much or
too little when a command acts (D19). What an interval ended with is made up for by a small shift of those after it, so
that the billing interval is right as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

REMEMBERED_S = 30.0
"""Commands are remembered for so long, and for the dead time, to know what a battery does whose reading is late."""


@dataclass(frozen=True)
class FollowerSettings:
    """Settings of the inner loop; dead time and ramp are those that a test step measured."""

    dead_time_s: float = 2.0
    ramp_w_per_s: float = 1000.0
    deadband_w: float = 20.0
    interval_s: float = 60.0
    """Interval whose mean is to be right first: that of the most frequent reader who matters."""
    most_correction_w: float = 1000.0
    """Largest shift of the target that makes up for energy of a minute; shorter intervals need more."""
    billing_s: float = 900.0
    """Longer interval whose mean is to be right as well; half hours are right where their quarters are."""
    most_shift_w: float = 50.0
    """Largest shift of an interval's mean that makes up for energy of the billing interval."""
    gap_s: float = 0.0
    """Shortest time between two commands, for devices that bear few."""
    reversals: int = 3
    """Changes of sign in a row that count as hunting."""
    least_gain: float = 0.25


class FollowerState(NamedTuple):
    """What the inner loop remembers."""

    command_w: float = 0.0
    changed_at_s: float = float("-inf")
    change_w: float = 0.0  # of the last command
    read_at_s: float = float("-inf")  # time of the last reading that was used
    interval: int = -1  # number of the running metering interval
    excess_ws: float = 0.0  # energy above the shifted target in this interval, watt-seconds
    billing: int = -1  # number of the running billing interval
    billing_ws: float = 0.0  # energy above the target in it
    shift_w: float = 0.0  # of this interval's mean
    turns: int = 0  # reversals in a row
    gain: float = 1.0
    given: tuple[tuple[float, float], ...] = ()  # time and power of the last commands


class Seen(NamedTuple):
    """One aligned pair of readings."""

    meter_w: float
    battery_w: float
    at_s: float  # monotonic
    utc_s: float  # the metering interval follows the wall clock


def follow(
    settings: FollowerSettings, state: FollowerState, seen: Seen, target_w: float
) -> tuple[FollowerState, float | None]:
    """Return the new state and the power to command; None where the present command stands."""
    passed_s = seen.at_s - state.read_at_s
    if passed_s <= 0.0:
        return state, None
    state = _count_energy(settings, state, seen, target_w, passed_s)
    load_w = seen.meter_w - seen.battery_w
    wanted_w = target_w + state.shift_w + _correction_w(settings, state, seen, target_w) - load_w
    change_w = (wanted_w - state.command_w) * state.gain
    since_s = seen.at_s - state.changed_at_s
    if abs(change_w) <= settings.deadband_w or since_s < settings.gap_s:
        return state, None
    state = _damp(settings, state, change_w, since_s)
    command_w = state.command_w + change_w
    return state._replace(command_w=command_w, changed_at_s=seen.at_s, change_w=change_w), command_w


def commanded(settings: FollowerSettings, state: FollowerState, power_w: float, at_s: float) -> FollowerState:
    """Remember a command that is on its way; a limit may have changed it."""
    forgotten_s = at_s - settings.dead_time_s - REMEMBERED_S
    kept = [(then_s, told_w) for then_s, told_w in state.given if then_s > forgotten_s]
    return state._replace(given=(*(kept or state.given[-1:]), (at_s, power_w)))


def power_path(
    settings: FollowerSettings, state: FollowerState, power_w: float, from_s: float, to_s: float
) -> Iterator[float]:
    """Yield the power that the battery has after each second, from a reading on, if it follows its commands."""
    for second in range(round(to_s - from_s)):
        acts_s = from_s + second - settings.dead_time_s
        told_w = next((told_w for at_s, told_w in reversed(state.given) if at_s <= acts_s), power_w)
        power_w += min(max(told_w - power_w, -settings.ramp_w_per_s), settings.ramp_w_per_s)
        yield power_w


def _count_energy(
    settings: FollowerSettings, state: FollowerState, seen: Seen, target_w: float, passed_s: float
) -> FollowerState:
    if passed_s == float("inf"):  # what the meter did before our first reading is not known
        passed_s = 0.0
    above_w = seen.meter_w - target_w
    billing, billing_ws = _added(state.billing, state.billing_ws, settings.billing_s, seen.utc_s, above_w, passed_s)
    if int(seen.utc_s // settings.interval_s) != state.interval:
        left_s = max(settings.billing_s - seen.utc_s % settings.billing_s, settings.interval_s)
        shift_w = min(max(-billing_ws / left_s, -settings.most_shift_w), settings.most_shift_w)
        state = state._replace(shift_w=shift_w)
    above_w -= state.shift_w
    interval, excess_ws = _added(state.interval, state.excess_ws, settings.interval_s, seen.utc_s, above_w, passed_s)
    return state._replace(
        read_at_s=seen.at_s, interval=interval, excess_ws=excess_ws, billing=billing, billing_ws=billing_ws
    )


def _added(
    running: int, energy_ws: float, interval_s: float, utc_s: float, above_w: float, passed_s: float
) -> tuple[int, float]:
    """Add power above the target to the energy of an interval; a new interval begins with what fell into it."""
    interval = int(utc_s // interval_s)
    if interval == running:
        return interval, energy_ws + above_w * min(passed_s, interval_s)
    return interval, above_w * min(passed_s, utc_s - interval * interval_s)


def _correction_w(settings: FollowerSettings, state: FollowerState, seen: Seen, target_w: float) -> float:
    """Spread the excess over what is left of the interval once a command acts.

    A device that takes few commands in an interval is not corrected: the correction would outlast the interval.
    """
    if settings.gap_s > settings.interval_s / 4:
        return 0.0
    excess_ws = _excess_ahead_ws(settings, state, seen, target_w + state.shift_w)
    left_s = settings.interval_s - (seen.utc_s + settings.dead_time_s) % settings.interval_s
    most_w = settings.most_correction_w * max(60.0 / settings.interval_s, 1.0)
    return min(max(-excess_ws / max(left_s, 1.0), -most_w), most_w)


def _excess_ahead_ws(settings: FollowerSettings, state: FollowerState, seen: Seen, target_w: float) -> float:
    """Return the energy above the target that the interval will have when a command of now begins to act.

    The load stands, and the battery follows the commands that are on their way.
    """
    excess_ws, load_w = state.excess_ws, seen.meter_w - seen.battery_w
    path = power_path(settings, state, seen.battery_w, seen.at_s, seen.at_s + settings.dead_time_s)
    for second, power_w in enumerate(path):
        if (seen.utc_s + second) % settings.interval_s < 1.0:
            excess_ws = 0.0  # another interval has begun
        excess_ws += load_w + power_w - target_w
    begins_anew = (seen.utc_s + settings.dead_time_s) % settings.interval_s < 1.0
    return 0.0 if begins_anew else excess_ws


def _damp(settings: FollowerSettings, state: FollowerState, change_w: float, since_s: float) -> FollowerState:
    """Lower the gain where commands keep reversing at once; raise it again where they do not."""
    at_once = since_s < 3.0 * (settings.dead_time_s + 1.0)
    if at_once and change_w * state.change_w < 0.0:
        turns = state.turns + 1
        gain = max(state.gain * 0.5, settings.least_gain) if turns >= settings.reversals else state.gain
        return state._replace(turns=turns, gain=gain)
    return state._replace(turns=0, gain=min(state.gain * 1.5, 1.0))
