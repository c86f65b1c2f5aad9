"""The reward of a probe that adapts: arithmetic by hand, refits, and what a manager learns from it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import LIBRARY, lesson, scenario
from test_checkpoint import StoppedError, stop_after

from meterveil.core import env
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams
from meterveil.data.simulation import Setup
from meterveil.data.splits import Scaler
from meterveil.defenders.flat import Flat
from meterveil.defenders.manager import denoising, probes
from meterveil.defenders.manager.denoising import DenoisingReward, usual_load
from meterveil.defenders.manager.manager_training import train
from meterveil.defenders.none import NoDefence
from meterveil.defenders.training_settings import deciding, manager_settings
from meterveil.errors import InputError

SETUP = Setup(LIBRARY, Battery(), seed=0)


@pytest.fixture(autouse=True)
def _small_refits(monkeypatch):
    monkeypatch.setattr(denoising, "REFIT", probes.Recipe(segments=256, epochs=2))


def probe_that(answers):
    """Return a probe whose network is a function of the meter and the usual load."""

    class Network(torch.nn.Module):
        def forward(self, seen, usual):
            return answers(seen, usual)

    return probes.Probe("denoising", Scaler(400.0, 500.0), Network())


def fresh_probe():
    torch.manual_seed(0)
    return probes.Probe("denoising", Scaler(400.0, 500.0), probes.build("denoising"))


def test_the_usual_load_is_the_mean_of_each_half_hour_of_known_minutes():
    world = scenario(days=3, gaps=True)
    usual_w = usual_load(world)
    inside = (world.minute_of_day >= 720) & (world.minute_of_day < 750)
    np.testing.assert_allclose(usual_w[inside], world.load_w[inside].mean())
    partly = (world.minute_of_day >= 690) & (world.minute_of_day < 720)
    np.testing.assert_allclose(usual_w[partly], np.nanmean(world.load_w[partly]))


@pytest.mark.parametrize("loss", ["mse", "rmse", "mse_kw2", "rmse_kw"])
def test_a_reader_of_the_clean_load_leaves_nothing_and_one_of_habits_alone_an_hour_for_an_hour(loss):
    world = scenario(days=4)
    habits = DenoisingReward(probe_that(lambda seen, usual: usual), world, loss=loss)
    row, minute = (part.ravel() for part in np.meshgrid(np.arange(4), np.arange(1, 25) * 60, indexing="ij"))
    idle, hour = np.zeros((len(row), 60)), np.full(len(row), 60)
    assert habits.privacy(row, minute, idle, hour).mean() == pytest.approx(1.0, rel=0.1)
    reader = DenoisingReward(probe_that(lambda seen, usual: seen), world, loss=loss)
    np.testing.assert_array_equal(reader.privacy(row, minute, idle, hour), 0.0)
    assert (reader.privacy(row, minute, idle + 100.0, hour) > 0.0).all()


def test_only_the_decision_s_own_minutes_are_paid_each_once():
    world = scenario()
    reward = DenoisingReward(probe_that(lambda seen, usual: seen), world)
    power_w = np.random.default_rng(0).normal(0.0, 500.0, (1, 60))
    row, end = np.zeros(1, dtype=np.int64), np.array([600])
    whole = reward.privacy(row, end, power_w, np.array([60]))
    expected = np.mean((power_w / 500.0) ** 2) / reward.prior_loss
    np.testing.assert_allclose(whole, expected, rtol=1e-5)
    shifted = np.concatenate([np.zeros((1, 20)), power_w[:, :40]], axis=1)
    parts = reward.privacy(row, end - 20, shifted, np.array([40])) + reward.privacy(row, end, power_w, np.array([20]))
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    longer = reward.privacy(row, end, power_w, np.array([90]))
    np.testing.assert_array_equal(longer, whole)


def test_a_step_of_the_households_pays_privacy_and_cost_by_lambda():
    world, params = scenario(), EnvParams(Battery(), LIBRARY)
    probe = probe_that(lambda seen, usual: seen)
    state = env.initial(params, world)
    action = np.full(world.batch, 2)
    after = env.transition(params, world, state, action)
    private, cheap, mixed = (
        DenoisingReward(probe, world, weight)(world, state, action, after) for weight in (1.0, 0.0, 0.25)
    )
    lasted = after.minute - state.minute
    np.testing.assert_allclose(
        private, DenoisingReward(probe, world).privacy(after.row, after.minute, after.past_w, lasted)
    )
    np.testing.assert_allclose(cheap, -after.cost)
    np.testing.assert_allclose(mixed, 0.25 * private + 0.75 * cheap)


def test_a_window_with_an_unknown_minute_pays_nothing():
    world = scenario(gaps=True)
    reward = DenoisingReward(probe_that(lambda seen, usual: seen), world)
    minute = np.array([640, 641, 720])
    paid = reward.privacy(np.zeros(3, dtype=np.int64), minute, np.full((3, 60), 1000.0), np.full(3, 60))
    assert (paid > 0.0).tolist() == [True, False, True]


def test_a_refit_reads_the_bare_meter_better_than_a_flat_one(monkeypatch):
    monkeypatch.setattr(denoising, "REFIT", probes.Recipe(segments=1024, epochs=6, learning_rate=5e-3))
    world = scenario(days=6)
    errors = {}
    for name, policy in (("bare", NoDefence()), ("flat", Flat())):
        reward = DenoisingReward(fresh_probe(), world)
        torch.manual_seed(1)
        errors[name] = reward.refit(policy, SETUP, np.random.default_rng(0))
    assert errors["bare"] < 0.3
    assert errors["bare"] < 0.6 * errors["flat"]


def test_refits_are_deterministic_and_leave_the_given_probe_alone():
    given, weights = fresh_probe(), []
    before = given.weights()
    for _ in range(2):
        reward = DenoisingReward(given, scenario(days=3))
        torch.manual_seed(4)
        reward.refit(Flat(), SETUP, np.random.default_rng(2))
        weights.append(reward.probe.weights())
    assert weights[0] == weights[1] != before
    assert given.weights() == before


@pytest.mark.parametrize("days", [1, 2])
def test_one_or_two_training_days_are_enough_for_a_refit(days):
    error = DenoisingReward(fresh_probe(), scenario(days=days)).refit(Flat(), SETUP, np.random.default_rng(0))
    assert np.isfinite(error)


def adaptive(**changes):
    """Return a lesson of five updates: refits before the first, the third and the fifth."""
    return lesson(probe="denoising", budget_days=3, **changes)._replace(probe=fresh_probe())


def test_the_manager_s_probe_is_refitted_every_so_many_updates_and_the_error_is_recorded():
    trained = train(*adaptive(refit_updates=2))
    errors = [update.relative_error for update in trained.curve]
    assert len(errors) > 3
    assert errors[0] == errors[1] != errors[2] == errors[3]
    assert all(0.0 < error < 3.0 for error in errors)
    assert {update.relative_error for update in train(*lesson()).curve} == {None}


def test_a_stopped_training_with_a_denoising_probe_ends_with_the_weights_of_one_that_was_not(tmp_path):
    whole = train(*adaptive())
    for updates in (1, 2):
        with pytest.raises(StoppedError):
            train(*adaptive(), tmp_path, stop_after(updates))
    resumed = train(*adaptive(), tmp_path)
    assert resumed.curve == whole.curve
    for name, part in whole.policy.network.arrays().items():
        np.testing.assert_array_equal(resumed.policy.network.arrays()[name], part)


def test_how_often_a_probe_is_refitted_decides_only_where_it_is_refitted():
    fixed, refitted = manager_settings("fast"), manager_settings("adaptive")
    assert refitted.probe == "denoising"
    assert deciding(fixed) == deciding(replace(fixed, refit_updates=7))
    assert deciding(refitted) != deciding(replace(refitted, refit_updates=7))
    with pytest.raises(InputError, match="refit_updates is 0"):
        replace(refitted, refit_updates=0)
