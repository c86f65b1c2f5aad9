"""What an attacker who knows a policy makes of its meter: the loads that explain the readings best.

A policy that answers each load with one of many battery powers shows load plus answer. So a reading leaves one
load for each power, and the policy itself tells how well each of them fits. Its answers depend on SoC and budget
too; the attacker runs the battery forwards on its belief to know them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from meterveil.core import battery as bt
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState
from meterveil.core.env import seen
from meterveil.core.tariff import usual_price

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

_GRID_W = 20.0
_LOADS_W = np.arange(0.0, 6001.0, _GRID_W)
_SOCS = np.linspace(0.0, 1.0, 11)
_BUDGETS = np.linspace(0.0, 1.0, 5)
"""Loads, SoC and shares of the budget for which the answers of each hour are computed."""

_WORST_FIT, _JUMP, _DRIFT_PER_W, _LARGE = 8.0, 3.0, 0.02, 0.2
"""Most that an answer costs which does not fit (1 for each power beside it), and the costs of a jump of the load,
of each watt of drift and of each multiple of the usual load. Chosen on training days of UK-DALE house 1."""
_IMPOSSIBLE = 50.0
_AT_ONCE = 64
"""Meters decoded at a time, a bound on memory."""


class Valued(Protocol):
    """Policy that asks for the power of the highest value."""

    @property
    def powers_w(self) -> FloatArray:
        """(action,) equally spaced."""
        ...

    def __hash__(self) -> int: ...

    def values(self, observation: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Value every action, (batch, 6) to (batch, action)."""
        ...


def likeliest_load(policy: Valued, meter: Meter, setup: Setup) -> FloatArray:
    """Find the loads that explain the readings at the least cost, (batch, minute)."""
    parts = -(-len(meter.reading_w) // _AT_ONCE)
    pieces = zip(*(np.array_split(part, parts) for part in (meter.reading_w, meter.minute_of_day)), strict=True)
    return np.concatenate([_decoded(policy, reading_w, clock, setup) for reading_w, clock in pieces])


def _decoded(policy: Valued, reading_w: FloatArray, minute_of_day: IntArray, setup: Setup) -> FloatArray:
    """Carry the least cost of every power forwards, with the battery of the best one, then go back (Viterbi)."""
    powers_w, rows = policy.powers_w, np.arange(len(reading_w))
    hours, hour = np.unique(minute_of_day // 60, return_inverse=True)
    price = usual_price(setup.tariff, 60)
    answers = np.stack([_answers(policy, int(each), float(price[each])) for each in hours])
    usual_w = np.maximum(reading_w.mean(axis=1, keepdims=True), 1.0)
    change_w = np.diff(reading_w, axis=1, prepend=reading_w[:, :1])
    state = BatteryState(np.full(len(rows), INITIAL_SOC), np.zeros(len(rows)))
    cost = np.zeros((len(rows), len(powers_w)))
    earlier = np.empty((reading_w.shape[1], *cost.shape), dtype=np.int16)
    for minute, shown_w in enumerate(reading_w.T):
        state = bt.start_day(state, minute_of_day[:, minute] == 0)
        load_w = shown_w[:, None] - powers_w
        now = answers[hour.reshape(minute_of_day.shape)[:, minute], *_nearest(setup.battery, state)]
        cost, earlier[minute] = _carried_on(cost, change_w[:, minute], powers_w[1] - powers_w[0])
        cost += _misfit(now, powers_w, load_w) + _LARGE * load_w / usual_w + _IMPOSSIBLE * (load_w < -0.5)
        belief_w = np.maximum(shown_w - powers_w[cost.argmin(axis=1)], 0.0)
        state, _ = bt.step(setup.battery, state, shown_w - belief_w, belief_w)
    load_w, power = np.empty_like(reading_w), cost.argmin(axis=1)
    for minute in reversed(range(reading_w.shape[1])):
        load_w[:, minute] = reading_w[:, minute] - powers_w[power]
        power = earlier[minute, rows, power]
    return np.maximum(load_w, 0.0)


@lru_cache(maxsize=96)
def _answers(policy: Valued, hour: int, price: float) -> npt.NDArray[np.int16]:
    """Return the number of the power that a policy asks for in the middle of an hour, (SoC, budget, load).

    A policy sees the share of the budget alone, so every battery gets the same answers.
    """
    soc, left, load_w = (axis.ravel() for axis in np.meshgrid(_SOCS, _BUDGETS, _LOADS_W, indexing="ij"))
    minute = np.full(len(load_w), 60 * hour + 30)
    battery = Battery(budget_kwh=1.0)
    observation = seen(battery, BatteryState(soc, 1.0 - left), load_w, minute, np.full(len(load_w), price))
    best = np.argmax(policy.values(observation.astype(np.float64)), axis=1)
    return np.asarray(best, dtype=np.int16).reshape(len(_SOCS), len(_BUDGETS), len(_LOADS_W))


def _nearest(battery: Battery, state: BatteryState) -> tuple[IntArray, IntArray]:
    """Return the numbers of the nearest computed SoC and budget, (batch,) each."""
    left = 1.0 - state.moved_kwh / np.maximum(battery.budget_kwh, 1e-9)
    parts = (state.soc, len(_SOCS) - 1), (left, len(_BUDGETS) - 1)
    soc, budget = (np.rint(np.clip(share, 0.0, 1.0) * most).astype(np.int64) for share, most in parts)
    return soc, budget


def _carried_on(cost: FloatArray, change_w: FloatArray, step_w: float) -> tuple[FloatArray, IntArray]:
    """Return the least cost of each power with a load that drifts or jumps, and the power of the minute before."""
    count, rows = cost.shape[1], np.arange(len(cost))[:, None]
    before = np.repeat(cost.argmin(axis=1)[:, None], count, axis=1)
    least = np.take_along_axis(cost, before, axis=1)
    carried = np.full_like(cost, _JUMP)
    nearest = np.rint(change_w / step_w).astype(np.int64)
    for moved in (nearest - 1, nearest, nearest + 1):  # powers by which the answer follows the reading
        source = np.arange(count) - moved[:, None]
        inside = np.clip(source, 0, count - 1)
        drift_w = np.abs(change_w - step_w * moved)
        drifts = cost[rows, inside] - least + (_DRIFT_PER_W * drift_w)[:, None]
        better = (drifts < carried) & (source == inside)
        carried, before = np.where(better, drifts, carried), np.where(better, inside, before)
    return carried, before


def _misfit(answers: npt.NDArray[np.int16], powers_w: FloatArray, load_w: FloatArray) -> FloatArray:
    """Return how far each power is from the answer to its load, (batch, action); discharging ends at 0 W (D3)."""
    below = np.clip(load_w / _GRID_W, 0, len(_LOADS_W) - 2).astype(np.int64)
    near = [np.take_along_axis(answers, each, axis=1) for each in (below, below + 1)]
    number = np.arange(len(powers_w))
    beside = np.minimum(*(np.abs(asked - number) for asked in near)).astype(np.float64)
    hidden = (load_w + powers_w < 0.5) & (powers_w[near[0]] <= -load_w)
    return np.where(hidden, 0.0, np.minimum(beside, _WORST_FIT))
