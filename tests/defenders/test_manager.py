"""The manager: it learns, it repeats itself, the core runs it, and it refuses what it cannot learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import LIBRARY, TINY, lesson, scenario

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.env import EnvParams
from meterveil.core.rollout import rollout
from meterveil.defenders.manager.env import TrainingHouseholds
from meterveil.defenders.manager.parts import MinuteDiscount
from meterveil.defenders.manager.policy import ManagerPolicy, Mlp
from meterveil.defenders.manager.presets import PRESETS, Preset, from_json, preset
from meterveil.defenders.manager.reward import ProbeReward
from meterveil.defenders.manager.training import actor, build, train
from meterveil.errors import InputError


def households(asked):
    reward = ProbeReward(asked.probe, asked.scenario, asked.weight, asked.preset.loss)
    return TrainingHouseholds(asked.params, asked.scenario, reward, asked.preset)


def play(policy, world=None, battery=None, library=LIBRARY):
    world = world or scenario(days=4, seed=5)
    rngs = [np.random.default_rng(row) for row in range(world.batch)]
    return rollout(policy, battery or Battery(), library, world, rngs)


def test_the_preset_paper_is_the_paper_s_to_the_letter():
    paper = preset("paper")
    assert paper.budget_minutes == 300 * 1440
    assert (paper.learning_rate, paper.gamma, paper.gae_lambda) == (2e-5, 0.99, 0.95)
    assert (paper.horizon, paper.epochs, paper.minibatch) == (4096, 4, 2048)
    assert (paper.clip, paper.entropy, paper.target_kl) == (0.1, 0.01, 0.01)
    assert not paper.masked
    assert paper.discount == "decision"


@pytest.mark.parametrize("masked", [False, True])
def test_it_learns_to_prefer_the_only_signature_that_pays(masked):
    """A kilowatt and a milliwatt: whoever learns anything learns to take the kilowatt."""
    library = Library.of([("whisper", [0.001] * 3), ("shout", [2000.0] * 3)], "test")
    settings = replace(TINY, budget_days=15, masked=masked, learning_rate=3e-3, gamma=0.5, entropy=0.0)
    asked = lesson(library=library, preset=settings, battery=Battery(budget_kwh=float("inf")))
    trained = train(asked)
    observation = np.tile([0.5, 0.0, 1.0, 0.3, 0.5, 1.0], (1, 1)).astype(np.float32)
    odds = np.exp(trained.network.logits(observation)[0])
    odds /= odds.sum()
    assert odds[2] + odds[4] > 0.8
    assert trained.curve[-1].reward_per_decision > 1.5 * trained.curve[0].reward_per_decision


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    first, again, other = (train(lesson(seed=seed)) for seed in (1, 1, 2))
    for mine, same, different in zip(
        first.network.weights, again.network.weights, other.network.weights, strict=True
    ):
        np.testing.assert_array_equal(mine, same)
        assert not np.array_equal(mine, different)
    assert first.curve == again.curve


def test_training_leaves_the_global_generators_and_threads_alone():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002  that is what must survive
    train(lesson())
    after = torch.rand(1).item(), np.random.random()  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    assert after == (torch.rand(1).item(), np.random.random())  # noqa: NPY002


def test_the_budget_counts_simulated_minutes():
    seen = []
    trained = train(lesson(), on_update=seen.append)
    assert seen == list(trained.curve)
    assert seen[-2].minutes < TINY.budget_minutes <= seen[-1].minutes
    assert [update.decisions for update in seen] == [256 * (n + 1) for n in range(len(seen))]


def test_days_of_the_slots_overlap_and_every_later_one_begins_at_midnight():
    batch = households(lesson())
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
    asked = lesson(preset=replace(TINY, masked=masked))
    batch = households(asked)
    model = build(asked, batch)
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
    drawn = ManagerPolicy(network, 3).actions(
        np.zeros((count, 6), np.float32), np.ones((count, 3), bool), chance
    )
    np.testing.assert_allclose(np.bincount(drawn) / count, odds, atol=1e-4)


def test_a_trained_policy_keeps_the_battery_s_laws_and_rests_in_gaps():
    trained = train(lesson())
    world = scenario(days=4, seed=5, gaps=True)
    for choice in ("sampled", "greedy"):
        trace = play(trained.policy(choice), world)
        assert np.abs(trace.power_w).max() <= 4000.0
        assert 0.1 <= trace.soc.min() <= trace.soc.max() <= 0.9
        assert np.nanmin(trace.meter_w) >= 0.0
        assert (np.abs(trace.power_w).sum(axis=1) / 60_000).max() <= 8.0 + 1e-9
        assert (trace.power_w[np.isnan(trace.load_w)] == 0.0).all()
    assert np.abs(play(trained.policy(), world).power_w).sum() > 0.0
    np.testing.assert_array_equal(play(trained.policy()).power_w, play(trained.policy()).power_w)


def test_a_masked_policy_never_chooses_what_moves_nothing():
    asked = lesson()
    batch = households(asked)
    model = build(asked, batch)
    batch.seed(0)
    shown = batch.reset()
    for _ in range(300):
        action, _ = model.predict(shown, deterministic=False)
        shown, _, _, told = batch.step(action)
        moved = np.array([info["moved_kwh"] for info in told])
        assert ((moved > 0.0) == (action != 0)).all()


def test_discounting_by_minutes_is_gamma_to_the_power_of_what_a_decision_took():
    batch = households(lesson(preset=replace(TINY, slots=1, discount="minute")))
    buffer = MinuteDiscount(
        3, batch.observation_space, batch.action_space, "cpu", 0.8, 0.9, 1, households=batch
    )
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


def test_a_manager_that_discounts_by_minutes_trains():
    curve = train(lesson(preset=replace(TINY, discount="minute"))).curve
    assert curve[-1].minutes >= TINY.budget_minutes


def test_with_lambda_zero_it_learns_not_to_wear_the_battery_out():
    settings = replace(TINY, budget_days=12, gamma=0.5, learning_rate=3e-3, reward_scale=20.0)
    flat = replace(scenario(), price=np.zeros((2, 1500)))
    trained = train(lesson(preset=settings, weight=0.0, scenario=flat))
    moved_kwh = np.abs(play(trained.policy()).power_w).sum(axis=1).mean() / 60_000
    assert moved_kwh < 2.0


@pytest.mark.parametrize(
    "battery",
    [Battery(charge_w=0.0, discharge_w=0.0), Battery(budget_kwh=0.0)],
)
def test_a_battery_that_can_do_nothing_is_refused(battery):
    with pytest.raises(InputError, match="this battery can do nothing"):
        train(lesson(battery=battery, clip_signatures=True))


def test_signatures_stronger_than_the_battery_are_refused_or_clipped_on_request():
    weak = Battery(charge_w=1000.0, discharge_w=1000.0)
    with pytest.raises(
        InputError, match=r"signature 0 \(kettle\) reaches 2,500 W, the battery 1,000 W; .*--clip"
    ):
        train(lesson(battery=weak))
    trained = train(lesson(battery=weak, clip_signatures=True))
    assert np.abs(play(trained.policy(), battery=weak).power_w).max() == 1000.0


def test_signatures_longer_than_a_day_are_refused():
    with pytest.raises(InputError, match="allowed are 1 to 1440 minutes"):
        Library.of([("sauna", [3000.0] * 1441)], "test")
    short = replace(scenario(), minutes=np.array([1440, 600]))
    long = Library.of([("sauna", [3000.0] * 700)], "test")
    with pytest.raises(
        InputError, match="a signature of 700 minutes is longer than the shortest training day"
    ):
        train(lesson(library=long, scenario=short))


def test_unknown_names_and_settings_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="no preset 'slow'; known are paper, fast"):
        preset("slow")
    with pytest.raises(InputError, match="horizon of 4096 decisions does not divide into 60 slots"):
        Preset(slots=60)
    with pytest.raises(InputError, match="a budget of 0 days is none"):
        Preset(budget_days=0)
    with pytest.raises(InputError, match="no choice 'lucky'; known are sampled, greedy"):
        ManagerPolicy(Mlp((), ()), 7, choice="lucky")
    with pytest.raises(InputError, match="lambda is 2; allowed is 0"):
        train(lesson(weight=2.0))
    with pytest.raises(InputError, match="differ from this version's in colour"):
        from_json({**vars(PRESETS["fast"]), "colour": "red"})


def test_another_library_than_the_trained_one_is_refused():
    policy = train(lesson()).policy()
    with pytest.raises(InputError, match="trained with 3 signatures and is given 2"):
        play(policy, library=LIBRARY.subset([0, 1]))


def test_the_cost_of_wear_and_the_start_of_charge_belong_to_what_is_learned():
    asked = lesson()
    keys = {asked.key(), lesson(weight=0.5).key(), lesson(seed=9).key(), lesson(battery=Battery(5.0)).key()}
    other = replace(asked, params=EnvParams(Battery(), LIBRARY, degradation_per_kwh=0.2))
    assert len({*keys, other.key()}) == 5
