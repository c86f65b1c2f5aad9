"""The one-household view: Gymnasium's own checks, and the same numbers as the core."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.core import env
from meterveil.core.env import rms_disturbance_kw
from meterveil.errors import InputError


@pytest.fixture
def household(params, scenario):
    return HouseholdEnv(params, scenario, rms_disturbance_kw)


def play(household, actions, **reset):
    steps = [household.reset(**reset)]
    for action in actions:
        steps.append(household.step(action))
        if steps[-1][2]:
            break
    return steps


def test_both_libraries_checkers_find_nothing_to_warn_of(household):
    check_env(household, skip_render_check=True)
    check_env_for_sb3(household)


def test_the_name_in_gymnasium_works_without_importing_the_package_first():
    code = (
        "import gymnasium;"
        "env = gymnasium.make('meterveil.adapters.embedded:meterveil/Household-v0');"
        "first, _ = env.reset(seed=1);"
        "_, reward, *_ = env.step(1);"
        "print(env.action_space.n, first.shape, reward > 0)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["21", "(6,)", "True"]


def test_the_registered_household_takes_another_reward_and_passes_the_checker():
    made = gymnasium.make(
        "meterveil.adapters.embedded:meterveil/Household-v0", reward=lambda s, b, a, after: -after.cost
    )
    made.reset(seed=0)
    _, reward, _, _, info = made.step(1)
    assert reward == -info["cost"] < 0.0
    check_env(made.unwrapped, skip_render_check=True)


def test_a_day_terminates_at_its_last_minute_and_is_never_truncated(household, scenario):
    for row in range(scenario.batch):
        steps = play(household, [0] * 1000, options={"row": row})
        ends = [(terminated, truncated) for _, _, terminated, truncated, _ in steps[1:]]
        assert ends == [(False, False)] * (scenario.minutes[row] - 1) + [(True, False)]
        assert steps[-1][4]["minute"] == scenario.minutes[row]


def test_info_tells_what_the_core_did(household, params, scenario):
    household.reset(options={"row": 2})
    state = env.initial(params, scenario, np.array([2]))
    for action in [3, 0, 13, 7]:
        observation, reward, _, _, info = household.step(action)
        before, state = state, env.transition(params, scenario, state, np.array([action]))
        expected = (state.moved_kwh[0], state.cost[0], state.battery.soc[0], 2, state.minute[0])
        assert tuple(info[key] for key in ("moved_kwh", "cost", "soc", "row", "minute")) == expected
        np.testing.assert_array_equal(info["action_mask"], env.action_mask(params, scenario, state)[0])
        np.testing.assert_array_equal(observation, env.observe(params, scenario, state)[0])
        assert reward == rms_disturbance_kw(scenario, before, np.array([action]), state)[0]
    assert info["moved_kwh"] > 0.0


def test_only_what_the_mask_allows_moves_energy(household):
    rng = np.random.default_rng(0)
    _, info = household.reset(options={"row": 0})
    over, refused = False, 0
    while not over:
        action = int(rng.integers(household.action_space.n))
        allowed = info["action_mask"][action]
        _, _, over, _, info = household.step(action)
        assert (info["moved_kwh"] > 0.0) == (allowed and action != 0)
        refused += not allowed
    assert refused > 0


def test_the_same_seed_gives_the_same_days_and_another_seed_others(household):
    def rows(seed):
        first = household.reset(seed=seed)[1]["row"]
        return [first, *(household.reset()[1]["row"] for _ in range(20))]

    assert rows(5) == rows(5)
    assert rows(5) != rows(6)
    assert set(rows(5)) == {0, 1, 2, 3}


def test_a_row_that_does_not_exist_is_refused(household):
    with pytest.raises(InputError, match="no row 4; allowed are 0 to 3"):
        household.reset(options={"row": 4})
