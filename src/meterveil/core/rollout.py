"""Minute by minute control of batteries by a policy: `advance` is one minute, `rollout` a whole scenario.

In each minute the policy gives a new command to the households without a running one, then the minute
passes for all households. A live controller can call `advance` with a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from meterveil.core import battery as bt
from meterveil.core import executor, tariff
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState, Connection
from meterveil.core.decoys import Library
from meterveil.core.executor import Command, Replay
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import Cost

_BLOCK_MINUTES = 240


class View(NamedTuple):
    """Knowledge of a defence at the start of a minute; one entry per household."""

    battery: Battery
    library: Library
    state: BatteryState
    load_w: FloatArray  # (batch,) load of this minute; NaN where the meter gave none
    meter_w: FloatArray  # (batch,) meter reading of the minute before; NaN at the start
    minute_of_day: IntArray  # (batch,)
    price: FloatArray  # (batch,)
    chance: FloatArray  # (batch, 2) independent uniform numbers in [0, 1): the only randomness
    waits: BoolArray  # (batch,) needs a command; commands for the others are ignored
    allowed: Connection | None = None  # `battery.connection` of the load, where it is known already
    room: tuple[FloatArray, FloatArray] | None = None  # `battery.room_w` of the state, where it is known already


class Policy(Protocol):
    """Rule that decides; anything it remembers between minutes is in `memory`.

    It is called in every minute, even if no household waits, so that memories do not depend on neighbours.
    """

    def initial(self, batch: int) -> Any:
        """Return the memory of a fresh start."""
        ...

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        """Return a command for every household, and the memory for the next minute."""
        ...


class Trace(NamedTuple):
    """Result of a rollout, (batch, minute); zero power and NaN loads after the end of a shorter row."""

    load_w: FloatArray
    power_w: FloatArray
    soc: FloatArray  # at the end of each minute
    soc_start: FloatArray  # (batch,)

    @property
    def meter_w(self) -> FloatArray:
        return self.load_w + self.power_w


class Minute(NamedTuple):
    """State of the world in one minute; one entry per household."""

    load_w: FloatArray
    minute_of_day: IntArray
    price: FloatArray
    new_day: BoolArray  # the civil day begins in this minute: the daily budget is full again
    chance: FloatArray  # (batch, 2) independent uniform numbers in [0, 1)
    allowed: Connection | None = None  # `battery.connection` of the load, where it is known already


class Control(NamedTuple):
    """State of the controller between two minutes."""

    state: BatteryState
    replay: Replay
    memory: Any  # of the policy
    meter_w: FloatArray  # (batch,) latest meter reading; NaN before the first


def begin(policy: Policy, library: Library, batch: int, soc: float | FloatArray = INITIAL_SOC) -> Control:
    """Start with nothing moved and no command running."""
    start = BatteryState(np.broadcast_to(np.asarray(soc, dtype=np.float64), batch), np.zeros(batch))
    return Control(start, executor.nothing_running(library, batch), policy.initial(batch), np.full(batch, np.nan))


def advance(
    policy: Policy, battery: Battery, library: Library, control: Control, minute: Minute
) -> tuple[Control, FloatArray]:
    """Let the policy decide and carry its command out for one minute; return the battery power, (batch,).

    Simulations call this function, and a live controller can call it.
    """
    load_w, clock, price, new_day, chance, allowed = minute
    state = bt.start_day(control.state, new_day)
    waits = ~control.replay.running
    room = bt.room_w(battery, state)
    view = View(battery, library, state, load_w, control.meter_w, clock, price, chance, waits, allowed, room)
    command, memory = policy.decide(view, control.memory)
    replay = executor.issue(control.replay, command)
    state, replay, power_w = executor.tick(battery, library, state, replay, load_w, allowed, room)
    return Control(state, replay, memory, load_w + power_w), power_w


def rollout(
    policy: Policy,
    battery: Battery,
    library: Library,
    scenario: Scenario,
    rngs: Sequence[np.random.Generator],
    soc_start: float | FloatArray = INITIAL_SOC,
) -> Trace:
    """Let the policy act over the whole scenario, SoC carried over every midnight in it.

    Each household has a generator of its own, so its trace does not depend on its neighbours.
    """
    batch, horizon = scenario.batch, scenario.horizon
    power_w, soc = np.empty((horizon, batch)), np.empty((horizon, batch))
    control = begin(policy, library, batch, soc_start)
    first_soc = control.state.soc
    for t, minute in enumerate(_minutes(battery, scenario, rngs)):
        control, power_w[t] = advance(policy, battery, library, control, minute)
        soc[t] = control.state.soc
    return Trace(scenario.load_w[:, scenario.lead :], power_w.T, soc.T, first_soc)


def _minutes(battery: Battery, scenario: Scenario, rngs: Sequence[np.random.Generator]) -> Iterator[Minute]:
    """Yield a scenario minute by minute, in blocks that fit into the processor's cache."""
    for first in range(scenario.lead, scenario.lead + scenario.horizon, _BLOCK_MINUTES):
        block = slice(first, first + _BLOCK_MINUTES)
        load_w, price = (np.ascontiguousarray(part[:, block].T) for part in (scenario.load_w, scenario.price))
        clock, day = (np.ascontiguousarray(part[:, block].T) for part in (scenario.minute_of_day, scenario.day))
        before = scenario.day[:, first if first == scenario.lead else first - 1]
        new_day = np.diff(day, axis=0, prepend=before[None]) != 0
        chance = np.stack([rng.random((len(day), 2)) for rng in rngs])  # (batch, minute, 2)
        chance = np.ascontiguousarray(chance.transpose(1, 2, 0)).transpose(0, 2, 1)
        allowed = map(Connection, *bt.connection(battery, load_w))
        yield from map(Minute, load_w, clock, price, new_day, chance, allowed)


def trace_cost(
    battery: Battery, scenario: Scenario, trace: Trace, degradation_per_kwh: float = tariff.DEGRADATION_PER_KWH
) -> Cost:
    """Return the cost of a trace for each household, (batch,)."""
    price = scenario.price[:, scenario.lead :]
    return tariff.day_cost(battery, price, trace.power_w, trace.soc_start, trace.soc[:, -1], degradation_per_kwh)
