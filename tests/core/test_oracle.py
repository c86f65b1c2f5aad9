"""Equality of the core and a slow scalar simulator that shares no code with it."""

import numpy as np
import pytest
from oracle import House, episode

from meterveil.core import env, executor
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario

HOUSES = 12


def random_world(seed):
    """Twelve households with batteries of their own over two civil days, one of 23 hours."""
    rng = np.random.default_rng(seed)
    lengths = [1380, 1440]
    minutes = sum(lengths)
    load_w = np.abs(rng.normal(250.0, 500.0, (HOUSES, minutes)))
    load_w[rng.random(load_w.shape) < 0.005] = np.nan
    day = np.repeat([7, 8], lengths)
    clock = np.concatenate([np.arange(60, 1440), np.arange(1440)])
    price = np.where(clock < 420, 0.1317, 0.3075)
    scenario = Scenario(
        load_w, *(np.tile(part, (HOUSES, 1)) for part in (clock, day, price)), minutes=np.full(HOUSES, minutes)
    )
    battery = Battery(
        capacity_kwh=rng.uniform(1.0, 10.0, HOUSES),
        charge_w=rng.uniform(500.0, 4000.0, HOUSES),
        discharge_w=rng.uniform(500.0, 4000.0, HOUSES),
        charge_efficiency=rng.uniform(0.85, 1.0, HOUSES),
        discharge_efficiency=rng.uniform(0.85, 1.0, HOUSES),
        soc_min=rng.uniform(0.0, 0.2, HOUSES),
        soc_max=rng.uniform(0.6, 1.0, HOUSES),
        budget_kwh=rng.choice([0.5, 3.0, 8.0, np.inf], HOUSES),
        export_limit_w=rng.choice([0.0, 500.0, np.inf], HOUSES),
        import_limit_w=rng.choice([1500.0, 5000.0, np.inf], HOUSES),
    )
    signatures = [(f"a{k}", rng.uniform(200.0, 3000.0, rng.integers(1, 36))) for k in range(5)]
    return rng, scenario, battery, Library.of(signatures, "random")


def told_by_the_oracle(scenario, battery, library, row, actions, soc):
    house = House(**{name: float(value[row]) for name, value in vars(battery).items()}, soc=soc)
    curves = [watts.tolist() for _, watts in library.signatures()]
    return episode(house, curves, iter(actions), scenario.load_w[row].tolist(), scenario.day[row].tolist())


class Script:
    """Replay a fixed list of actions per household, one whenever a household waits."""

    def __init__(self, actions):
        self.actions = actions

    def initial(self, batch):
        return np.zeros(batch, dtype=np.int64)

    def decide(self, view, memory):
        action = self.actions[np.arange(len(memory)), memory]
        return executor.replay_signature(view.library, action), memory + view.waits


@pytest.mark.parametrize("seed", range(5))
def test_a_rollout_agrees_with_the_oracle(seed):
    rng, scenario, battery, library = random_world(seed)
    actions = rng.integers(0, library.n_actions, (HOUSES, scenario.horizon))
    unused = [np.random.default_rng(0)] * HOUSES
    trace = rollout(Script(actions), battery, library, scenario, unused, 0.4)
    for row in range(HOUSES):
        power_w, soc = told_by_the_oracle(scenario, battery, library, row, actions[row], 0.4)
        np.testing.assert_allclose(trace.power_w[row], power_w, rtol=0, atol=1e-6)
        np.testing.assert_allclose(trace.soc[row], soc, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (6, 7))])
def test_decision_by_decision_the_environment_agrees_with_the_oracle(seed):
    rng, scenario, battery, library = random_world(seed)
    actions = rng.integers(0, library.n_actions, (HOUSES, scenario.horizon))
    params = env.EnvParams(battery, library, soc_start=0.4)
    rows = np.arange(HOUSES)
    told = [told_by_the_oracle(scenario, battery, library, row, actions[row], 0.4) for row in rows]
    power_w, soc = (np.array(part) for part in zip(*told, strict=True))
    padded_w = np.pad(power_w, [(0, 0), (env.WINDOW, 0)])
    state, number = env.initial(params, scenario), 0
    while not env.terminal(scenario, state).all():
        state = env.transition(params, scenario, state, actions[:, number])
        number += 1
        np.testing.assert_allclose(state.battery.soc, soc[rows, state.minute - 1], rtol=0, atol=1e-10)
        recent_w = padded_w[rows[:, None], state.minute[:, None] + np.arange(env.WINDOW)]
        np.testing.assert_allclose(state.past_w, recent_w, rtol=0, atol=1e-6)
    assert np.all(state.minute == scenario.minutes)
