"""What no request, load or battery may ever break; each law sees more than 10,000 random cases."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import CASES, EXAMPLES, batteries, libraries, loads, requests, states

from meterveil.core import battery as bt
from meterveil.core import env, executor
from meterveil.core.arrays import KWH_PER_W_MINUTE
from meterveil.core.battery import Battery, BatteryState, start_day, step
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders import DEFENDERS

law = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
EPISODE_MINUTES = 90


@st.composite
def minutes(draw, outside=False):
    battery = draw(batteries())
    return battery, draw(states(battery, outside)), draw(requests), draw(loads)


@given(minutes())
@law
def test_soc_stays_in_range(case):
    battery, state, request_w, load_w = case
    after, _ = step(battery, state, request_w, load_w)
    assert np.all((after.soc >= battery.soc_min) & (after.soc <= battery.soc_max))


@given(minutes(outside=True))
@law
def test_a_soc_outside_the_range_only_moves_back_in(case):
    battery, state, request_w, load_w = case
    after, _ = step(battery, state, request_w, load_w)
    above, below = state.soc > battery.soc_max, state.soc < battery.soc_min
    assert np.all(after.soc[above] <= state.soc[above])
    assert np.all(after.soc[above] >= battery.soc_min[above])
    assert np.all(after.soc[below] >= state.soc[below])
    assert np.all(after.soc[below] <= battery.soc_max[below])


@given(minutes(outside=True))
@law
def test_power_limits_hold_to_the_last_float(case):
    battery, state, request_w, load_w = case
    power_w = step(battery, state, request_w, load_w)[1].power_w
    assert np.all((power_w <= battery.charge_w) & (power_w >= -battery.discharge_w))


@given(minutes(outside=True))
@law
def test_a_delivery_is_a_part_of_its_request(case):
    battery, state, request_w, load_w = case
    power_w = step(battery, state, request_w, load_w)[1].power_w
    assert np.all(np.abs(power_w) <= np.abs(request_w))
    assert np.all(power_w * request_w >= 0.0)


@given(minutes(outside=True))
@law
def test_export_and_import_limits_hold_to_the_last_float(case):
    battery, state, request_w, load_w = case
    known = ~np.isnan(load_w)
    meter_w = (load_w + step(battery, state, request_w, load_w)[1].power_w)[known]
    lowest_w = np.minimum(-battery.export_limit_w, load_w)[known]
    highest_w = np.maximum(battery.import_limit_w, load_w)[known]
    assert np.all((meter_w >= lowest_w) & (meter_w <= highest_w))


@given(minutes(outside=True))
@law
def test_an_unknown_load_moves_nothing_and_ends_the_replay(case):
    battery, state, request_w, _ = case
    after, delivery = step(battery, state, request_w, np.full(CASES, np.nan))
    assert np.all(delivery.power_w == 0.0)
    assert np.all(delivery.ended)
    np.testing.assert_array_equal(after, state)


@given(minutes(outside=True))
@law
def test_an_unknown_request_moves_nothing_and_ends_the_replay(case):
    battery, state, _, load_w = case
    after, delivery = step(battery, state, np.full(CASES, np.nan), load_w)
    assert np.all(delivery.power_w == 0.0)
    assert np.all(delivery.ended)
    np.testing.assert_array_equal(after, state)


@given(minutes(outside=True))
@law
def test_energy_balances(case):
    battery, state, request_w, load_w = case
    after, delivery = step(battery, state, request_w, load_w)
    energy_kwh = delivery.power_w / 60_000
    stored_kwh = np.where(
        energy_kwh > 0, energy_kwh * battery.charge_efficiency, energy_kwh / battery.discharge_efficiency
    )
    np.testing.assert_allclose((after.soc - state.soc) * battery.capacity_kwh, stored_kwh, rtol=0, atol=1e-14)
    np.testing.assert_allclose(after.moved_kwh - state.moved_kwh, np.abs(energy_kwh), rtol=0, atol=1e-14)


@given(minutes(outside=True))
@law
def test_a_batch_equals_its_households_one_by_one_bit_for_bit(case):
    battery, state, request_w, load_w = case
    together, delivered = step(battery, state, request_w, load_w)
    for i in range(CASES):
        row = slice(i, i + 1)
        alone = Battery(**{name: value[row] for name, value in vars(battery).items()})
        after, delivery = step(alone, BatteryState(*(part[row] for part in state)), request_w[row], load_w[row])
        np.testing.assert_array_equal(np.stack(after), np.stack([part[row] for part in together]))
        np.testing.assert_array_equal(np.stack(delivery), np.stack([part[row] for part in delivered]))


@given(minutes(outside=True), st.integers(0, 2**32 - 1))
@law
def test_the_daily_budget_holds_to_the_last_float_however_often_it_is_asked_for(case, seed):
    battery, state, _, load_w = case
    state = state._replace(moved_kwh=np.zeros(CASES))
    rng = np.random.default_rng(seed)
    total_kwh = np.zeros(CASES)
    for _ in range(30):
        state, delivery = step(battery, state, rng.normal(0.0, 4000.0, CASES), load_w)
        total_kwh = total_kwh + np.abs(delivery.power_w) * KWH_PER_W_MINUTE
    assert np.all(total_kwh <= battery.budget_kwh)
    assert np.all(state.moved_kwh <= battery.budget_kwh)
    assert np.all(start_day(state, np.ones(CASES, dtype=bool)).moved_kwh == 0.0)


@st.composite
def fleets(draw):
    """A battery and an hour and a half with midnight and a gap in it for every household."""
    battery, library = draw(batteries()), draw(libraries())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    load_w = np.abs(rng.normal(300.0, 900.0, (CASES, EPISODE_MINUTES)))
    load_w[rng.random(load_w.shape) < 0.02] = np.nan
    clock = np.tile(np.arange(EPISODE_MINUTES) + 1440 - 40, (CASES, 1))
    price = np.where(clock % 1440 < 420, 0.13, 0.31)
    minutes = np.full(CASES, EPISODE_MINUTES)
    scenario = Scenario(load_w, clock % 1440, clock // 1440, price, minutes)
    return (battery, library, scenario, draw(states(battery, outside=True)).soc, draw(st.integers(0, 2**32 - 1)))


def generators(seed):
    return [np.random.default_rng([seed, i]) for i in range(CASES)]


@given(fleets(), st.sampled_from(sorted(DEFENDERS)))
@law
def test_every_defence_obeys_every_law_over_an_episode(fleet, name):
    battery, library, scenario, soc, seed = fleet
    trace = rollout(DEFENDERS[name](), battery, library, scenario, generators(seed), soc)
    assert np.all(trace.soc.T >= np.minimum(battery.soc_min, soc))
    assert np.all(trace.soc.T <= np.maximum(battery.soc_max, soc))
    assert np.all((trace.power_w.T <= battery.charge_w) & (trace.power_w.T >= -battery.discharge_w))
    np.testing.assert_array_equal(trace.meter_w, scenario.load_w + trace.power_w)
    known = ~np.isnan(trace.load_w)
    lowest_w = np.minimum(-battery.export_limit_w[:, None], trace.load_w)
    highest_w = np.maximum(battery.import_limit_w[:, None], trace.load_w)
    assert np.all((trace.meter_w[known] >= lowest_w[known]) & (trace.meter_w[known] <= highest_w[known]))
    assert np.all(trace.power_w[~known] == 0.0)
    for day in np.unique(scenario.day):
        moved_kwh = np.cumsum(np.abs(trace.power_w * (scenario.day == day)) * KWH_PER_W_MINUTE, axis=1)[:, -1]
        assert np.all(moved_kwh <= battery.budget_kwh)


@given(fleets(), st.sampled_from(sorted(DEFENDERS)))
@law
def test_the_same_seed_gives_the_same_trace_alone_and_in_any_company(fleet, name):
    battery, library, scenario, soc, seed = fleet
    trace = rollout(DEFENDERS[name](), battery, library, scenario, generators(seed), soc)
    for rows in (slice(0, 1), slice(CASES - 1, 0, -2), slice(2, None, 2)):
        some = Battery(**{field: value[rows] for field, value in vars(battery).items()})
        again = rollout(DEFENDERS[name](), some, library, scenario.rows(rows), generators(seed)[rows], soc[rows])
        np.testing.assert_array_equal(again.power_w, trace.power_w[rows])
        np.testing.assert_array_equal(again.soc, trace.soc[rows])


@given(batteries().flatmap(lambda b: st.tuples(st.just(b), states(b, outside=True))), libraries(), loads)
@law
def test_the_mask_allows_exactly_the_actions_that_move_energy(case, library, load_w):
    battery, state = case
    mask = executor.feasible(battery, library, state, load_w)
    assert mask.shape == (CASES, library.n_actions)
    assert mask[:, 0].all()
    for action in range(1, library.n_actions):
        command = executor.replay_signature(library, np.full(CASES, action))
        replay = executor.issue(executor.nothing_running(library, CASES), command)
        power_w = executor.tick(battery, library, state, replay, load_w)[2]
        np.testing.assert_array_equal(mask[:, action], power_w != 0.0)


@given(fleets())
@law
def test_what_the_mask_forbids_costs_one_idle_minute_and_moves_nothing(fleet):
    battery, library, scenario, soc, seed = fleet
    params = env.EnvParams(battery, library)
    state = env.initial(params, scenario)
    state = state._replace(battery=state.battery._replace(soc=soc))
    mask = env.action_mask(params, scenario, state)
    action = np.random.default_rng(seed).integers(1, library.n_actions, CASES)
    after = env.transition(params, scenario, state, action)
    forbidden = ~mask[np.arange(CASES), action]
    assert np.all(after.minute[forbidden] == 1)
    assert np.all(after.moved_kwh[forbidden] == 0.0)
    assert np.all(after.moved_kwh[~forbidden] > 0.0)


def test_the_laws_see_more_than_ten_thousand_different_cases():
    seen = set()

    @given(minutes(outside=True))
    @law
    def look(case):
        battery, state, request_w, load_w = case
        seen.update(zip(*vars(battery).values(), *state, request_w, load_w, strict=True))

    look()
    assert len(seen) >= 10_000


def test_the_budget_left_is_never_negative():
    state = BatteryState(np.array([0.5]), np.array([9.0]))
    assert bt.budget_left_kwh(Battery(), state)[0] == 0.0
