"""The manager's decision problem: initial, observe, transition, terminal (section 5 of the paper, D6).

One transition is one decision. It lasts as long as the chosen signature replays, so the households of a
batch each have a clock of their own. Rewards are not part of the physics: a reward is any function of
the scenario, the state before, the action and the state after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from meterveil.core import battery as bt
from meterveil.core import executor, tariff
from meterveil.core.arrays import KWH_PER_W_MINUTE, BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.scenario import Scenario

WINDOW = 60
"""Minutes of past battery power that a state remembers: the probe's window (D5)."""

OBSERVATION = ("load_kw", "day_sin", "day_cos", "price", "soc", "budget_left")
"""What the manager sees, in this order (section 5)."""


@dataclass(frozen=True)
class EnvParams:
    """Fix everything that an episode does not change."""

    battery: Battery
    library: Library
    degradation_per_kwh: float = tariff.DEGRADATION_PER_KWH
    soc_start: float = 0.5


class EnvState(NamedTuple):
    """Where every household of the batch stands."""

    battery: BatteryState
    minute: IntArray  # (batch,) minutes acted in so far
    past_w: FloatArray  # (batch, WINDOW) battery power of the latest minutes, the last one at the end
    moved_kwh: FloatArray  # (batch,) energy that the latest decision moved
    cost: FloatArray  # (batch,) energy and degradation cost of the latest decision


class Reward(Protocol):
    """Judge a decision; the one thing about the environment that a user plugs in."""

    def __call__(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        """Return one number per household."""
        ...


def initial(params: EnvParams, scenario: Scenario) -> EnvState:
    """Begin an episode: nothing moved, SoC at its start value."""
    zeros = np.zeros(scenario.batch)
    battery = BatteryState(np.full(scenario.batch, params.soc_start), zeros)
    minute = np.zeros(scenario.batch, dtype=np.int64)
    return EnvState(battery, minute, np.zeros((scenario.batch, WINDOW)), zeros, zeros)


def observe(params: EnvParams, scenario: Scenario, state: EnvState) -> npt.NDArray[np.float32]:
    """Return what the manager sees, (batch, 6), each of the order of one; an unknown load shows as 0."""
    at = _now(scenario, state.minute)
    angle = scenario.minute_of_day[at] * (2.0 * np.pi / 1440.0)
    left = np.minimum(bt.budget_left_kwh(params.battery, state.battery), 1e6)
    share = left / np.minimum(np.maximum(params.battery.budget_kwh, 1e-9), 1e6)
    columns = [
        np.nan_to_num(scenario.load_w[at]) / 1000.0,
        np.sin(angle),
        np.cos(angle),
        scenario.price[at],
        state.battery.soc,
        share,
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def action_mask(params: EnvParams, scenario: Scenario, state: EnvState) -> BoolArray:
    """Tell which of the 2K+1 actions would move energy now, (batch, action)."""
    load_w = scenario.load_w[_now(scenario, state.minute)]
    return executor.feasible(params.battery, params.library, state.battery, load_w)


def terminal(scenario: Scenario, state: EnvState) -> BoolArray:
    """Tell whose episode is over (D6: a civil day terminates, it is not cut off)."""
    return state.minute >= scenario.minutes


def transition(params: EnvParams, scenario: Scenario, state: EnvState, action: IntArray) -> EnvState:
    """Carry the actions out to their ends; a household whose episode is over stays as it is."""
    replay = executor.nothing_running(params.library, scenario.batch)
    replay = executor.issue(replay, executor.replay_signature(params.library, action))
    running = ~terminal(scenario, state)
    battery, minute, powers_w = state.battery, state.minute, []
    while running.any():
        replay = replay._replace(running=running)
        load_w = scenario.load_w[_now(scenario, minute)]
        battery, replay, power_w = executor.tick(params.battery, params.library, battery, replay, load_w)
        powers_w.append(power_w)
        minute = minute + running
        battery = bt.start_day(battery, running & begins_day(scenario, minute))
        running = replay.running & (minute < scenario.minutes)
    return _account(params, scenario, state, battery, minute, powers_w)


def _account(
    params: EnvParams,
    scenario: Scenario,
    before: EnvState,
    battery: BatteryState,
    minute: IntArray,
    powers_w: list[FloatArray],
) -> EnvState:
    """Remember what the decision did; sums run in the order of time, so that no neighbour changes a bit."""
    if not powers_w:
        return before._replace(moved_kwh=np.zeros(scenario.batch), cost=np.zeros(scenario.batch))
    power_w = np.stack(powers_w)  # (minute, batch)
    steps = before.minute + np.arange(len(powers_w))[:, None]
    price = scenario.price[_now(scenario, steps)]
    cost = tariff.energy_cost(params.battery, price, power_w)
    cost = cost + tariff.degradation_cost(power_w, params.degradation_per_kwh)
    moved_kwh = np.abs(power_w) * KWH_PER_W_MINUTE
    joined = np.concatenate([before.past_w, power_w.T], axis=1)
    latest = (minute - before.minute)[:, None] + np.arange(WINDOW)
    past_w = np.take_along_axis(joined, latest, axis=1)
    return EnvState(battery, minute, past_w, np.cumsum(moved_kwh, axis=0)[-1], np.cumsum(cost, axis=0)[-1])


def begins_day(scenario: Scenario, minute: IntArray) -> BoolArray:
    """Tell whose current minute is the first of a civil day that began under way."""
    row, now = _now(scenario, minute)
    changed: BoolArray = scenario.day[row, now] != scenario.day[row, now - 1]
    return changed & (minute > 0)


def _now(scenario: Scenario, minute: IntArray) -> tuple[IntArray, IntArray]:
    """Index of each household's current minute; the last one once its episode is over."""
    return np.arange(scenario.batch), scenario.lead + np.minimum(minute, scenario.minutes - 1)
