"""Alignment study: the gradient estimator where the answer is known, and a small measurement."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments import alignment, study
from experiments import policy_gradients as pg
from experiments.alignment import Panel, attacker_risk, probe_risk
from meterveil.attackers.protocol import Prediction
from meterveil.core.scenario import Scenario
from meterveil.data import synthetic
from meterveil.data.simulation import Setup, episodes
from meterveil.data.splits import Scaler
from meterveil.defenders.manager.manager_training import train
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.defenders.training_settings import MANAGER_PRESETS
from meterveil.errors import InputError

SETUP = Setup(synthetic.decoy_library())
ACTIONS = SETUP.library.n_actions
IDENTITY = Probe("identity", Scaler(300.0, 400.0))
TINY = replace(MANAGER_PRESETS["fast"], budget_days=4, horizon=256, slots=8, minibatch=128, epochs=2)


def network(rng, sizes=(6, 5, 4, ACTIONS)):
    weights = tuple(rng.normal(0.0, 0.5, shape) for shape in pairwise(sizes))
    return Mlp(weights, tuple(rng.normal(0.0, 0.1, size) for size in sizes[1:]))


def noisy(rng, direction, plays=200, noise=3.0):
    return direction + rng.normal(0.0, noise, (plays, len(direction)))


class Copies:
    """Attacker that predicts the meter reading, so that its error is the battery's power."""

    def predict(self, meter):
        return Prediction({"fridge": meter.reading_w}, {})


@pytest.fixture(scope="module")
def days():
    home = synthetic.household(np.random.default_rng(0), days=3)
    return episodes(home, home.days()[1:], SETUP.tariff)


@pytest.fixture(scope="module")
def played(days):
    return pg.act(ManagerPolicy(network(np.random.default_rng(1)), ACTIONS), SETUP, days, 6, seed=0)


def test_cosine_and_gamma_of_equal_opposite_and_orthogonal_gradients():
    rng = np.random.default_rng(0)
    sample = noisy(rng, rng.normal(size=500))
    for factor in (1.0, -1.0, 2.0):
        compared = pg.align(sample, factor * sample)
        assert compared.cosine.value == pytest.approx(np.sign(factor))
        assert compared.gamma.value == pytest.approx(factor)
    first, second = np.eye(1000)[:2] * 5.0
    shared_noise = rng.normal(0.0, 1.0, (200, 1000))
    compared = pg.align(first + shared_noise, second + shared_noise)
    assert compared.inner_product.low < 0.0 < compared.inner_product.high
    assert abs(compared.cosine.value) < 0.1
    with pytest.raises(InputError, match="16"):
        pg.align(np.ones((2, 5)), np.ones((2, 5)))


def by_hand(observation, action, begins, ends, plays, n_actions=3):
    """Make rollouts of one day; `observation` and `action` are (play, decision, ...)."""
    episode = np.repeat(np.arange(plays), action.shape[1])
    allowed = np.ones((action.size, n_actions), dtype=bool)
    times = (np.tile(part, plays) for part in (begins, ends))
    alone = np.eye(n_actions, dtype=bool)[action.ravel()]
    made = pg.Decisions(episode, *times, action.ravel(), observation.reshape(-1, 6), allowed, alone)
    empty = np.zeros((1, 1500))
    calendar = (empty.astype(np.int64), empty.astype(np.int64))
    scenario = Scenario(empty, *calendar, empty, np.array([1440]), lead=60)
    return pg.Rollouts(scenario, np.zeros(plays, dtype=int), np.arange(plays), np.zeros((plays, 1440)), made)


def moved_along(mlp, direction, step):
    """Move all parameters along a direction in the order of a gradient."""
    at, weights, biases = 0, [], []
    for weight, bias in zip(mlp.weights, mlp.biases, strict=True):
        weights.append(weight + step * direction[at : at + weight.size].reshape(weight.shape))
        at += weight.size
        biases.append(bias + step * direction[at : at + bias.size])
        at += bias.size
    return Mlp(tuple(weights), tuple(biases))


def test_the_estimate_is_the_slope_of_the_expected_reward_by_finite_differences():
    rng = np.random.default_rng(6)
    mlp, plays = network(rng, (6, 5, 4, 3)), 20_000
    first, second = rng.normal(size=6), rng.normal(size=(3, 6))
    pay, later_pay = rng.normal(size=3), rng.normal(size=(3, 3))

    def chances(at, observation):
        odds = np.exp(at.logits(observation))
        return odds / odds.sum(axis=-1, keepdims=True)

    def expected_reward(at):
        return float(chances(at, first) @ (pay + (chances(at, second) * later_pay).sum(axis=1)))

    def slope(direction, step=1e-5):
        up, down = (expected_reward(moved_along(mlp, direction, sign * step)) for sign in (1, -1))
        return (up - down) / (2 * step)

    chosen = rng.choice(3, plays, p=chances(mlp, first))
    later = (rng.random((plays, 1)) > np.cumsum(chances(mlp, second), axis=1)[chosen]).sum(axis=1)
    observation = np.stack([np.tile(first, (plays, 1)), second[chosen]], axis=1)
    made = by_hand(observation, np.stack([chosen, later], axis=1), [0, 600], [600, 1440], plays)
    paid = np.stack([pay[chosen], later_pay[chosen, later]], axis=1).ravel()
    weight = pg.advantage(made, pg.paid_to_go(made, paid, gamma=1.0, reach=0))
    estimate = pg.gradients(made, pg.scores(mlp, made.decisions), weight).mean(axis=0)
    exact = np.array([slope(axis) for axis in np.eye(len(estimate))])
    np.testing.assert_allclose(estimate, exact, atol=0.1 * np.abs(exact).max())


def test_risks_to_go_by_hand():
    times = (np.array([0, 100, 200]), np.array([100, 200, 1440]))
    made = by_hand(np.zeros((2, 3, 6)), np.zeros((2, 3), dtype=np.int64), *times, plays=2)
    paid = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    ahead = pg.paid_to_go(made, paid, gamma=0.5, reach=0)
    np.testing.assert_allclose(ahead, [3.0, 4.0, 4.0, 24.0, 32.0, 32.0])
    further = pg.paid_to_go(made, paid, gamma=0.5, reach=150)
    np.testing.assert_allclose(further - ahead, [0.0, 1.0, 3.0, 0.0, 8.0, 24.0])
    hours = np.tile(np.arange(24.0), (2, 1))
    np.testing.assert_allclose(pg.hours_to_go(made, hours, reach=60)[:3] * 24, [276.0, 276.0, 275.0])


@pytest.mark.parametrize("loss", ["mse", "rmse"])
def test_a_copying_attacker_has_the_risk_of_the_identity_probe(played, days, loss):
    reward = ProbeReward(IDENTITY, days, loss=loss)
    probe, copying = (probe_risk(played, reward), attacker_risk(played, reward, Copies(), {"fridge": days.load_w}))
    assert probe.paid.max() > 0.0
    np.testing.assert_allclose(copying.paid, probe.paid, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(copying.hours, probe.hours, rtol=1e-3, atol=1e-6)


def test_snapshots_end_with_the_manager_of_the_ordinary_training(days):
    snapshots = alignment.snapshots(TINY, SETUP, days, IDENTITY)
    trained = train(TINY, SETUP, days, IDENTITY)
    assert [part.update for part in snapshots] == [round(share * len(trained.curve)) for share in alignment.SHARES]
    for weight, kept in zip(trained.policy.network.weights, snapshots[-1].network.weights, strict=True):
        np.testing.assert_array_equal(weight, kept)


def test_a_measurement_is_recorded_and_drawn(days, tmp_path):
    panel = Panel(SETUP, days, IDENTITY, TINY, {"copies": Copies()}, {"fridge": days.load_w})
    figures = []
    for update in (0, 10):
        measured = panel.measure(network(np.random.default_rng(1), (6, 8, 8, ACTIONS)), plays=16)
        assert measured.alignments["copies", "reward"].gamma.value == pytest.approx(1.0, abs=0.01)
        figures += alignment.figures_of("redd", update, measured, 2)
    study.record(tmp_path, "alignment", "alignment_redd", figures, {"plays": 16})
    table = study.read(tmp_path, "alignment")
    assert set(table["attacker"]) == {"probe", "copies", "all six"}
    cosines = alignment.draw(table, "cosine", {"reward": "rewarded", "training": "trained"}, "cosines")
    assert len(cosines.data) == 2 + 3
    risks = alignment.draw(table, "mean", {"paid": "a day"}, "risks")
    assert {trace.y[0] for trace in risks.data} == {1.0}
