"""Laws of defences: the limits of the battery, causality, no hidden memory, no hidden randomness."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from meterveil.attackers.protocol import Meter
from meterveil.contracts.law import Law, equal_bits, expect
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.battery import INITIAL_SOC, Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.rollout import Policy, Trace, View, rollout
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data.simulation import Setup

HOUSES, EVENING, MINUTES = 8, 4 * 60, 8 * 60
"""Households, and minutes from 20:00 over midnight to 4:00, which use the budgets of two days."""

LIBRARY = Library.of([("kettle", [1500.0, 2500.0, 2000.0]), ("oven", [1800.0] * 20)], "test")


@dataclass(frozen=True)
class DefenceCase:
    """Defence under test."""

    build: Callable[[], Policy]
    moves: bool = True
    """False for a defence that never acts."""

    @cached_property
    def ordinary(self) -> Trace:
        """Trace of an ordinary night."""
        return self.play(world())

    def play(self, scenario: Scenario, battery: Battery | None = None, soc: float | FloatArray = INITIAL_SOC) -> Trace:
        """Build the defence and run it, always with the same generators."""
        rngs = [np.random.default_rng([1, row]) for row in range(scenario.batch)]
        return rollout(self.build(), battery or Battery(), LIBRARY, scenario, rngs, soc)


def world(seed: int = 0, gaps: float = 0.0) -> Scenario:
    """Make random loads of some households over a night, with a share of unknown minutes."""
    rng = np.random.default_rng(seed)
    load_w = np.abs(rng.normal(300.0, 400.0, (HOUSES, MINUTES)))
    load_w[rng.random(load_w.shape) < gaps] = np.nan
    clock = np.tile(1440 - EVENING + np.arange(MINUTES), (HOUSES, 1))
    price = PAPER_TARIFF.price(clock % 1440, clock)
    return Scenario(load_w, clock % 1440, clock // 1440, price, np.full(HOUSES, MINUTES))


def the_battery_stays_within_its_limits(case: DefenceCase) -> None:
    trace = case.ordinary
    expect(trace.soc.min() >= 0.1, f"SoC fell to {trace.soc.min():.3f}; the least is 0.1")
    expect(trace.soc.max() <= 0.9, f"SoC rose to {trace.soc.max():.3f}; the most is 0.9")
    most_w = np.abs(trace.power_w).max()
    expect(most_w <= 4000.0, f"the battery ran at {most_w:.0f} W; the most is 4,000")
    least_w, most_kwh = trace.meter_w.min(), moved_kwh(trace).max()
    expect(least_w >= 0.0, f"the meter showed {least_w:.0f} W; export is not allowed")
    expect(most_kwh <= 8.0 + 1e-9, f"it moved {most_kwh:.2f} kWh a day; 8 are allowed")


def it_moves_energy_unless_it_is_meant_to_rest(case: DefenceCase) -> None:
    moved = moved_kwh(case.ordinary).sum()
    expect((moved > 0.0) == case.moves, f"it moved {moved:.2f} kWh")


def it_rests_in_gaps_and_acts_again_after_them(case: DefenceCase) -> None:
    short, evening = world(gaps=0.1), world()
    evening.load_w[:, :EVENING] = np.nan
    for scenario in (short, evening):
        trace = case.play(scenario)
        expect(np.isfinite(trace.soc).all(), "SoC is not a number after a minute without a reading")
        expect(np.all(trace.power_w[np.isnan(scenario.load_w)] == 0.0), "it moved energy in a gap")
    expect(not case.moves or np.any(trace.power_w), "after an evening without readings it never moved again")


def the_same_seed_gives_the_same_trace_whatever_else_is_in_the_batch(case: DefenceCase) -> None:
    again = case.play(world()).power_w
    power_w = case.ordinary.power_w
    expect(equal_bits(again, power_w), "a second run differs: use random numbers of view.chance alone")
    few = case.play(world().rows(slice(0, 3))).power_w
    expect(equal_bits(few, power_w[:3]), "other households in the batch change what a household does")


def a_fleet_of_different_batteries_acts_as_each_household_alone(case: DefenceCase) -> None:
    """Expect support for battery fields that are one number or one for each household."""
    rng, scenario = np.random.default_rng(3), world(gaps=0.02)
    fleet = Battery(
        capacity_kwh=rng.uniform(1.0, 12.0, HOUSES),
        charge_w=rng.uniform(500.0, 4000.0, HOUSES),
        charge_efficiency=rng.uniform(0.8, 1.0, HOUSES),
        discharge_efficiency=rng.uniform(0.8, 1.0, HOUSES),
        soc_min=rng.uniform(0.0, 0.3, HOUSES),
        budget_kwh=rng.uniform(1.0, 9.0, HOUSES),
    )
    together = case.play(scenario, fleet).power_w
    row = HOUSES - 1
    own = {part.name: np.broadcast_to(getattr(fleet, part.name), HOUSES)[row] for part in fields(Battery)}
    rngs = [np.random.default_rng([1, row])]
    alone = rollout(case.build(), Battery(**own), LIBRARY, scenario.rows([row]), rngs)
    expect(equal_bits(alone.power_w[0], together[row]), "a household alone acts differently than in a fleet")


def all_state_is_in_its_memory_and_no_decision_changes_its_input(case: DefenceCase) -> None:
    policy, scenario = case.build(), world(gaps=0.1)
    memory = policy.initial(HOUSES)
    for minute in range(1, 60):
        view = view_of(scenario, minute)
        before, seen = copy.deepcopy((memory, view))
        command, after = policy.decide(view, memory)
        expect(equal_bits(memory, before), "it changed the memory in its input: return a new one")
        expect(equal_bits(view[2:], seen[2:]), "it changed the view in its input: work on copies")
        again, after_again = policy.decide(seen, before)
        agrees = equal_bits((*command, after), (*again, after_again))
        expect(agrees, "called twice, it decides differently: keep all state in `memory`")
        memory = after


def later_loads_do_not_change_earlier_decisions(case: DefenceCase) -> None:
    scenario, other, known = world(), world(seed=9), MINUTES - 60
    load_w = np.concatenate([scenario.load_w[:, :known], other.load_w[:, known:]], axis=1)
    changed = case.play(replace(scenario, load_w=load_w)).power_w
    expect(equal_bits(changed[:, :known], case.ordinary.power_w[:, :known]), "later loads change earlier minutes")


def a_battery_without_budget_moves_nothing(case: DefenceCase) -> None:
    power_w = case.play(world(), Battery(budget_kwh=0.0)).power_w
    expect(np.all(power_w == 0.0), "it moved energy")


def a_battery_at_or_past_an_end_of_its_range_only_moves_back_in(case: DefenceCase) -> None:
    soc = np.tile([0.05, 0.1, 0.9, 1.0], HOUSES // 4)
    trace = case.play(world(), soc=soc)
    expect(np.all(trace.soc.min(axis=1) >= np.minimum(soc, 0.1)), "it discharged below the range")
    expect(np.all(trace.soc.max(axis=1) <= np.maximum(soc, 0.9)), "it charged above the range")


def an_inversion_sees_the_meter_alone(case: DefenceCase) -> None:
    """Expect of a policy that offers `invert` that neither the load nor the dice reach its estimate."""
    invert = getattr(case.build(), "invert", None)
    if invert is None:
        return
    named = list(signature(invert).parameters)
    expect(named == ["meter", "setup"], f"invert takes {named}; give it (meter, setup) and nothing of the load")
    scenario, setup = world(), Setup(LIBRARY)
    policy: Any = case.build()
    meter = Meter(case.ordinary.meter_w.round(), scenario.minute_of_day, np.zeros_like(scenario.minute_of_day))
    before = meter.reading_w.copy()
    load_w = policy.invert(meter, setup)
    expect(load_w.shape == before.shape, f"its estimate has shape {load_w.shape}, the meter {before.shape}")
    expect(np.isfinite(load_w).all(), "its estimate is not finite everywhere")
    expect(equal_bits(meter.reading_w, before), "it changed the meter in its input: work on copies")
    rngs = [np.random.default_rng([2, row]) for row in range(HOUSES)]
    rollout(policy, Battery(), LIBRARY, world(seed=5), rngs)
    again = equal_bits(policy.invert(meter, setup), load_w)
    expect(again, "after it masked another load, it inverts the same meter differently")
    few = Meter(meter.reading_w[:3], meter.minute_of_day[:3], meter.weekday[:3])
    expect(equal_bits(policy.invert(few, setup), load_w[:3]), "other meters in the batch change an estimate")


def moved_kwh(trace: Trace) -> FloatArray:
    """Return the energy moved before and after midnight, (house, day)."""
    evening_w, morning_w = np.split(np.abs(trace.power_w), [EVENING], axis=1)
    return np.stack([evening_w.sum(axis=1), morning_w.sum(axis=1)], axis=1) * KWH_PER_W_MINUTE


def view_of(scenario: Scenario, minute: int) -> View:
    """Make the view of one minute, with batteries in random states."""
    rng, clock = np.random.default_rng(minute), scenario.minute_of_day[:, minute]
    state = BatteryState(rng.uniform(0.1, 0.9, HOUSES), rng.uniform(0.0, 8.0, HOUSES))
    load_w, meter_w = scenario.load_w[:, minute], scenario.load_w[:, minute - 1] + 10.0
    chance, waits = rng.random((HOUSES, 2)), rng.random(HOUSES) < 0.5
    return View(Battery(), LIBRARY, state, load_w, meter_w, clock, scenario.price[:, minute], chance, waits)


DEFENCE_LAWS: tuple[Law[DefenceCase], ...] = (
    the_battery_stays_within_its_limits,
    it_moves_energy_unless_it_is_meant_to_rest,
    it_rests_in_gaps_and_acts_again_after_them,
    the_same_seed_gives_the_same_trace_whatever_else_is_in_the_batch,
    a_fleet_of_different_batteries_acts_as_each_household_alone,
    all_state_is_in_its_memory_and_no_decision_changes_its_input,
    later_loads_do_not_change_earlier_decisions,
    a_battery_without_budget_moves_nothing,
    a_battery_at_or_past_an_end_of_its_range_only_moves_back_in,
    an_inversion_sees_the_meter_alone,
)
