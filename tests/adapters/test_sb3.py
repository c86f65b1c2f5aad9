"""The batched view gives SB3 the same values as single households."""

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from meterveil.adapters.embedded import household_env
from meterveil.adapters.gymnasium import HouseholdEnv
from meterveil.adapters.sb3 import HouseholdVecEnv
from meterveil.core import env
from meterveil.core.env import EnvParams, rms_disturbance_kw
from meterveil.errors import InputError

SLOTS = 5


def earnings_pence(scenario, before, action, after):
    return -100.0 * after.cost


@pytest.fixture
def batch(params, scenario):
    made = HouseholdVecEnv(params, scenario, rms_disturbance_kw, SLOTS)
    yield made
    made.close()


def play(vec, seed, steps=250):
    """Step with random actions and return everything that a trainer would see."""
    vec.seed(seed)
    first, rng = vec.reset().copy(), np.random.default_rng(seed)
    return [first, *(vec.step(rng.integers(vec.action_space.n, size=vec.num_envs)) for _ in range(steps))]


def test_a_batch_is_as_many_monitored_households_step_by_step(batch, params, scenario):
    singles = DummyVecEnv([lambda: Monitor(HouseholdEnv(params, scenario, rms_disturbance_kw)) for _ in range(SLOTS)])
    ours, theirs = play(batch, 11), play(singles, 11)
    np.testing.assert_array_equal(ours[0], theirs[0])
    finished = 0
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        for part in range(3):
            np.testing.assert_array_equal(mine[part], other[part])
            assert mine[part].dtype == other[part].dtype
        for info, single, done in zip(mine[3], other[3], mine[2], strict=True):
            finished += done
            assert all(info[key] == single[key] for key in ("moved_kwh", "cost", "soc", "row", "minute"))
            assert info["TimeLimit.truncated"] is single["TimeLimit.truncated"] is False
            assert ("episode" in info) == ("terminal_observation" in info) == done
            if done:
                np.testing.assert_array_equal(info["terminal_observation"], single["terminal_observation"])
                assert info["episode"]["l"] == single["episode"]["l"]
                assert info["episode"]["r"] == pytest.approx(single["episode"]["r"], abs=1e-5)
                assert info["episode"]["t"] >= 0.0
    assert finished > 2 * SLOTS


def test_a_finished_slot_begins_another_day_while_the_others_go_on(batch, scenario):
    batch.set_options([{"row": row} for row in (0, 1, 2, 3, 0)])
    batch.reset()
    for _ in range(scenario.minutes[1]):
        _, _, done, infos = batch.step(np.zeros(SLOTS, dtype=np.int64))
    assert done.tolist() == [False, True, False, False, False]
    assert [info["minute"] for info in infos] == [240] * SLOTS
    assert batch.state.minute.tolist() == [240, 0, 240, 240, 240]
    assert batch.state.battery.soc[1] == 0.5


def test_options_name_the_rows_of_the_next_reset_only(batch):
    batch.seed(0)
    batch.set_options({"row": 3})
    batch.reset()
    assert batch.state.row.tolist() == [3] * SLOTS
    rows = {int(row) for _ in range(10) for row in (batch.reset(), batch.state.row)[1]}
    assert rows == {0, 1, 2, 3}


def test_action_masks_are_those_of_the_core_in_every_way_that_sb3_asks(batch, params, scenario):
    play(batch, 2, 50)
    expected = env.action_mask(params, scenario, batch.state)
    np.testing.assert_array_equal(batch.action_masks(), expected)
    np.testing.assert_array_equal(np.stack(batch.env_method("action_masks")), expected)
    np.testing.assert_array_equal(batch.env_method("action_masks", indices=[2])[0], expected[2])
    assert batch.has_attr("action_masks")
    assert not batch.has_attr("no_such_thing")


def test_slots_share_their_attributes_and_count_as_monitored(batch):
    assert batch.get_attr("render_mode") == [None] * SLOTS
    batch.set_attr("reward", earnings_pence)
    assert batch.get_attr("reward", indices=[0, 1]) == [earnings_pence] * 2
    with pytest.raises(InputError, match="reward is shared by all slots; set it without indices"):
        batch.set_attr("reward", rms_disturbance_kw, indices=0)
    assert batch.env_is_wrapped(Monitor) == [True] * SLOTS
    assert batch.env_is_wrapped(VecMonitor) == [False] * SLOTS


def test_a_batch_may_give_every_household_its_own_battery(params, scenario):
    limits_w = np.array([500.0, 1000.0, 2000.0])
    small = EnvParams(type(params.battery)(charge_w=limits_w), params.library)
    batch = HouseholdVecEnv(small, scenario, rms_disturbance_kw, 3)
    batch.set_options({"row": 0})
    batch.reset()
    batch.step(np.full(3, 1))
    np.testing.assert_allclose(batch.state.past_w.max(axis=1), limits_w)


@pytest.fixture
def one_torch_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_torch_thread")
def test_a_short_ppo_run_learns_to_earn_instead_of_wearing_the_battery_out():
    single = household_env()
    batch = HouseholdVecEnv(single.params, single.scenario, earnings_pence, n_envs=16)
    settings = {"n_steps": 256, "batch_size": 512, "n_epochs": 5, "learning_rate": 1e-3, "gamma": 0.5}
    model = PPO("MlpPolicy", batch, **settings, seed=0, device="cpu")

    def mean_return_pence():
        batch.seed(5)
        return evaluate_policy(model, batch, n_eval_episodes=16, deterministic=False)[0]

    untrained = mean_return_pence()
    model.learn(40_000)
    assert untrained < -80.0
    assert mean_return_pence() > untrained + 90.0
