"""The reward, checked against arithmetic done by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import IDENTITY, LIBRARY, scenario

from meterveil.core import env
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams
from meterveil.data.splits import Scaler
from meterveil.defenders.manager import probes
from meterveil.defenders.manager.probe_reward import LOSSES, ProbeReward
from meterveil.errors import InputError

PARAMS = EnvParams(Battery(), LIBRARY)


def steps(reward, world, actions, params=PARAMS):
    """Play actions in every row at once; return what each step paid and did."""
    state = env.initial(params, world)
    played = []
    for action in actions:
        chosen = np.full(world.batch, action)
        after = env.transition(params, world, state, chosen)
        played.append((reward(world, state, chosen, after), after))
        state = after
    return played


def test_the_identity_s_reward_is_the_battery_s_mean_square_power():
    world = scenario()
    for paid, after in steps(ProbeReward(IDENTITY, world), world, [1, 5, 2, 0, 3]):
        expected = np.mean((after.past_w / 500.0) ** 2, axis=1) * (after.moved_kwh > 0.0)
        np.testing.assert_allclose(paid, expected, rtol=1e-6)


def test_each_loss_is_what_its_name_says():
    error = np.array([[3.0, 4.0], [0.0, 1.0]], dtype=np.float32)
    expected = {
        "mse": [12.5, 0.5],
        "rmse": [12.5**0.5, 0.5**0.5],
        "mse_kw2": [12.5 * 0.25, 0.5 * 0.25],
        "rmse_kw": [12.5**0.5 * 0.5, 0.5**0.5 * 0.5],
    }
    assert set(expected) == set(LOSSES)
    for name, values in expected.items():
        np.testing.assert_allclose(LOSSES[name](error, 500.0), values, rtol=1e-6)


def test_a_network_s_reward_is_that_of_computing_both_windows_on_the_spot():
    torch.manual_seed(0)
    probe = probes.Probe("cnn", Scaler(400.0, 500.0), probes.build("cnn").eval())
    world = scenario()
    reward = ProbeReward(probe, world)
    for paid, after in steps(reward, world, [1, 2, 4]):
        for row in range(world.batch):
            end = world.lead + after.minute[row]
            clean = ((world.load_w[row, end - 60 : end] - 400.0) / 500.0).astype(np.float32)[None]
            masked = clean + (after.past_w[row] / 500.0).astype(np.float32)
            losses = [np.mean((probe.reconstruct(seen) - clean) ** 2) for seen in (masked, clean)]
            assert paid[row] == pytest.approx(losses[0] - losses[1], rel=1e-4, abs=1e-6)


def test_a_replay_that_moved_nothing_earns_nothing_even_beside_one_that_did():
    world = scenario()
    exhausted = replace(PARAMS, battery=Battery(budget_kwh=0.1))
    played = steps(ProbeReward(IDENTITY, world), world, [1, 1, 0, 2], exhausted)
    assert (played[0][0] > 0.0).all()
    for paid, after in played[2:]:
        assert np.abs(after.past_w).max() > 0.0
        assert (paid == 0.0).all()


def test_the_probe_is_asked_about_moved_windows_only_and_once_a_step():
    asked = []

    class Counting(torch.nn.Module):
        def forward(self, seen):
            asked.append(len(seen))
            return seen

    world = scenario(days=4)
    reward = ProbeReward(probes.Probe("cnn", Scaler(0.0, 1.0), Counting()), world)
    assert sum(asked) == 4 * 1441
    asked.clear()
    state = env.initial(PARAMS, world)
    action = np.array([1, 0, 2, 0])
    reward(world, state, action, env.transition(PARAMS, world, state, action))
    assert asked == [2]


def test_lambda_weighs_privacy_against_cost():
    world = scenario()
    private, cheap, mixed = (ProbeReward(IDENTITY, world, weight) for weight in (1.0, 0.0, 0.25))
    for (all_private, after), (all_cost, _), (some, _) in zip(
        *(steps(reward, world, [1, 6, 0]) for reward in (private, cheap, mixed)), strict=True
    ):
        np.testing.assert_allclose(all_cost, -after.cost)
        np.testing.assert_allclose(some, 0.25 * all_private + 0.75 * all_cost)


def test_a_window_with_an_unknown_minute_pays_nothing_and_the_next_whole_one_does():
    world = scenario(gaps=True)
    reward = ProbeReward(IDENTITY, world)
    rows = np.zeros(3, dtype=np.int64)
    past_w = np.full((3, 60), 1000.0)
    paid = reward.privacy(rows, np.array([640, 641, 720]), past_w, np.ones(3, dtype=bool))
    np.testing.assert_allclose(paid, [4.0, 0.0, 4.0], rtol=1e-6)


def test_a_short_lead_and_a_day_full_of_gaps_are_refused():
    world = scenario()
    with pytest.raises(InputError, match="has 10 minutes before its start; a reward needs 60"):
        ProbeReward(IDENTITY, replace(world, lead=10))
    load_w = world.load_w.copy()
    load_w[1, 200:1400] = np.nan
    with pytest.raises(InputError, match="only 17% of the load of training day 2 is known, the rest is NaN"):
        ProbeReward(IDENTITY, replace(world, load_w=load_w))
