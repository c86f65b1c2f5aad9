"""A defence at work on the test days, seed by seed: what the meter showed and what the battery did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from meterveil.bench.strength import Trial
from meterveil.core import tariff
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import INITIAL_SOC
from meterveil.core.executor import Command
from meterveil.core.rollout import Policy, Trace, View
from meterveil.core.scenario import Scenario
from meterveil.data.household import Household
from meterveil.data.simulation import Masked, Run, Setup, mask
from meterveil.data.splits import consecutive_pieces
from meterveil.defenders.defence import Defence

_TEST_DICE = 0x7E57


class Physical(NamedTuple):
    """What the battery did, (seed, day) each."""

    throughput_kwh: FloatArray  # in and out together
    soc_end: FloatArray  # at midnight
    energy_cost: FloatArray
    degradation_cost: FloatArray
    total_cost: FloatArray
    soc_neutral_cost: FloatArray  # with what it takes to begin the next day with the same charge (D7)


@dataclass(frozen=True)
class Played:
    """Hold what a defence made of the test days."""

    days: tuple[tuple[Household, ...], ...]
    """(seed, day) masked days that keep the true appliances, and the true load as `AGGREGATE`."""
    alike: tuple[int, ...]
    """Seed -> the first seed under which the meter showed the same: chance moves not every defence."""
    physical: Physical
    example: Run
    """The first day under the first seed, to be drawn."""


def dice(seed: int, seeds: int) -> list[np.random.Generator]:
    """Throw new dice for every seed of a defence, such as no attacker has seen."""
    return [np.random.default_rng([seed, number, _TEST_DICE]) for number in range(seeds)]


def play(trial: Trial, home: Household, one: Defence, setup: Setup, seeds: int) -> Played:
    """Run a defence over the test days; SoC is carried over midnight, and anew where days are left out."""
    pieces = consecutive_pieces(home.select(trial.targets), trial.test.days)
    days: list[list[Household]] = [[] for _ in range(seeds)]
    figures: list[Physical] = []
    rngs = dice(trial.seed, seeds)
    for piece in pieces:
        parts = _masked(one, setup, piece, rngs)
        trace = Trace(
            *(np.concatenate(column) for column in zip(*(part.trace for part in parts), strict=True))
        )
        figures += list(_by_day(setup, piece, parts[0].scenario, trace))
        for row, copy in enumerate(copy for part in parts for copy in part.households):
            days[row] += [copy.day(day) for day in piece.days()]
    physical = Physical(*(np.stack(column, axis=1) for column in zip(*figures, strict=True)))
    first_day = pieces[0].day(pieces[0].days()[0])
    shown = example(one, first_day, setup, trial.seed)
    return Played(tuple(map(tuple, days)), _alike(days), physical, shown)


def example(one: Defence, day: Household, setup: Setup, seed: int = 0) -> Run:
    """Play one day again under the first seed, and write down which signature ran in each minute."""
    watched = _Watched(one.policies[0])
    _, scenario, trace = mask(watched, setup, day, dice(seed, 1))
    return Run(
        household=day.name,
        aggregate=day.aggregate,
        notes=day.notes,
        defence=one.name,
        setup=setup,
        minutes=day.minutes,
        load_w=trace.load_w[0],
        battery_w=trace.power_w[0],
        asked_w=np.full(len(day.minutes), np.nan),
        soc=trace.soc[0],
        soc_start=INITIAL_SOC,
        price=scenario.price[0, scenario.lead :],
        decoy=np.array(watched.signatures),
    )


class _Watched:
    """Pass decisions on and write down the signature under way: a trace does not tell it."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.signatures: list[int] = []

    def initial(self, batch: int) -> Any:
        return self.policy.initial(batch)

    def decide(self, view: View, memory: Any) -> tuple[Command, Any]:
        command, memory = self.policy.decide(view, memory)
        self.signatures.append(int(command.signature[0]) if view.waits[0] else self.signatures[-1])
        return command, memory


def _masked(
    one: Defence, setup: Setup, piece: Household, rngs: Sequence[np.random.Generator]
) -> list[Masked]:
    """Run every policy over a piece, the seeds of one policy together."""
    if len(one.policies) == 1:
        return [mask(one.policies[0], setup, piece, rngs)]
    return [mask(policy, setup, piece, [rng]) for policy, rng in zip(one.policies, rngs, strict=True)]


def _alike(days: Sequence[Sequence[Household]]) -> tuple[int, ...]:
    meters = [b"".join(day.aggregate_w.tobytes() for day in row) for row in days]
    return tuple(meters.index(meter) for meter in meters)


def _by_day(setup: Setup, piece: Household, scenario: Scenario, trace: Trace) -> Iterator[Physical]:
    """Sum every civil day up, (seed,) each."""
    price = scenario.price[:1, scenario.lead :]
    soc = np.column_stack([trace.soc_start, trace.soc])
    bounds = np.cumsum([0, *(len(piece.day(day).minutes) for day in piece.days())])
    for begin, end in pairwise(bounds):
        power_w = trace.power_w[:, begin:end]
        prices = np.broadcast_to(price[:, begin:end], power_w.shape)
        cost = tariff.day_cost(setup.battery, prices, power_w, soc[:, begin], soc[:, end])
        moved_kwh = np.abs(power_w).sum(axis=1) * KWH_PER_W_MINUTE
        yield Physical(moved_kwh, soc[:, end], cost.energy, cost.degradation, cost.total, cost.soc_neutral)
