"""Runs a defence over a scenario, minute by minute, for all households at once.

This is how defences are simulated and measured: whoever has no command under way is asked for the next
one, then one minute passes for everybody. The live controller does the same with a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from meterveil.core import battery as bt
from meterveil.core import executor, tariff
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.executor import Command
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import Cost


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
    chance = np.stack([rng.random((horizon, 2)) for rng in rngs], axis=1)  # (minute, batch, 2)
    load_w = np.ascontiguousarray(scenario.load_w[:, scenario.lead :].T)  # (minute, batch): a row a minute
    clock, price, day = (
        np.ascontiguousarray(part[:, scenario.lead :].T)
        for part in (scenario.minute_of_day, scenario.price, scenario.day)
    )
    power_w, soc = np.empty((horizon, batch)), np.empty((horizon, batch))
    start = BatteryState(np.broadcast_to(np.asarray(soc_start, dtype=np.float64), batch), np.zeros(batch))
    state, memory = start, policy.initial(batch)
    replay, meter_w = executor.nothing_running(library, batch), np.full(batch, np.nan)
    for t in range(horizon):
        if t and (day[t] != day[t - 1]).any():
            state = bt.start_day(state, day[t] != day[t - 1])
        waits = ~replay.running
        view = View(battery, library, state, load_w[t], meter_w, clock[t], price[t], chance[t], waits)
        command, memory = policy.decide(view, memory)
        replay = executor.issue(replay, command)
        state, replay, power_w[t] = executor.tick(battery, library, state, replay, load_w[t])
        soc[t], meter_w = state.soc, load_w[t] + power_w[t]
    return Trace(load_w.T, power_w.T, soc.T, start.soc)


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
