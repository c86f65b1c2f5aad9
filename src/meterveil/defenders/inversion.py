"""What an attacker who knows a defence makes of its meter alone: an estimate of the load, (batch, minute).

Decoys are removed by their shape: signatures are public, only the times at which they run are unknown. A level bounds
the load, and the minutes in which the battery does not follow show it. A policy that answers each load with one of
many battery powers leaves one load for each power, and the policy itself tells how well each of them fits; its answers
depend on SoC and budget too, so the attacker runs the battery forwards on its belief.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from meterveil.core import battery as bt
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.env import seen
from meterveil.core.tariff import usual_price

if TYPE_CHECKING:
    from meterveil.attackers.protocol import Meter
    from meterveil.data.simulation import Setup

_SHORTEST = 3
"""Fewest minutes of a signature that can be told from a step of the load."""
_LEAST_GAIN = 0.75
"""Share of a signature's changes that must vanish from the meter where it is removed."""
_ALIKE_W = 1.5
"""Difference from the shape of a signature that rounding to whole watts explains."""
_HIDDEN_W = 0.5
"""Reading below which a discharging battery hides the load (D3)."""

ALIKE_MINUTES = 2
"""Minutes on either side in which the load is taken to be the same."""
_LONGEST_SPIKE = 5
"""Minutes after which a spike on a level has ended."""
_HALF_HOUR = 15
"""Minutes on either side that tell whether a level is held."""
_HELD = 0.8
"""Share of unchanged readings above which it is."""

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


def level_below_decoys(shown_w: FloatArray, library: Library) -> FloatArray:
    """Find signatures on a constant level by their exact shape, and draw a line below each, (batch, minute).

    A decoy holds the level of its first minute; the level after it has changed by the load of all its minutes.
    """
    level_w = shown_w.copy()
    for signature, length in zip(library.watts[:-1], library.lengths[:-1], strict=True):
        if length < _SHORTEST:
            continue
        row, start = np.nonzero(np.abs(np.diff(shown_w[:, : 1 - length]) - np.diff(signature[:2])) <= _ALIKE_W)
        for minute in range(2, length):
            rise_w = shown_w[row, start + minute] - shown_w[row, start]
            fits = np.abs(rise_w - (signature[minute] - signature[0])) <= _ALIKE_W
            row, start = row[fits], start[fits]
        first_w, after_w = shown_w[row, start] - signature[0], shown_w[row, start + length]
        for minute in range(length):
            level_w[row, start + minute] = first_w + (after_w - first_w) * minute / length
    return level_w


def without_decoys(policy: object, meter: Meter, setup: Setup) -> FloatArray:
    """Remove signatures that were added to the load, and bridge the minutes in which the meter shows nothing.

    A signature is removed where the meter changes less without it. Discharging is mostly cut at the load, so
    that the meter shows 0 W; the load before and after is all that is known of it. To be the `invert` of a policy.
    """
    shown_w, library = meter.reading_w, setup.library
    load_w, minutes = shown_w.copy(), shown_w.shape[1]
    change_w = np.diff(shown_w, axis=1, prepend=shown_w[:, :1])
    gain = np.zeros((library.size, *shown_w.shape))
    for n, (signature, length) in enumerate(zip(library.watts[:-1], library.lengths[:-1], strict=True)):
        if not _SHORTEST <= length < minutes:
            continue
        edge_w = np.diff(signature[:length], prepend=0.0, append=0.0)
        starts = minutes - length
        for minute, rise_w in enumerate(edge_w):
            part_w = change_w[:, minute : minute + starts]
            gain[n, :, :starts] += np.abs(part_w) - np.abs(part_w - rise_w)
        gain[n] /= np.abs(edge_w).sum()
    best, which = gain.max(axis=0), gain.argmax(axis=0)
    row, start = np.nonzero(best >= _LEAST_GAIN)
    order = np.argsort(-best[row, start], kind="stable")
    taken = np.zeros(shown_w.shape, dtype=np.bool_)
    for one, begin in zip(row[order], start[order], strict=True):
        n = which[one, begin]
        inside = slice(begin, begin + library.lengths[n])
        if not taken[one, inside].any():
            taken[one, inside] = True
            load_w[one, inside] -= library.watts[n, : library.lengths[n]]
    return _bridged(np.where(shown_w < _HIDDEN_W, np.nan, np.maximum(load_w, 0.0)))


def _bridged(values: FloatArray) -> FloatArray:
    """Draw lines over unknown minutes; zero where a row knows nothing."""
    clock = np.arange(values.shape[1])
    rows = []
    for row in values:
        known = np.flatnonzero(~np.isnan(row))
        rows.append(np.interp(clock, known, row[known]) if known.size else np.zeros_like(row))
    return np.stack(rows)


def load_beside_levels(shown_w: FloatArray, battery: Battery) -> FloatArray:
    """Read the minutes in which the battery does not follow; take the mean of the meter in the others.

    A short spike on a level is the rest of a load that the battery discharges against with its full power.
    Between levels the battery is empty or its budget is spent, and the meter shows the load.
    """
    unchanged = np.diff(shown_w, axis=1, prepend=shown_w[:, :1]) == 0.0
    held = np.mean(around(unchanged, _HALF_HOUR), axis=2) >= _HELD
    near_w = around(shown_w, _LONGEST_SPIKE)
    spike = held & (shown_w > np.maximum(near_w[..., 0], near_w[..., -1]))
    hidden_w = np.reshape(battery.discharge_w, (-1, 1))
    return np.where(spike, shown_w + hidden_w, np.where(held, shown_w.mean(axis=1, keepdims=True), shown_w))


def within_a_step(step_w: float, shown_w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and the highest load for which a multiple of the step is shown."""
    return np.maximum(shown_w - step_w, 0.0), shown_w + step_w


def middle_w(
    step_w: float, shown_w: FloatArray, lowest_w: FloatArray, highest_w: FloatArray, minutes: int = 0
) -> FloatArray:
    """Return the middle of the loads that a reading and its neighbours allow, or else the reading alone.

    A reading that is no multiple of the step is the load: the battery did not follow.
    """
    low_w, high_w = around(lowest_w, minutes).max(axis=2), around(highest_w, minutes).min(axis=2)
    allowed_w = np.where(low_w <= high_w, low_w + high_w, lowest_w + highest_w) / 2.0
    return np.where(np.remainder(shown_w, step_w) == 0.0, allowed_w, shown_w)


def around(values: FloatArray | BoolArray, minutes: int) -> FloatArray:
    """Return the values up to so many minutes before and after each minute, (batch, minute, 2 minutes + 1)."""
    wide = np.pad(values, ((0, 0), (minutes, minutes)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(wide, 2 * minutes + 1, axis=1)


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
    count = cost.shape[1]
    before = np.repeat(cost.argmin(axis=1)[:, None], count, axis=1)
    least = cost.min(axis=1, keepdims=True)
    carried = np.full_like(cost, _JUMP)
    nearest = np.rint(change_w / step_w).astype(np.int64)
    source = np.arange(-1, count + 1) - nearest[:, None]  # one power more on either side
    inside = np.clip(source, 0, count - 1)
    above_least = np.where(source == inside, np.take_along_axis(cost, inside, axis=1) - least, np.inf)
    for moved in (-1, 0, 1):  # powers by which the answer follows the reading, beyond the nearest number
        drift_w = np.abs(change_w - step_w * (nearest + moved))
        part = slice(1 - moved, count + 1 - moved)
        drifts = above_least[:, part] + (_DRIFT_PER_W * drift_w)[:, None]
        better = drifts < carried
        np.copyto(carried, drifts, where=better)
        np.copyto(before, source[:, part], where=better)
    return carried, before


def _misfit(answers: npt.NDArray[np.int16], powers_w: FloatArray, load_w: FloatArray) -> FloatArray:
    """Return how far each power is from the answer to its load, (batch, action); discharging ends at 0 W (D3)."""
    below = np.clip(load_w / _GRID_W, 0, len(_LOADS_W) - 2).astype(np.int64)
    near = [np.take_along_axis(answers, each, axis=1) for each in (below, below + 1)]
    number = np.arange(len(powers_w), dtype=np.int16)
    misfit: FloatArray = np.minimum(np.minimum(*(np.abs(asked - number) for asked in near)), _WORST_FIT)
    if (hidden := load_w + powers_w < 0.5).any():
        misfit[hidden & (powers_w[near[0]] <= -load_w)] = 0.0
    return misfit
