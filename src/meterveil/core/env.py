"""The manager's decision problem: initial, observe, transition, terminal (section 5 of the paper, D6).

One transition is one decision. It lasts as long as the chosen signature replays, so each household of a batch
has its own clock. Each household points at its row of the scenario, so a new episode is a new number, not a
copy of a day. Rewards are not part of the physics: a reward is any function of the scenario, the state
before, the action and the state after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from meterveil.core import battery as bt
from meterveil.core import executor, tariff
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.scenario import Scenario

WINDOW = 60
"""Minutes of past battery power that a state remembers: the probe's window (D5)."""

OBSERVATION = ("load_kw", "day_sin", "day_cos", "price", "soc", "budget_left")
"""Observation of the manager, in this order (section 5)."""

OBSERVATION_LOW = (-1000.0, -1.0, -1.0, -1000.0, 0.0, 0.0)
OBSERVATION_HIGH = (1000.0, 1.0, 1.0, 1000.0, 1.0, 1.0)
"""Bounds that are wide enough for any household and currency."""


@dataclass(frozen=True)
class EnvParams:
    """Parameters that are constant during an episode."""

    battery: Battery
    library: Library
    degradation_per_kwh: float = tariff.DEGRADATION_PER_KWH
    soc_start: float = INITIAL_SOC


class EnvState(NamedTuple):
    """State of every household of the batch."""

    battery: BatteryState
    row: IntArray  # (batch,) row of the scenario of each household
    minute: IntArray  # (batch,) minutes acted in so far
    past_w: FloatArray  # (batch, WINDOW) battery power of the latest minutes, the last one at the end
    moved_kwh: FloatArray  # (batch,) energy that the latest decision moved
    cost: FloatArray  # (batch,) energy and degradation cost of the latest decision


class Reward(Protocol):
    """Reward of a decision, which a user may supply."""

    def __call__(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        """Return one number per household."""
        ...


def rms_disturbance_kw(scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
    """Reward the RMS battery power of the window that ends with a decision, if it moved energy (D5).

    This is the error of a probe that takes the meter for the load, and needs no training.
    """
    rms_w = np.sqrt(np.mean(after.past_w**2, axis=1))
    paid_w: FloatArray = np.where(after.moved_kwh > 0.0, rms_w, 0.0)
    return paid_w / 1000.0


def initial(params: EnvParams, scenario: Scenario, row: IntArray | None = None) -> EnvState:
    """Begin episodes in these rows, by default in each row once: nothing moved, SoC at its start value."""
    row = np.arange(scenario.batch) if row is None else row
    zeros = np.zeros(len(row))
    battery = BatteryState(np.full(len(row), params.soc_start), zeros)
    return EnvState(battery, row, np.zeros(len(row), dtype=np.int64), np.zeros((len(row), WINDOW)), zeros, zeros)


def renew(params: EnvParams, scenario: Scenario, state: EnvState, over: BoolArray, row: IntArray) -> EnvState:
    """Begin a new episode, in these rows, for the households whose last one is over; the others go on."""
    fresh = initial(params, scenario, row)
    battery = BatteryState(*_where(over, fresh.battery, state.battery))
    return EnvState(battery, *_where(over, fresh[1:], state[1:]))


def observe(params: EnvParams, scenario: Scenario, state: EnvState) -> npt.NDArray[np.float32]:
    """Return the observation of the current minute, (batch, 6)."""
    at = _now(scenario, state.row, state.minute)
    world = (scenario.load_w[at], scenario.minute_of_day[at], scenario.price[at])
    return seen(params.battery, state.battery, *world)


def seen(
    battery: Battery, state: BatteryState, load_w: FloatArray, minute_of_day: IntArray, price: FloatArray
) -> npt.NDArray[np.float32]:
    """Return the manager's observation of a minute, (batch, 6), each of the order of one.

    An unknown load is shown as 0. Training and evaluation call this
    function, and a live controller can call it.
    """
    angle = minute_of_day * (2.0 * np.pi / 1440.0)
    left = np.minimum(bt.budget_left_kwh(battery, state), 1e6)
    share = left / np.minimum(np.maximum(battery.budget_kwh, 1e-9), 1e6)
    columns = [np.nan_to_num(load_w) / 1000.0, np.sin(angle), np.cos(angle), price, state.soc, share]
    return np.stack(columns, axis=1).astype(np.float32)


def action_mask(params: EnvParams, scenario: Scenario, state: EnvState) -> BoolArray:
    """Tell which of the 2K+1 actions would move energy now, (batch, action)."""
    load_w = scenario.load_w[_now(scenario, state.row, state.minute)]
    return executor.feasible(params.battery, params.library, state.battery, load_w)


def terminal(scenario: Scenario, state: EnvState) -> BoolArray:
    """Tell which episodes are over (D6: a civil day terminates, it is not truncated)."""
    return state.minute >= scenario.minutes[state.row]


def transition(params: EnvParams, scenario: Scenario, state: EnvState, action: IntArray) -> EnvState:
    """Carry the actions out to their ends; a household whose episode is over stays as it is."""
    replay = executor.nothing_running(params.library, len(action))
    replay = executor.issue(replay, executor.replay_signature(params.library, action))
    running = ~terminal(scenario, state)
    battery, row, minute, powers_w = state.battery, state.row, state.minute, []
    while running.any():
        replay = replay._replace(running=running)
        load_w = scenario.load_w[_now(scenario, row, minute)]
        battery, replay, power_w = executor.tick(params.battery, params.library, battery, replay, load_w)
        powers_w.append(power_w)
        minute = minute + running
        battery = bt.start_day(battery, running & begins_day(scenario, row, minute))
        running = replay.running & (minute < scenario.minutes[row])
    return _account(params, scenario, state, battery, minute, powers_w)


def _account(
    params: EnvParams,
    scenario: Scenario,
    before: EnvState,
    battery: BatteryState,
    minute: IntArray,
    powers_w: list[FloatArray],
) -> EnvState:
    """Record the effect of a decision; sums run in order of time, so that neighbours do not change a bit."""
    if not powers_w:
        nothing = np.zeros(len(minute))
        return before._replace(moved_kwh=nothing, cost=nothing)
    power_w = np.stack(powers_w)  # (minute, batch)
    steps = before.minute + np.arange(len(powers_w))[:, None]
    price = scenario.price[_now(scenario, before.row, steps)]
    cost = tariff.energy_cost(params.battery, price, power_w)
    cost = cost + tariff.degradation_cost(power_w, params.degradation_per_kwh)
    moved_kwh = np.abs(power_w) * KWH_PER_W_MINUTE
    joined = np.concatenate([before.past_w, power_w.T], axis=1)
    latest = (minute - before.minute)[:, None] + np.arange(WINDOW)
    past_w = np.take_along_axis(joined, latest, axis=1)
    sums = (np.cumsum(each, axis=0)[-1] for each in (moved_kwh, cost))
    return EnvState(battery, before.row, minute, past_w, *sums)


def begins_day(scenario: Scenario, row: IntArray, minute: IntArray) -> BoolArray:
    """Tell which households are in the first minute of a new civil day within their episode."""
    row, now = _now(scenario, row, minute)
    changed: BoolArray = scenario.day[row, now] != scenario.day[row, now - 1]
    return changed & (minute > 0)


def _now(scenario: Scenario, row: IntArray, minute: IntArray) -> tuple[IntArray, IntArray]:
    """Return the index of each household's current minute; the last one once its episode is over."""
    return row, scenario.lead + np.minimum(minute, scenario.minutes[row] - 1)


def _where(over: BoolArray, new: tuple[Any, ...], old: tuple[Any, ...]) -> Iterator[Any]:
    """Choose by household; the transpose brings the household last, as in `over`."""
    return (np.where(over, b.T, a.T).T for a, b in zip(old, new, strict=True))
