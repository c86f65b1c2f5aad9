import numpy as np
import pytest

from meterveil.core import env
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.scenario import Scenario, stack
from meterveil.errors import InputError

LIBRARY = Library.of([("kettle", [1000.0, 2000.0, 1500.0]), ("toaster", [800.0])], "test")
PARAMS = env.EnvParams(Battery(), LIBRARY)


def world(load_w=400.0, minutes=1440, lead=0, start=0, batch=1):
    clock = np.tile(np.arange(start - lead, start + minutes), (batch, 1))
    price = np.where(clock % 1440 < 420, 0.1317, 0.3075)
    length = np.full(batch, minutes)
    return Scenario(np.full(clock.shape, load_w), clock % 1440, clock // 1440, price, length, lead)


def test_an_episode_starts_half_full_with_nothing_moved():
    state = env.initial(PARAMS, world())
    assert (state.battery.soc[0], state.battery.moved_kwh[0], state.minute[0]) == (0.5, 0.0, 0)


def test_the_manager_sees_load_time_price_soc_and_budget():
    scenario = world(minutes=1440)
    state = env.initial(PARAMS, scenario)._replace(minute=np.array([360]))
    seen = dict(zip(env.OBSERVATION, env.observe(PARAMS, scenario, state)[0].tolist(), strict=True))
    assert seen == pytest.approx(
        {"load_kw": 0.4, "day_sin": 1.0, "day_cos": 0.0, "price": 0.1317, "soc": 0.5, "budget_left": 1.0}, abs=1e-6
    )


def test_an_observation_is_finite_without_load_and_without_budget_limit():
    scenario = world(load_w=np.nan)
    for budget_kwh in (np.inf, 0.0):
        params = env.EnvParams(Battery(budget_kwh=budget_kwh), LIBRARY)
        assert np.isfinite(env.observe(params, scenario, env.initial(params, scenario))).all()


def test_a_decision_lasts_as_long_as_its_signature():
    scenario = world(batch=3)
    state = env.transition(PARAMS, scenario, env.initial(PARAMS, scenario), np.array([0, 1, 4]))
    assert state.minute.tolist() == [1, 3, 1]
    assert state.past_w[1, -4:].tolist() == [0.0, 1000.0, 2000.0, 1500.0]
    assert state.past_w[2, -2:].tolist() == [0.0, -400.0]
    np.testing.assert_allclose(state.moved_kwh, [0.0, 0.075, 0.4 / 60])


def test_a_decision_costs_energy_at_the_price_of_its_minutes_and_wear():
    scenario = world(start=418)
    state = env.transition(PARAMS, scenario, env.initial(PARAMS, scenario), np.array([1]))
    energy = (0.1317 * 1.0 + 0.1317 * 2.0 + 0.3075 * 1.5) / 60
    assert state.cost[0] == pytest.approx(energy + 0.075 * 4.5 / 60)


def test_an_infeasible_decision_passes_a_minute_and_moves_nothing():
    params = env.EnvParams(Battery(), LIBRARY, soc_start=0.9)
    scenario = world()
    state = env.transition(params, scenario, env.initial(params, scenario), np.array([1]))
    assert (state.minute[0], state.moved_kwh[0], state.cost[0]) == (1, 0.0, 0.0)


def test_the_end_of_the_day_cuts_a_replay_and_terminates():
    scenario = world(minutes=2)
    state = env.transition(PARAMS, scenario, env.initial(PARAMS, scenario), np.array([1]))
    assert env.terminal(scenario, state).all()
    assert state.moved_kwh[0] == pytest.approx(0.05)


def test_a_finished_household_stays_as_it_is_while_others_go_on():
    scenario = stack([world(minutes=2), world(minutes=10)])
    state = env.initial(PARAMS, scenario)
    state = env.transition(PARAMS, scenario, state, np.array([1, 1]))
    after = env.transition(PARAMS, scenario, state, np.array([1, 1]))
    assert after.minute.tolist() == [2, 6]
    assert after.battery.soc[0] == state.battery.soc[0]
    assert (after.moved_kwh[0], after.cost[0]) == (0.0, 0.0)
    done = after._replace(minute=scenario.minutes)
    assert env.transition(PARAMS, scenario, done, np.array([1, 1])).minute.tolist() == [2, 10]


@pytest.mark.parametrize("hours", [23, 24, 25])
def test_the_budget_starts_anew_at_local_midnight_however_long_the_day(hours):
    first = hours * 60
    scenario = world(minutes=first + 1440)
    day = np.repeat([0, 1], [first, 1440])[None, :]
    scenario = Scenario(scenario.load_w, scenario.minute_of_day, day, scenario.price, scenario.minutes)
    params = env.EnvParams(Battery(budget_kwh=0.04), LIBRARY)
    state = env.transition(params, scenario, env.initial(params, scenario), np.array([1]))
    assert env.observe(params, scenario, state)[0, -1] < 1e-9
    while state.minute[0] < first - 1:
        state = env.transition(params, scenario, state, np.array([0]))
    assert env.action_mask(params, scenario, state)[0].tolist() == [True, False, False, False, False]
    state = env.transition(params, scenario, state, np.array([0]))
    assert state.minute[0] == first
    assert env.observe(params, scenario, state)[0, -1] == 1.0
    assert env.action_mask(params, scenario, state).all()


def test_a_lead_shows_windows_the_minutes_before_the_start():
    scenario = world(lead=60)
    assert (scenario.horizon, scenario.load_w.shape) == (1440, (1, 1500))
    state = env.initial(PARAMS, scenario)
    assert env.observe(PARAMS, scenario, state)[0, 2] == pytest.approx(1.0)  # midnight, not 23 h


def test_rows_of_different_length_end_at_their_own_minute():
    both = stack([world(minutes=1380), world(minutes=1440)])
    assert both.minutes.tolist() == [1380, 1440]
    assert np.isnan(both.load_w[0, 1380:]).all()
    assert not np.isnan(both.load_w[1]).any()
    assert both.rows([1, 1]).minutes.tolist() == [1440, 1440]


def test_scenarios_with_different_leads_do_not_stack():
    with pytest.raises(InputError, match="leads"):
        stack([world(lead=0), world(lead=60)])
