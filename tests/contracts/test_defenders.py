"""Every defence, whoever wrote it, keeps the battery's laws and its own word."""

import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders import DEFENDERS, defender
from meterveil.errors import InputError

HOUSES, MINUTES = 8, 2 * 1440
LIBRARY = Library.of([("kettle", [1500.0, 2500.0, 2000.0]), ("oven", [1800.0] * 20)], "test")


def world(seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    load_w = np.abs(rng.normal(300.0, 400.0, (HOUSES, MINUTES)))
    load_w[rng.random(load_w.shape) < gaps] = np.nan
    clock = np.tile(np.arange(MINUTES), (HOUSES, 1))
    price = np.where(clock % 1440 < 420, 0.1317, 0.3075)
    return Scenario(load_w, clock % 1440, clock // 1440, price, np.full(HOUSES, MINUTES))


def play(name, scenario, battery=None, seed=1):
    rngs = [np.random.default_rng([seed, row]) for row in range(scenario.batch)]
    return rollout(defender(name), battery or Battery(), LIBRARY, scenario, rngs)


@pytest.fixture(params=sorted(DEFENDERS))
def name(request):
    return request.param


def test_the_battery_stays_within_its_limits(name):
    trace = play(name, world())
    assert trace.soc.min() >= 0.1
    assert trace.soc.max() <= 0.9
    assert np.abs(trace.power_w).max() <= 4000.0
    assert trace.meter_w.min() >= 0.0
    per_day_kwh = np.abs(trace.power_w).reshape(HOUSES, 2, 1440).sum(axis=2) / 60_000
    assert per_day_kwh.max() <= 8.0 + 1e-9


def test_a_defence_survives_gaps_and_rests_in_them(name):
    scenario = world(gaps=0.1)
    trace = play(name, scenario)
    assert np.isfinite(trace.soc).all()
    assert np.all(trace.power_w[np.isnan(scenario.load_w)] == 0.0)


def test_the_same_seed_gives_the_same_trace_and_a_neighbour_changes_nothing(name):
    scenario = world()
    np.testing.assert_array_equal(play(name, scenario).power_w, play(name, scenario).power_w)
    few = play(name, scenario.rows(slice(0, 3)))
    np.testing.assert_array_equal(few.power_w, play(name, scenario).power_w[:3])


def test_the_future_does_not_reach_back(name):
    scenario = world()
    other = world(seed=9)
    load_w = np.concatenate([scenario.load_w[:, :700], other.load_w[:, 700:]], axis=1)
    changed = Scenario(load_w, scenario.minute_of_day, scenario.day, scenario.price, scenario.minutes)
    np.testing.assert_array_equal(play(name, changed).power_w[:, :700], play(name, scenario).power_w[:, :700])


def test_a_battery_without_budget_moves_nothing(name):
    assert np.all(play(name, world(), Battery(budget_kwh=0.0)).power_w == 0.0)


def test_an_unknown_defence_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"no defence 'cloak'; known are none, random, flat"):
        defender("cloak")
