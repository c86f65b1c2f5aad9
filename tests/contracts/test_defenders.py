"""Every defence, whoever wrote it, keeps the battery's laws and its own word."""

import copy
from dataclasses import fields, replace
from functools import cache, partial

import numpy as np
import pytest

from meterveil.core.battery import Battery, BatteryState
from meterveil.core.decoys import Library
from meterveil.core.rollout import View, rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders import DEFENDERS, defender
from meterveil.defenders.ddql.settings import preset
from meterveil.defenders.ddql.training import Lesson, train
from meterveil.errors import InputError

HOUSES, EVENING, MINUTES = 8, 6 * 60, 14 * 60
"""From 18:00 over midnight to 8:00: what is left of one day's budget, and all of the next one's."""

LIBRARY = Library.of([("kettle", [1500.0, 2500.0, 2000.0]), ("oven", [1800.0] * 20)], "test")
STEADY = {"none"}
"""Defences that move nothing, whatever the load does."""


TINY = replace(preset("fast"), epochs=2, slots=8, updates=4, buffer=4000, h_hidden=8, h_passes=1)


@cache
def tiny_ddql(method):
    """Teach a defence just enough that its network says something of its own."""
    return train(Lesson(method, Battery(), world(), TINY)).policy


CASES = {name: partial(defender, name) for name in DEFENDERS} | {
    method: partial(tiny_ddql, method) for method in ("ddql_flat", "ddql_mi")
}
"""Name -> what builds the defence: the registered ones, and small instances of those that are trained."""


def world(seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    load_w = np.abs(rng.normal(300.0, 400.0, (HOUSES, MINUTES)))
    load_w[rng.random(load_w.shape) < gaps] = np.nan
    clock = np.tile(1440 - EVENING + np.arange(MINUTES), (HOUSES, 1))
    price = np.where(clock % 1440 < 420, 0.1317, 0.3075)
    return Scenario(load_w, clock % 1440, clock // 1440, price, np.full(HOUSES, MINUTES))


@cache
def ordinary(name):
    return play(name, world())


def play(name, scenario, battery=None, seed=1, soc=0.5):
    rngs = [np.random.default_rng([seed, row]) for row in range(scenario.batch)]
    return rollout(CASES[name](), battery or Battery(), LIBRARY, scenario, rngs, soc)


def moved_kwh(trace):
    evening_w, morning_w = np.split(np.abs(trace.power_w), [EVENING], axis=1)
    return np.stack([evening_w.sum(axis=1), morning_w.sum(axis=1)], axis=1) / 60_000  # (house, day)


def view_of(scenario, minute):
    rng, clock = np.random.default_rng(minute), scenario.minute_of_day[:, minute]
    state = BatteryState(rng.uniform(0.1, 0.9, HOUSES), rng.uniform(0.0, 8.0, HOUSES))
    load_w, meter_w = scenario.load_w[:, minute], scenario.load_w[:, minute - 1] + 10.0
    chance, waits = rng.random((HOUSES, 2)), rng.random(HOUSES) < 0.5
    return View(Battery(), LIBRARY, state, load_w, meter_w, clock, scenario.price[:, minute], chance, waits)


@pytest.fixture(params=sorted(CASES))
def name(request):
    return request.param


def test_the_battery_stays_within_its_limits(name):
    trace = ordinary(name)
    assert trace.soc.min() >= 0.1
    assert trace.soc.max() <= 0.9
    assert np.abs(trace.power_w).max() <= 4000.0
    assert trace.meter_w.min() >= 0.0
    assert moved_kwh(trace).max() <= 8.0 + 1e-9


def test_a_defence_moves_energy_unless_it_is_none(name):
    moved = moved_kwh(ordinary(name)).sum()
    assert moved == 0.0 if name in STEADY else moved > 0.0


def test_a_defence_survives_gaps_and_rests_in_them(name):
    scenario = world(gaps=0.1)
    trace = play(name, scenario)
    assert np.isfinite(trace.soc).all()
    assert np.all(trace.power_w[np.isnan(scenario.load_w)] == 0.0)


def test_a_defence_wakes_up_after_an_evening_without_readings(name):
    scenario = world()
    scenario.load_w[:, :EVENING] = np.nan
    moved = moved_kwh(play(name, scenario))
    assert np.all(moved[:, 0] == 0.0)
    assert name in STEADY or moved[:, 1].sum() > 0.0


def test_the_same_seed_gives_the_same_trace_and_a_neighbour_changes_nothing(name):
    scenario = world()
    np.testing.assert_array_equal(play(name, scenario).power_w, ordinary(name).power_w)
    few = play(name, scenario.rows(slice(0, 3)))
    np.testing.assert_array_equal(few.power_w, ordinary(name).power_w[:3])


def test_a_fleet_of_different_batteries_acts_as_each_household_alone(name):
    rng, scenario = np.random.default_rng(3), world(gaps=0.02)
    fleet = Battery(
        capacity_kwh=rng.uniform(1.0, 12.0, HOUSES),
        charge_w=rng.uniform(500.0, 4000.0, HOUSES),
        charge_efficiency=rng.uniform(0.8, 1.0, HOUSES),
        discharge_efficiency=rng.uniform(0.8, 1.0, HOUSES),
        soc_min=rng.uniform(0.0, 0.3, HOUSES),
        budget_kwh=rng.uniform(1.0, 9.0, HOUSES),
    )
    together = play(name, scenario, fleet).power_w
    for row in (0, HOUSES - 1):
        own = {
            field.name: np.broadcast_to(getattr(fleet, field.name), HOUSES)[row] for field in fields(Battery)
        }
        rngs = [np.random.default_rng([1, row])]
        alone = rollout(CASES[name](), Battery(**own), LIBRARY, scenario.rows([row]), rngs)
        np.testing.assert_array_equal(alone.power_w[0], together[row])


def test_all_memory_travels_and_no_decision_changes_what_it_was_given(name):
    policy, scenario = CASES[name](), world(gaps=0.1)
    memory = policy.initial(HOUSES)
    for minute in range(1, 60):
        before, view = copy.deepcopy(memory), view_of(scenario, minute)
        command, after = policy.decide(view, memory)
        again, after_again = policy.decide(copy.deepcopy(view), before)
        np.testing.assert_equal(tuple(command), tuple(again))
        np.testing.assert_equal(after, after_again)
        np.testing.assert_equal(memory, before)
        memory = after


def test_the_future_does_not_reach_back(name):
    scenario = world()
    other = world(seed=9)
    load_w = np.concatenate([scenario.load_w[:, :700], other.load_w[:, 700:]], axis=1)
    changed = replace(scenario, load_w=load_w)
    np.testing.assert_array_equal(play(name, changed).power_w[:, :700], ordinary(name).power_w[:, :700])


def test_a_battery_without_budget_moves_nothing(name):
    assert np.all(play(name, world(), Battery(budget_kwh=0.0)).power_w == 0.0)


def test_a_battery_at_or_past_an_end_of_its_range_only_moves_back_in(name):
    soc = np.tile([0.05, 0.1, 0.9, 1.0], HOUSES // 4)
    trace = play(name, world(), soc=soc)
    assert np.all(trace.soc.min(axis=1) >= np.minimum(soc, 0.1))
    assert np.all(trace.soc.max(axis=1) <= np.maximum(soc, 0.9))


def test_an_unknown_defence_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=rf"no defence 'cloak'; known are {', '.join(DEFENDERS)}$"):
        defender("cloak")
