"""The observations on learning: what they compute, on a household where the answer is known."""

import numpy as np
import pytest
import torch

from meterveil.bench.observations import (
    House,
    _at,
    _days,
    by_length,
    habit,
    hourly_error_w,
    probe_errors,
    uniform,
)
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.data.simulation import episodes
from meterveil.data.windows import Scaler
from meterveil.defenders.manager.manager_policy import ManagerPolicy, Mlp, Played, play_decisions
from meterveil.defenders.manager.manager_training import Trained, Update
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe
from meterveil.plots.training import Habit, curve_figure, length_figure, probe_figure


@pytest.fixture(scope="module")
def house():
    home = synthetic.household(np.random.default_rng(0), days=3)
    learning, judging = (episodes(home, days, PAPER_TARIFF) for days in (home.days()[:2], home.days()[2:]))
    params = EnvParams(Battery(), synthetic.decoy_library())
    return House("synthetic", REDD_HOUSE2, home, params, learning, judging.rows([0, 0]))


def test_a_probe_that_copies_the_meter_errs_by_the_battery_s_rms_power(house):
    found = probe_errors(house, Probe("cnn", Scaler(300.0, 400.0), torch.nn.Identity()))
    assert len(found.rms_w) > 20
    np.testing.assert_allclose(found.error_w, found.rms_w, rtol=1e-5)
    assert found.correlation == pytest.approx(1.0)


def test_a_probe_that_does_not_look_at_the_meter_knows_nothing_of_the_battery(house):
    class Blind(torch.nn.Module):
        def forward(self, seen):
            return torch.zeros_like(seen)

    assert abs(probe_errors(house, Probe("cnn", Scaler(300.0, 400.0), Blind())).correlation) < 0.7


def test_decisions_follow_each_other_and_fill_the_day(house):
    reward = ProbeReward(Probe("identity", Scaler(0.0, 1.0)), house.judging)
    played = play_decisions(uniform(21), house.params, house.judging, reward, np.random.default_rng(0))
    for row in range(2):
        mine = played.where(played.row == row)
        np.testing.assert_array_equal(mine.begins, np.cumsum(mine.minutes) - mine.minutes)
        assert mine.minutes.sum() == 1440
    assert (played.moved.moved_kwh > 0.0).all()
    assert (played.where(played.moved_kwh == 0.0).reward == 0.0).all()


def test_a_manager_that_idles_disturbs_nothing(house):
    sizes = [(6, 64), (64, 64), (64, 21)]
    biases = (np.zeros(64, np.float32), np.zeros(64, np.float32), np.eye(21, dtype=np.float32)[0] * 99)
    idle = ManagerPolicy(Mlp(tuple(np.zeros(size, np.float32) for size in sizes), biases), 21)
    assert hourly_error_w(house, idle) == 0.0
    reward = ProbeReward(Probe("identity", Scaler(0.0, 1.0)), house.judging)
    chance, moved = habit(house, uniform(21), reward)
    assert chance.hourly_error_w > 100.0
    assert chance.replays == len(moved.row) / 2


def test_rewards_are_told_by_the_length_of_a_replay():
    minutes = np.array([5, 5, 10])
    zeros = np.zeros(3)
    played = Played(zeros, zeros, zeros, minutes, zeros + 1.0, np.array([1.0, 3.0, 4.0]), np.zeros((3, 60)))
    assert by_length(played) == [(5, 2.0, 0.4), (10, 4.0, 0.4)]


def test_a_curve_is_the_mean_of_a_few_updates_and_skips_those_without_a_whole_day():
    updates = [Update(n, n * 10, 0.0, 10.0, None if n < 2 else float(n), 1.0) for n in range(10)]
    curve = _days(Trained(ManagerPolicy(Mlp((), ()), 3), tuple(updates), 1.0), smoothing=2)
    assert curve == [(n, n - 0.5) for n in range(3, 10)]
    assert _at(curve, 5) == 4.5


def test_the_pictures_show_every_house_and_manager(house):
    errors = {"cnn": probe_errors(house, Probe("cnn", Scaler(300.0, 400.0), torch.nn.Identity()))}
    assert len(probe_figure({"a": errors, "b": errors}).data) == 4
    habits = {"chance": Habit(10.0, 7.0, 5.0, 400.0), "fast": Habit(20.0, 4.0, 9.0, 390.0)}
    lengths = length_figure({"a": [(5, 1.0, 0.2)], "b": [(5, 2.0, 0.4)]}, {"a": habits, "b": habits})
    assert [list(trace.x) for trace in lengths.data if trace.type == "bar"] == [["chance", "fast"]] * 4
    curves = curve_figure({"a": {"paper": [(1, 2.0), (2, 3.0)]}}, {"a": 1})
    assert list(curves.data[0].y) == [2.0, 3.0]
