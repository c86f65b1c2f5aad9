"""The manager learns, is deterministic, acts in the core, and refuses what it cannot learn from."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from small import LIBRARY, SMALLER, TINY, lesson, scenario

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.defenders.manager.manager_training import manager_key, train
from meterveil.defenders.manager.ppo import MinuteDiscount, actor, build
from meterveil.defenders.manager.probe_reward import LOSSES as REWARD_LOSSES
from meterveil.defenders.manager.probes import PROBES as PROBE_NETWORKS
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.defenders.training_settings import (
    LOSSES,
    PROBES,
    ManagerSettings,
    manager_settings,
    settings_for,
    settings_from_json,
)
from meterveil.errors import InputError


def play(policy, world=None, battery=None, library=LIBRARY):
    world = world or scenario(days=4, seed=5)
    rngs = [np.random.default_rng(row) for row in range(world.batch)]
    return rollout(policy, battery or Battery(), library, world, rngs)


def test_the_preset_paper_is_the_paper_s_to_the_letter():
    paper = manager_settings("paper")
    assert paper.budget_minutes == 300 * 1440
    assert (paper.learning_rate, paper.gamma, paper.gae_lambda) == (2e-5, 0.99, 0.95)
    assert (paper.horizon, paper.epochs, paper.minibatch) == (4096, 4, 2048)
    assert (paper.clip, paper.entropy, paper.target_kl) == (0.1, 0.01, 0.01)
    assert not paper.masked
    assert paper.discount == "decision"


@pytest.mark.parametrize("masked", [False, True])
def test_it_learns_to_prefer_the_only_signature_that_pays(masked):
    """A kilowatt and a milliwatt: any learner prefers the kilowatt."""
    library = Library.of([("whisper", [0.001] * 3), ("shout", [2000.0] * 3)], "test")
    changes = {"budget_days": 15, "masked": masked, "learning_rate": 3e-3, "gamma": 0.5, "entropy": 0.0}
    trained = train(*lesson(Battery(budget_kwh=float("inf")), library, **changes))
    observation = np.tile([0.5, 0.0, 1.0, 0.3, 0.5, 1.0], (1, 1)).astype(np.float32)
    odds = np.exp(trained.policy.network.logits(observation)[0])
    odds /= odds.sum()
    assert odds[2] + odds[4] > 0.8
    assert trained.curve[-1].reward_per_decision > 1.5 * trained.curve[0].reward_per_decision


@pytest.fixture(scope="module")
def trained():
    return train(*lesson(seed=1))


def test_the_same_seed_gives_the_same_weights_another_seed_others_and_global_state_is_kept(trained):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002  used by training
    heard = []
    again = train(*lesson(seed=1), on_update=heard.append)
    after = torch.rand(1).item(), np.random.random()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    assert after == (torch.rand(1).item(), np.random.random())  # noqa: NPY002
    other = train(*lesson(seed=2))
    networks = (run.policy.network.weights for run in (trained, again, other))
    for mine, same, different in zip(*networks, strict=True):
        np.testing.assert_array_equal(mine, same)
        assert not np.array_equal(mine, different)
    assert trained.curve == again.curve == tuple(heard)


def test_the_budget_counts_simulated_minutes(trained):
    curve = trained.curve
    assert curve[-2].minutes < TINY.budget_minutes <= curve[-1].minutes
    assert [update.decisions for update in curve] == [256 * (n + 1) for n in range(len(curve))]


def test_days_of_the_slots_overlap_and_every_later_one_begins_at_midnight():
    batch = lesson().households()
    batch.seed(0)
    batch.reset()
    assert batch.state.minute.tolist() == [180 * slot for slot in range(8)]
    ended = np.zeros(8, dtype=bool)
    for _ in range(1440):
        _, _, done, _ = batch.step(np.zeros(8, dtype=np.int64))
        ended |= done
        assert (batch.state.minute[done] == 0).all()
    assert ended.all()
    assert batch.minutes == 8 * 1440
    assert len(batch.finished) == 1, "only the first slot's first day was whole"


@pytest.mark.parametrize("masked", [False, True])
def test_the_numpy_policy_is_the_one_that_was_trained(masked):
    asked = lesson(masked=masked)
    batch = asked.households()
    model = build(asked.settings, batch, 0)
    model.learn(512)
    policy = ManagerPolicy(actor(model), LIBRARY.n_actions, masked, "greedy")
    rng = np.random.default_rng(0)
    observation = rng.normal(size=(10_000, 6)).astype(np.float32)
    mask = rng.random((10_000, 7)) < 0.6
    mask[:, 0] = True
    shown = np.concatenate([observation, mask], axis=1).astype(np.float32) if masked else observation
    theirs, _ = model.predict(shown, deterministic=True)
    np.testing.assert_array_equal(policy.actions(observation, mask, np.zeros(10_000)), theirs)
    with torch.no_grad():
        odds = model.policy.get_distribution(torch.from_numpy(shown)).distribution.probs.numpy()
    chance = rng.random(10_000)
    drawn = replace(policy, choice="sampled").actions(observation, mask, chance)
    expected = (np.cumsum(odds.astype(np.float64), axis=1) <= chance[:, None]).sum(axis=1)
    assert np.mean(drawn == expected) > 0.9999
    if masked:
        assert mask[np.arange(10_000), drawn].all()


def test_a_sampled_policy_draws_as_often_as_its_odds_say():
    layers = tuple(np.zeros(shape, dtype=np.float32) for shape in ((6, 64), (64, 64), (64, 3)))
    odds = np.array([0.2, 0.5, 0.3])
    network = Mlp(layers, (*(np.zeros(64, np.float32),) * 2, np.log(odds).astype(np.float32)))
    count = 100_000
    chance = (np.arange(count) + 0.5) / count
    drawn = ManagerPolicy(network, 3).actions(np.zeros((count, 6), np.float32), np.ones((count, 3), bool), chance)
    np.testing.assert_allclose(np.bincount(drawn) / count, odds, atol=1e-4)


def test_a_trained_policy_keeps_the_battery_s_laws_and_rests_in_gaps(trained):
    world = scenario(days=4, seed=5, gaps=True)
    for choice in ("sampled", "greedy"):
        trace = play(replace(trained.policy, choice=choice), world)
        assert np.abs(trace.power_w).max() <= 4000.0
        assert 0.1 <= trace.soc.min() <= trace.soc.max() <= 0.9
        assert np.nanmin(trace.meter_w) >= 0.0
        assert (np.abs(trace.power_w).sum(axis=1) / 60_000).max() <= 8.0 + 1e-9
        assert (trace.power_w[np.isnan(trace.load_w)] == 0.0).all()
    assert np.abs(play(trained.policy, world).power_w).sum() > 0.0
    np.testing.assert_array_equal(play(trained.policy).power_w, play(trained.policy).power_w)


def test_a_masked_policy_never_chooses_what_moves_nothing():
    batch = lesson().households()
    model = build(TINY, batch, 0)
    batch.seed(0)
    shown = batch.reset()
    for _ in range(300):
        action, _ = model.predict(shown, deterministic=False)
        shown, _, _, told = batch.step(action)
        moved = np.array([info["moved_kwh"] for info in told])
        assert ((moved > 0.0) == (action != 0)).all()


def test_discounting_by_minutes_is_gamma_to_the_power_of_what_a_decision_took():
    batch = lesson(slots=1, discount="minute").households()
    buffer = MinuteDiscount(3, batch.observation_space, batch.action_space, "cpu", 0.8, 0.9, 1, households=batch)
    for reward, value, minutes in [(1.0, 0.5, 1), (2.0, 0.25, 5), (4.0, 1.0, 2)]:
        batch.lasted = np.array([minutes])
        one = np.ones(1)
        seen = np.zeros((1, *batch.observation_space.shape))
        buffer.add(seen, one, one * reward, one * 0, torch.tensor([value]), torch.zeros(1))
    buffer.compute_returns_and_advantage(torch.tensor([3.0]), np.array([False]))
    last = 4.0 + 0.9**2 * 3.0 - 1.0
    middle = 2.0 + 0.9**5 * 1.0 - 0.25 + 0.9**5 * 0.8 * last
    first = 1.0 + 0.9 * 0.25 - 0.5 + 0.9 * 0.8 * middle
    np.testing.assert_allclose(buffer.advantages[:, 0], [first, middle, last], rtol=1e-6)
    np.testing.assert_allclose(buffer.returns[:, 0], [first + 0.5, middle + 0.25, last + 1.0], rtol=1e-6)


@pytest.mark.slow
def test_with_lambda_zero_it_learns_not_to_wear_the_battery_out():
    changes = {"budget_days": 12, "gamma": 0.5, "learning_rate": 3e-3, "reward_scale": 20.0, "weight": 0.0}
    trained = train(*lesson(world=replace(scenario(), price=np.zeros((2, 1500))), **changes))
    moved_kwh = np.abs(play(trained.policy).power_w).sum(axis=1).mean() / 60_000
    assert moved_kwh < 2.0


@pytest.mark.parametrize("battery", [Battery(charge_w=0.0, discharge_w=0.0), Battery(budget_kwh=0.0)])
def test_a_battery_that_can_do_nothing_is_refused(battery):
    with pytest.raises(InputError, match="this battery can do nothing"):
        train(*lesson(battery=battery, clip_signatures=True))


def test_signatures_stronger_than_the_battery_are_refused_or_clipped_on_request():
    weak = Battery(charge_w=1000.0, discharge_w=1000.0)
    with pytest.raises(InputError, match=r"kettle\) reaches 2,500 W, the battery 1,000 W; .*clip_signatures"):
        train(*lesson(battery=weak))
    trained = train(*lesson(battery=weak, clip_signatures=True))
    assert np.abs(play(trained.policy, battery=weak).power_w).max() == 1000.0


def test_signatures_longer_than_a_day_are_refused():
    short = replace(scenario(), minutes=np.array([1440, 600]))
    long = Library.of([("sauna", [3000.0] * 700)], "test")
    with pytest.raises(InputError, match="700 minutes is longer than the shortest training day"):
        train(*lesson(library=long, world=short))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slots": 60}, "horizon is 4096, which does not divide into 60 slots"),
        ({"budget_days": 0}, "budget_days is 0"),
        ({"weight": 2.0}, "lambda is 2; allowed is 0"),
        ({"weight": float("nan")}, "lambda is nan"),
        ({"probe": "oracle"}, "no probe 'oracle'; known are transformer"),
        ({"loss": "huber"}, "no loss 'huber'; known are mse"),
        ({"choice": "lucky"}, "no choice 'lucky'; known are sampled, greedy"),
        ({"colour": "red"}, "manager has no setting colour"),
        ({"preset": "slow"}, "no preset 'slow'; known are fast, patient, paper, adaptive"),
        ({"method": "sarsa"}, "no method 'sarsa'; known are manager, ddql_flat, ddql_mi"),
        ({"method": "ddql_mi", "probe": "cnn"}, "ddql_mi has no setting probe"),
        ({"method": "ddql_mi", "preset": "patient"}, "no preset 'patient'; known are fast, paper"),
        ({"method": "ddql_mi", "budget_days": 0}, "budget_days is 0"),
        ({"method": "ddql_mi", "epochs": 0}, "epochs is 0"),
        ({"method": "ddql_mi", "gamma": 1.1}, "gamma is 1.1; allowed is 0 to 1"),
        ({"method": "ddql_mi", "weight": 1.5}, "lambda is 1.5"),
        ({"method": "ddql_mi", "step_w": 0.0}, "step_w is 0"),
    ],
)
def test_unknown_names_and_impossible_settings_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        settings_for(**{"preset": "paper", **changes})


def test_settings_survive_json_and_those_of_another_version_are_refused():
    for settings in (manager_settings("patient", weight=0.3), settings_for("ddql_mi", budget_days=5)):
        assert settings_from_json(asdict(settings)) == settings
    with pytest.raises(InputError, match="differ from this version's in colour"):
        settings_from_json({**asdict(ManagerSettings()), "colour": "red"})


def test_the_names_of_the_settings_are_those_of_probes_and_losses():
    assert set(PROBES) == set(PROBE_NETWORKS)
    assert set(LOSSES) == set(REWARD_LOSSES)


def test_another_library_than_the_trained_one_is_refused(trained):
    with pytest.raises(InputError, match="trained with 3 signatures, the library has 2"):
        play(trained.policy, library=SMALLER)


def test_everything_that_changes_what_is_learned_changes_the_key():
    lessons = [lesson(), lesson(weight=0.5), lesson(seed=9), lesson(battery=Battery(5.0)), lesson(gamma=0.5)]
    assert len({manager_key(*asked) for asked in lessons}) == 5
