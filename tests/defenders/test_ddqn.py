"""Double Q-learning: arithmetic, replay buffer and checkpoints."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from ddql_small import TINY, lesson, two_levels

from meterveil.core.battery import Battery
from meterveil.core.env import OBSERVATION
from meterveil.defenders.ddql import ddql_training
from meterveil.defenders.ddql.ddql_training import explore_chance, powers_w, train
from meterveil.defenders.ddql.q_learner import Learner, Minutes, Replay, Scale, double_q_target
from meterveil.defenders.run_folder import own_randomness
from meterveil.defenders.training_settings import DdqlSettings
from meterveil.errors import InputError

METHODS = ["ddql_flat", "ddql_mi"]


def same(one, other):
    return all(np.array_equal(part, other.arrays()[name]) for name, part in one.arrays().items())


def minutes(count, first=0):
    numbers = np.arange(first, first + count)
    seen = np.repeat(numbers[:, None], len(OBSERVATION), axis=1).astype(np.float32)
    return Minutes(seen, numbers, numbers.astype(np.float32), seen + 1, numbers % 2 == 0)


def test_the_online_network_chooses_and_the_target_network_values():
    online = torch.tensor([[1.0, 5.0, 2.0], [9.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    target = torch.tensor([[100.0, 10.0, 1000.0], [7.0, 70.0, 700.0], [1.0, 2.0, 4.0]])
    reward, over = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, False, True])
    by_hand = [1.0 + 0.5 * 10.0, 2.0 + 0.5 * 7.0, 3.0]
    assert double_q_target(reward, over, 0.5, online, target).tolist() == by_hand
    values = torch.full((1, 2), torch.inf)
    assert double_q_target(reward[:1], over[2:], 1.0, values, values).tolist() == [1.0]


def test_the_replay_forgets_the_oldest_and_draws_from_what_it_has():
    replay = Replay(10)
    replay.add(minutes(4))
    assert set(replay.sample(np.random.default_rng(0), 200).action) == {0, 1, 2, 3}
    replay.add(minutes(8, first=4))
    drawn = replay.sample(np.random.default_rng(0), 500)
    assert set(drawn.action) == set(range(2, 12))
    np.testing.assert_array_equal(drawn.following, drawn.observation + 1)
    np.testing.assert_array_equal(drawn.over, drawn.action % 2 == 0)
    small = Replay(3)
    small.add(minutes(8))
    assert set(small.kept.action) == {5, 6, 7}


def test_the_target_network_follows_when_its_time_has_come():
    with own_randomness(0):
        scale = Scale(np.zeros(len(OBSERVATION)), np.ones(len(OBSERVATION)))
        learner = Learner(replace(TINY, target_every=3), np.array([0.0, 1.0]), scale)
    batch = minutes(2)._replace(action=np.array([0, 1]))
    steps = []
    for _ in range(3):
        learner.update(batch)
        pairs = zip(learner.online.parameters(), learner.target.parameters(), strict=True)
        steps.append(all(torch.equal(one, other) for one, other in pairs))
    assert steps == [False, False, True]


def test_what_acts_values_as_the_network_that_learned():
    rng = np.random.default_rng(0)
    scale = Scale(rng.normal(size=6), rng.uniform(0.5, 2.0, 6))
    with own_randomness(1):
        learner = Learner(TINY, np.arange(5.0), scale)
    seen = rng.normal(size=(20, 6)).astype(np.float32)
    with torch.no_grad():
        learned = learner.online(learner._scaled(seen)).numpy()
    np.testing.assert_allclose(learner.policy().values(seen.astype(np.float64)), learned, atol=1e-5)


def test_powers_reach_as_far_as_the_battery_and_include_rest():
    powers = powers_w(Battery(charge_w=220.0, discharge_w=100.0), 50.0)
    assert powers.tolist() == [-100.0, -50.0, 0.0, 50.0, 100.0, 150.0, 200.0]
    assert len(powers_w(Battery(), DdqlSettings().step_w)) == 161


def test_exploring_falls_to_its_least_share():
    settings = DdqlSettings(epochs=10, explore_share=0.5, explore_least=0.1)
    chances = [explore_chance(settings, epoch) for epoch in (0, 2, 4, 5, 9)]
    np.testing.assert_allclose(chances, [1.0, 0.6, 0.2, 0.1, 0.1])


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_learns_the_same_to_the_bit_and_another_does_not(method):
    torch.manual_seed(77)
    threads, expected = torch.get_num_threads(), torch.rand(3)
    torch.manual_seed(77)
    first = train(*lesson(method))
    assert torch.equal(torch.rand(3), expected), "the global generator is restored"
    assert torch.get_num_threads() == threads
    again, other = train(*lesson(method)), train(*lesson(method, seed=1))
    assert same(first.policy, again.policy)
    assert first.curve == again.curve
    assert not same(first.policy, other.policy)


@pytest.mark.parametrize("method", METHODS)
def test_a_training_that_was_killed_ends_as_if_it_had_not_been(method, tmp_path):
    whole = train(*lesson(method, epochs=3))
    asked = lesson(method, epochs=3)

    def killed(epoch):
        if epoch.days == 2 * TINY.slots:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(*asked, tmp_path, killed)
    epochs = []
    resumed = train(*asked, tmp_path, epochs.append)
    assert len(epochs) == 1
    assert same(resumed.policy, whole.policy)
    assert resumed.curve == whole.curve


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"battery": Battery(budget_kwh=0.0)}, "its budget is 0 kWh a day"),
        ({"battery": Battery(charge_w=0.0, discharge_w=0.0)}, "can do nothing in steps of 500 W"),
        ({"scenario": two_levels(high_w=float("nan"), low_w=float("nan"))}, "has no reading at all"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        train(*lesson(**changes))


def test_minutes_without_a_reading_teach_nothing():
    scenario = two_levels(minutes=240)
    scenario.load_w[:, :130] = np.nan
    scenario.load_w[:, 200:] = np.nan
    asked = lesson(scenario=scenario, epochs=1)
    added = []
    original = Replay.add

    class Counting(Replay):
        def add(self, new):
            added.append(len(new.action))
            original(self, new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ddql_training, "Replay", Counting)
        trained = train(*asked)
    assert sum(added) == 70 * TINY.slots
    assert np.isfinite(trained.curve[-1].loss)
