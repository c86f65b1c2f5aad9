"""Runs a defence over a scenario, minute by minute, for all households at once.

This is how defences are simulated and measured: whoever has no command under way is asked for the next
one, then one minute passes for everybody. The live controller does the same with a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from meterveil.core import battery as bt
from meterveil.core import executor, tariff
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState, Connection
from meterveil.core.decoys import Library
from meterveil.core.executor import Command
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import Cost

_BLOCK_MINUTES = 240


class View(NamedTuple):
    """What a defence may know at the start of a minute; one entry per household."""

    battery: Battery
    library: Library
    state: BatteryState
    load_w: FloatArray  # (batch,) load of this minute; NaN where the meter gave none
    meter_w: FloatArray  # (batch,) what the meter showed in the minute before; NaN at the start
    minute_of_day: IntArray  # (batch,)
    price: FloatArray  # (batch,)
    chance: FloatArray  # (batch, 2) independent uniform numbers in [0, 1): the only randomness there is
    waits: BoolArray  # (batch,) who needs a command; commands for the others are ignored


class Policy(Protocol):
    """Decide; whatever a policy must remember between minutes travels through `memory`.

    It is asked in every minute, also where nobody waits, so that no memory depends on a neighbour.
    """

    def initial(self, batch: int) -> Any:
        """Return the memory of a fresh start."""
        ...

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        """Return a command for every household, and the memory for the next minute."""
        ...


class Trace(NamedTuple):
    """What happened, (batch, minute); zero power and NaN loads behind a shorter row's end."""

    load_w: FloatArray
    power_w: FloatArray
    soc: FloatArray  # at the end of each minute
    soc_start: FloatArray  # (batch,)

    @property
    def meter_w(self) -> FloatArray:
        """What the meter shows: load plus battery power."""
        return self.load_w + self.power_w


def rollout(
    policy: Policy,
    battery: Battery,
    library: Library,
    scenario: Scenario,
    rngs: Sequence[np.random.Generator],
    soc_start: float | FloatArray = 0.5,
) -> Trace:
    """Let the policy act over the whole scenario, SoC carried over every midnight in it.

    Each household has a generator of its own, so its trace does not depend on its neighbours.
    """
    batch, horizon = scenario.batch, scenario.horizon
    power_w, soc = np.empty((horizon, batch)), np.empty((horizon, batch))
    start = BatteryState(np.broadcast_to(np.asarray(soc_start, dtype=np.float64), batch), np.zeros(batch))
    state, memory = start, policy.initial(batch)
    replay, meter_w = executor.nothing_running(library, batch), np.full(batch, np.nan)
    for t, now in enumerate(_minutes(battery, scenario, rngs)):
        if now.begins_day:
            state = bt.start_day(state, now.new_day)
        waits, clock = ~replay.running, now.minute_of_day
        view = View(battery, library, state, now.load_w, meter_w, clock, now.price, now.chance, waits)
        command, memory = policy.decide(view, memory)
        replay = executor.issue(replay, command)
        state, replay, power_w[t] = executor.tick(battery, library, state, replay, now.load_w, now.allowed)
        soc[t], meter_w = state.soc, now.load_w + power_w[t]
    return Trace(scenario.load_w[:, scenario.lead :], power_w.T, soc.T, start.soc)


class _Minute(NamedTuple):
    """What the world does in one minute, (batch,) each."""

    load_w: FloatArray
    minute_of_day: IntArray
    price: FloatArray
    new_day: BoolArray
    begins_day: bool  # for any household
    chance: FloatArray  # (batch, 2)
    allowed: Connection


def _minutes(battery: Battery, scenario: Scenario, rngs: Sequence[np.random.Generator]) -> Iterator[_Minute]:
    """Lay a scenario out minute by minute, a block at a time: a block stays in the processor's cache."""
    for begin in range(scenario.lead, scenario.lead + scenario.horizon, _BLOCK_MINUTES):
        block = slice(begin, begin + _BLOCK_MINUTES)
        load_w, price = (np.ascontiguousarray(part[:, block].T) for part in (scenario.load_w, scenario.price))
        clock, day = (
            np.ascontiguousarray(part[:, block].T) for part in (scenario.minute_of_day, scenario.day)
        )
        before = scenario.day[:, begin if begin == scenario.lead else begin - 1]
        new_day = np.diff(day, axis=0, prepend=before[None]) != 0
        chance = np.stack([rng.random((len(day), 2)) for rng in rngs])  # (batch, minute, 2)
        chance = np.ascontiguousarray(chance.transpose(1, 2, 0)).transpose(0, 2, 1)
        allowed = map(Connection, *bt.connection(battery, load_w))
        yield from map(_Minute, load_w, clock, price, new_day, new_day.any(axis=1), chance, allowed)


def trace_cost(
    battery: Battery,
    scenario: Scenario,
    trace: Trace,
    degradation_per_kwh: float = tariff.DEGRADATION_PER_KWH,
) -> Cost:
    """Add up what a trace cost each household, (batch,)."""
    price = scenario.price[:, scenario.lead :]
    return tariff.day_cost(
        battery, price, trace.power_w, trace.soc_start, trace.soc[:, -1], degradation_per_kwh
    )
