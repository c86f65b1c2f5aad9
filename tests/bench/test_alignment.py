"""Condition A1: the estimator on problems whose answer is known, and the readers on a household."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from meterveil.attackers.protocol import Prediction
from meterveil.bench import cards
from meterveil.bench.alignment import gradients as gr
from meterveil.bench.alignment.estimate import Alignment, Interval, align, mean_of
from meterveil.bench.alignment.measure import COMPARISONS, Found, Panel, cards_of
from meterveil.bench.alignment.picture import curves
from meterveil.bench.alignment.risks import Risk, attacker_risk, mean_risk, probe_risk
from meterveil.bench.alignment.rollouts import Decisions, Rollouts, act
from meterveil.bench.alignment.snapshots import Snapshot
from meterveil.core.battery import Battery
from meterveil.core.env import EnvParams
from meterveil.core.scenario import Scenario
from meterveil.core.tariff import PAPER_TARIFF
from meterveil.data import synthetic
from meterveil.data.simulation import episodes
from meterveil.data.windows import Scaler
from meterveil.defenders.manager.manager_policy import ManagerPolicy, Mlp
from meterveil.defenders.manager.probe_reward import ProbeReward
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.training_settings import manager_settings
from meterveil.errors import InputError
from meterveil.plots.alignment import Point, alignment_figure, risk_figure

LIBRARY = synthetic.decoy_library()
PAPER = manager_settings("paper")
PARAMS = EnvParams(Battery(), LIBRARY)
IDENTITY = Probe("identity", Scaler(300.0, 400.0))


def network(rng, sizes=(6, 5, 4, LIBRARY.n_actions)):
    shapes = list(pairwise(sizes))
    weights = tuple(rng.normal(0.0, 0.5, shape) for shape in shapes)
    return Mlp(weights, tuple(rng.normal(0.0, 0.1, size) for size in sizes[1:]))


def noisy(rng, direction, plays=200, noise=3.0):
    return direction + rng.normal(0.0, noise, (plays, len(direction)))


@pytest.fixture(scope="module")
def days():
    home = synthetic.household(np.random.default_rng(0), days=3)
    return episodes(home, home.days()[1:], PAPER_TARIFF)


@pytest.fixture(scope="module")
def played(days):
    return act(ManagerPolicy(network(np.random.default_rng(1)), LIBRARY.n_actions), PARAMS, days, 6, seed=0)


class Copies:
    """Takes the meter for its one target: its error is the battery's power."""

    def __init__(self, looks=1.0):
        self.looks = looks

    def predict(self, meter):
        return Prediction({"fridge": self.looks * meter.reading_w}, {})


def test_a_gradient_lies_to_itself_at_cosine_one_and_to_its_opposite_at_minus_one():
    rng = np.random.default_rng(0)
    sample = noisy(rng, rng.normal(size=500))
    same, opposite, twice = (align(sample, factor * sample) for factor in (1.0, -1.0, 2.0))
    assert same.cosine.value == pytest.approx(1.0)
    assert same.gamma == pytest.approx((1.0, 1.0, 1.0))
    assert opposite.cosine.value == pytest.approx(-1.0)
    assert opposite.gamma.value == pytest.approx(-1.0)
    assert twice.cosine.value == pytest.approx(1.0)
    assert twice.gamma.value == pytest.approx(2.0)
    assert twice.inner_product.value == pytest.approx(2.0 * same.inner_product.value)


def test_independent_gradients_are_at_no_angle_and_the_interval_says_so():
    rng = np.random.default_rng(1)
    one, other = np.eye(2000)[:2] * 40.0
    found = align(noisy(rng, one), noisy(rng, other))
    assert abs(found.cosine.value) < 0.1
    assert found.cosine.low < 0.0 < found.cosine.high


def test_noise_that_two_gradients_share_does_not_pass_for_agreement():
    rng = np.random.default_rng(2)
    one, other = np.eye(1000)[:2] * 5.0
    shared = rng.normal(0.0, 1.0, (200, 1000))
    naive = np.mean(one + shared, axis=0) @ np.mean(other + shared, axis=0)
    found = align(one + shared, other + shared)
    assert naive > 3.0
    assert found.inner_product.low < 0.0 < found.inner_product.high
    assert abs(found.cosine.value) < 0.1


def test_the_interval_covers_the_true_cosine_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    one, other = np.zeros((2, 300))
    one[0], other[:2] = 1.0, (0.6, 0.8)
    intervals = [align(noisy(rng, one, 60, 0.3), noisy(rng, other, 60, 0.3)).cosine for _ in range(60)]
    covered = sum(found.low <= 0.6 <= found.high for found in intervals)
    assert covered >= 50
    assert np.mean([found.high - found.low for found in intervals]) < 0.5


def test_too_few_plays_are_refused():
    with pytest.raises(InputError, match="2 plays say nothing"):
        align(np.ones((2, 5)), np.ones((2, 5)))


def test_a_gradient_without_any_norm_leaves_only_a_sign():
    rng = np.random.default_rng(4)
    found = align(noisy(rng, np.zeros(50)), noisy(rng, rng.normal(size=50)))
    assert found.cosine.low == -1.0
    assert found.cosine.high == 1.0


def log_probability(one, decisions, weight):
    hidden = decisions.observation
    for layer, bias in zip(one.weights[:-1], one.biases[:-1], strict=True):
        hidden = np.tanh(hidden @ layer + bias)
    logits = np.where(decisions.allowed, hidden @ one.weights[-1] + one.biases[-1], -np.inf)
    logits = logits - logits.max(axis=1, keepdims=True)
    chosen = logits[np.arange(len(logits)), decisions.action] - np.log(np.exp(logits).sum(axis=1))
    return float(chosen @ weight)


def moved_along(one, direction, step):
    """Move all parameters along a direction that has a gradient's order: a layer's weights, its biases."""
    at, weights, biases = 0, [], []
    for weight, bias in zip(one.weights, one.biases, strict=True):
        weights.append(weight + step * direction[at : at + weight.size].reshape(weight.shape))
        at += weight.size
        biases.append(bias + step * direction[at : at + bias.size])
        at += bias.size
    return Mlp(tuple(weights), tuple(biases))


def slope(one, direction, value, step=1e-5):
    return (value(moved_along(one, direction, step)) - value(moved_along(one, direction, -step))) / (2 * step)


def by_hand(observation, action, begins, ends, plays, days=1, n_actions=3):
    """Make rollouts of one episode a day: (play, decision) each; nothing but the decisions is filled in."""
    decisions = action.shape[1]
    episode = np.repeat(np.arange(plays * days), decisions)
    allowed = np.ones((action.size, n_actions), dtype=bool)
    times = (np.tile(part, plays * days) for part in (begins, ends))
    alone = np.eye(n_actions, dtype=bool)[action.ravel()]
    noted = Decisions(episode, *times, action.ravel(), observation.reshape(-1, 6), allowed, alone)
    empty = np.zeros((days, 1500))
    calendar = (empty.astype(np.int64), empty.astype(np.int64))
    scenario = Scenario(empty, *calendar, empty, np.full(days, 1440), lead=60)
    day, play = np.tile(np.arange(days), plays), np.repeat(np.arange(plays), days)
    return Rollouts(scenario, day, play, np.zeros((plays * days, 1440)), noted)


def test_scores_are_the_slopes_of_log_probabilities_masked_actions_included():
    rng = np.random.default_rng(5)
    one = network(rng, (6, 5, 4, 3))
    made = by_hand(rng.normal(size=(4, 2, 6)), rng.integers(2, size=(4, 2)), [0, 60], [60, 1440], plays=4)
    allowed = np.ones((8, 3), dtype=bool)
    allowed[::3, 2] = False
    made = made._replace(decisions=made.decisions._replace(allowed=allowed))
    weight = rng.normal(size=8)
    total = gr.gradients(made, gr.scores(one, made.decisions), weight).sum(axis=0)
    for _ in range(5):
        direction = rng.normal(size=len(total))
        expected = slope(one, direction, lambda at: log_probability(at, made.decisions, weight))
        assert total @ direction == pytest.approx(expected, rel=1e-5)


def test_the_gradient_is_the_slope_of_the_expected_reward_of_two_decisions():
    rng = np.random.default_rng(6)
    one, plays = network(rng, (6, 5, 4, 3)), 20_000
    first, second = rng.normal(size=6), rng.normal(size=(3, 6))
    pay, later_pay = rng.normal(size=3), rng.normal(size=(3, 3))

    def chances(at, observation):
        odds = np.exp(at.logits(observation))
        return odds / odds.sum(axis=-1, keepdims=True)

    def expected_reward(at):
        begin, then = chances(at, first), chances(at, second)
        return float(begin @ (pay + (then * later_pay).sum(axis=1)))

    chosen = rng.choice(3, plays, p=chances(one, first))
    later = (rng.random((plays, 1)) > np.cumsum(chances(one, second), axis=1)[chosen]).sum(axis=1)
    observation = np.stack([np.tile(first, (plays, 1)), second[chosen]], axis=1)
    made = by_hand(observation, np.stack([chosen, later], axis=1), [0, 600], [600, 1440], plays)
    paid = np.stack([pay[chosen], later_pay[chosen, later]], axis=1).ravel()
    to_go = gr.paid_to_go(made, Risk(paid, np.zeros((plays, 24))), gamma=1.0, reach=0)
    found = gr.gradients(made, gr.scores(one, made.decisions), gr.advantage(made, to_go)).mean(axis=0)
    exact = np.array([slope(one, axis, expected_reward) for axis in np.eye(len(found))])
    np.testing.assert_allclose(found, exact, atol=0.1 * np.abs(exact).max())


def test_actions_that_would_have_done_the_same_share_their_score(played):
    one = played.decisions
    idled = ~played.moved
    assert one.same[idled][:, 0].all()
    assert one.same[idled].sum(axis=1).mean() > 2.0
    assert (one.same[~idled].sum(axis=1) == 1).all()
    assert one.same[np.arange(len(one.action)), one.action].all()
    found = gr.scores(network(np.random.default_rng(1)), one)
    nothing_to_choose = one.same.all(axis=1)
    assert nothing_to_choose.any()
    np.testing.assert_allclose(found.back[-1][nothing_to_choose], 0.0, atol=1e-12)


def test_a_baseline_takes_away_what_the_state_alone_explains():
    rng = np.random.default_rng(7)
    observation = rng.random((40, 3, 6))
    times = ([0, 300, 900], [300, 900, 1440])
    made = by_hand(observation, np.zeros((40, 3), dtype=np.int64), *times, plays=40)
    to_go = 3.0 * made.decisions.observation[:, 4] + np.tile([1.0, 5.0, -2.0], 40)
    assert gr.advantage(made, to_go).std() < 0.2 * to_go.std()


def test_what_is_paid_adds_up_by_hand_and_never_across_episodes():
    times = (np.array([0, 100, 200]), np.array([100, 200, 1440]))
    made = by_hand(np.zeros((2, 3, 6)), np.zeros((2, 3), dtype=np.int64), *times, plays=2)
    risk = Risk(np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), np.zeros((2, 24)))
    ahead = gr.paid_to_go(made, risk, gamma=0.5, reach=0)
    np.testing.assert_allclose(ahead, [3.0, 4.0, 4.0, 24.0, 32.0, 32.0])
    reached = gr.paid_to_go(made, risk, gamma=0.5, reach=50)
    np.testing.assert_allclose(reached - ahead, [0.0, 1.0, 2.0, 0.0, 8.0, 16.0])
    further = gr.paid_to_go(made, risk, gamma=0.5, reach=150)
    np.testing.assert_allclose(further - ahead, [0.0, 1.0, 3.0, 0.0, 8.0, 24.0])


def test_hours_count_from_the_one_in_which_a_decision_is_taken_or_as_far_back_as_one_looks():
    times = (np.array([0, 90, 1430]), np.array([90, 1430, 1440]))
    made = by_hand(np.zeros((1, 3, 6)), np.zeros((1, 3), dtype=np.int64), *times, plays=1)
    risk = Risk(np.zeros(3), np.arange(24.0)[None])
    np.testing.assert_allclose(gr.hours_to_go(made, risk, reach=0) * 24, [276.0, 276.0, 23.0])
    np.testing.assert_allclose(gr.hours_to_go(made, risk, reach=60) * 24, [276.0, 276.0, 45.0])


def test_noted_decisions_fill_every_day_and_repeat_with_their_seed(played, days):
    one = played.decisions
    for episode in range(len(played.day)):
        mine = one.episode == episode
        np.testing.assert_array_equal(one.begins[mine][1:], one.ends[mine][:-1])
        assert one.begins[mine][0] == 0
        assert one.ends[mine][-1] == 1440
    assert played.moved.any()
    assert not played.moved[one.action == 0].any()
    manager = ManagerPolicy(network(np.random.default_rng(1)), LIBRARY.n_actions)
    again, other = (act(manager, PARAMS, days, 6, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.power_w, played.power_w)
    np.testing.assert_array_equal(again.decisions.action, one.action)
    assert not np.array_equal(other.power_w, played.power_w)


def test_a_copying_attacker_loses_exactly_what_the_identity_probe_loses(played, days):
    truth = {"fridge": days.load_w}
    for loss in ("mse", "rmse"):
        reward = ProbeReward(IDENTITY, days, loss=loss)
        probe, copying = probe_risk(played, reward), attacker_risk(played, reward, Copies(), truth)
        assert probe.paid.max() > 0.0
        np.testing.assert_allclose(copying.paid, probe.paid, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(copying.hours, probe.hours, rtol=1e-3, atol=1e-6)
        mean = mean_risk([probe, Risk(3 * probe.paid, 3 * probe.hours)])
        np.testing.assert_allclose(mean.hours, 2 * probe.hours)


def test_an_attacker_that_never_looks_loses_nothing(played, days):
    blind = attacker_risk(played, ProbeReward(IDENTITY, days), Copies(looks=0.0), {"fridge": days.load_w})
    assert not blind.paid.any()
    assert not blind.hours.any()


def test_an_hour_with_an_unknown_minute_costs_nobody_anything(days):
    load_w = days.load_w.copy()
    load_w[:, 60 + 130] = np.nan
    holed = replace(days, load_w=load_w)
    manager = ManagerPolicy(network(np.random.default_rng(1)), LIBRARY.n_actions)
    made = act(manager, PARAMS, holed, 2, seed=0)
    reward = ProbeReward(IDENTITY, holed)
    for risk in (probe_risk(made, reward), attacker_risk(made, reward, Copies(), {"fridge": holed.load_w})):
        assert not risk.hours[:, 2].any()
        assert risk.hours[:, 1].any()


def test_a_panel_finds_a_copying_attacker_aligned_and_a_contrary_one_opposed(days):
    class Contrary(Copies):
        """Errs the less, the more the battery does: it is wrong by 9 kW less the power's size."""

        def predict(self, meter):
            hidden = np.abs(meter.reading_w - np.tile(days.load_w, (len(meter.reading_w) // 2, 1)))
            return Prediction({"fridge": 9000.0 - hidden}, {})

    snapshot = Snapshot(3, network(np.random.default_rng(1), (6, 8, 8, LIBRARY.n_actions)))
    zero = {"fridge": np.zeros_like(days.load_w)}
    found = {}
    for name, attacker, truth in (
        ("copies", Copies(), {"fridge": days.load_w}),
        ("contrary", Contrary(), zero),
    ):
        panel = Panel(PARAMS, days, IDENTITY, PAPER, {name: attacker}, truth)
        measured = panel.measure(snapshot, plays=40, seed=0)
        found |= measured.alignments
    assert found["copies", "reward"].gamma.low > 0.0
    assert found["contrary", "reward"].gamma.value < 0.0
    assert found["contrary", "risk"] == found["all six", "risk"]
    assert ("probe", "training") in found
    assert ("probe", "risk") not in found


def test_a_measurement_repeats_with_its_seed(days):
    snapshot = Snapshot(3, network(np.random.default_rng(1), (6, 8, 8, LIBRARY.n_actions)))
    panel = Panel(PARAMS, days, IDENTITY, PAPER, {"copies": Copies()}, {"fridge": days.load_w})
    first, again, other = (panel.measure(snapshot, plays=16, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_risks_are_averaged_over_plays_with_an_interval(days):
    panel = Panel(PARAMS, days, IDENTITY, PAPER, {"copies": Copies()}, {"fridge": days.load_w})
    manager = network(np.random.default_rng(1))
    played = act(ManagerPolicy(manager, LIBRARY.n_actions), PARAMS, days, 16, seed=0)
    risk = probe_risk(played, panel.reward)
    means = panel.measure(Snapshot(0, manager), plays=16, seed=0).means
    assert means["probe", "hours"].value == pytest.approx(risk.hours.mean())
    assert means["probe", "paid"].value == pytest.approx(risk.paid.sum() / 32)
    assert means["all six", "hours"] == means["copies", "hours"]
    assert mean_of(np.array([1.0, 3.0])) == pytest.approx((2.0, 2.0 - 1.96, 2.0 + 1.96))


def test_cards_hold_every_figure_and_the_pictures_read_them_in_order(tmp_path):
    rng = np.random.default_rng(8)
    sample = noisy(rng, rng.normal(size=100))
    readers = ("fhmm", "all six")
    for update in (10, 0):
        alignments = {(name, kind): align(sample, sample) for name in readers for kind in COMPARISONS}
        means = {
            (name, kind): Interval(2.0 + update, 1.0, 4.0) for name in readers for kind in ("paid", "hours")
        }
        found = Found(update, alignments, means)
        settings = {"plays": 200, "update": update}
        cards.write(tmp_path, cards_of("redd", found, "alignment_fast", settings, n_days=2))
    read = cards.read(tmp_path, "alignment_fast")
    bounded = {f"{kind}_{name}" for kind in COMPARISONS for name in ("cosine", "gamma")}
    bounded |= {"paid_mean", "hours_mean"}
    assert {card["column"] for card in read if card["row"] == "fhmm, update 10"} == {
        *(f"{kind}_inner_product" for kind in COMPARISONS),
        *(f"{name}{bound}" for name in bounded for bound in ("", "_low", "_high")),
    }
    drawn = curves(read, "cosine")
    assert list(drawn["risk"]["redd"]) == ["all six", "fhmm"]
    assert drawn["risk"]["redd"]["fhmm"] == [Point(0, 1.0, 1.0, 1.0), Point(10, 1.0, 1.0, 1.0)]
    figure = alignment_figure(drawn)
    assert [trace.name for trace in figure.data if trace.showlegend] == ["all six", "fhmm"]
    assert len(figure.data) == 6
    assert list(risk_figure(curves(read, "mean")).data[0].y) == [1.0, 6.0]


def test_a_mark_is_hollow_where_its_interval_holds_the_line_and_ticks_stand_where_one_looked():
    points = [Point(0, 0.5, 0.1, 0.9), Point(18, 0.2, -0.1, 0.5), Point(36, -0.5, -0.8, -0.2)]
    figure = alignment_figure({"reward": {"redd": {"co": points}}})
    filled, hollow, below = figure.data[0].marker.color
    assert hollow == "white"
    assert filled == below == figure.data[0].line.color
    assert list(figure.layout.xaxis.tickvals) == [0, 18, 36]
    shares = risk_figure({"paid": {"redd": {"co": points[:2]}}}).data[0]
    assert list(shares.y) == [1.0, 0.4]
    assert list(shares.marker.color) == ["white", "white"]


def test_a_figure_that_noise_leaves_unbounded_is_null_and_says_why():
    endless = Interval(float("inf"), float("-inf"), float("inf"))
    one = Alignment(Interval(1.0, 0.0, 2.0), Interval(1.0, -1.0, 1.0), endless)
    made = cards_of("redd", Found(0, {("co", "risk"): one}, {}), "alignment_fast", {}, n_days=2)
    gamma = next(card for card in made if card.column == "risk_gamma")
    assert gamma.measured is None
    assert gamma.note.startswith("unbounded")
