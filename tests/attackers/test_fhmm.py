from itertools import product

import numpy as np
import pytest

from meterveil.attackers.fhmm import attacker as fhmm
from meterveil.attackers.fhmm.attacker import FHMM, count_appliance
from meterveil.attackers.fhmm.decoding import (
    Chain,
    Observation,
    ascend,
    block_marginals,
    in_stretches,
    marginals,
    path_score,
    viterbi,
)
from meterveil.attackers.protocol import AGGREGATE, meter_of
from meterveil.contracts.attackers import home, scores

TARGETS = ["kettle", "microwave", "fridge"]
RNG = np.random.default_rng(0)


def chain(rng, states):
    return Chain(
        np.sort(rng.uniform(0, 300, states)),
        rng.uniform(1, 400, states),
        rng.dirichlet(np.ones(states)),
        rng.dirichlet(np.ones(states), size=states),
    )


def case(seed, sizes, batch=2, minutes=5):
    rng = np.random.default_rng(seed)
    chains = [chain(rng, size) for size in sizes]
    return chains, Observation(rng.uniform(0, 600, (batch, minutes)), rng.uniform(1, 50, (batch, minutes)))


def every_path(chains, seen):
    """All joint paths of a single row, in the order of their joint states, and their scores."""
    states = list(product(*(range(len(chain.mean_w)) for chain in chains)))
    paths = [np.array(steps).T[:, None] for steps in product(states, repeat=seen.reading_w.shape[1])]
    return paths, np.array([path_score(chains, seen, path)[0] for path in paths])


def row(seen, number):
    return Observation(*(part[number : number + 1] for part in seen))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sizes", [(2,), (2, 3), (2, 2, 2)])
def test_viterbi_finds_the_best_of_all_joint_paths(seed, sizes):
    chains, seen = case(seed, sizes, minutes=4)
    decoded = viterbi(chains, seen)
    for number in range(2):
        paths, scored = every_path(chains, row(seen, number))
        np.testing.assert_array_equal(decoded[:, number], paths[int(scored.argmax())][:, 0])


def test_of_equally_likely_paths_the_first_is_taken():
    even = Chain(np.array([0.0, 100.0]), np.ones(2), np.full(2, 0.5), np.full((2, 2), 0.5))
    seen = Observation(np.array([[100.0, 0.0, 100.0]]), np.ones((1, 3)))
    np.testing.assert_array_equal(viterbi([even, even], seen)[:, 0], [[0, 0, 0], [1, 0, 1]])


def test_a_transition_that_never_happens_is_never_decoded():
    stuck = Chain(np.array([0.0, 100.0]), np.ones(2), np.array([1.0, 0.0]), np.eye(2))
    assert not viterbi([stuck], Observation(np.full((1, 9), 100.0), np.ones((1, 9)))).any()


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (2, 2, 2)])
def test_marginals_are_those_of_summing_over_all_joint_paths(sizes):
    chains, seen = case(4, sizes, minutes=4)
    tables = marginals(chains, seen)
    paths, scored = every_path(chains, row(seen, 1))
    weights = np.exp(scored - scored.max())
    for number, states in enumerate(sizes):
        expected = np.zeros((4, states))
        for path, weight in zip(paths, weights / weights.sum(), strict=True):
            expected[np.arange(4), path[number, 0]] += weight
        np.testing.assert_allclose(tables[number][1], expected, atol=1e-9)


def test_a_reading_that_fits_nothing_leaves_probabilities():
    chains, seen = case(1, (2, 3))
    wild = seen._replace(reading_w=np.full_like(seen.reading_w, 90_000.0))
    for table in marginals(chains, wild):
        np.testing.assert_allclose(table.sum(axis=-1), 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_coordinate_ascent_never_lowers_the_score(seed):
    chains, seen = case(seed, (2, 3, 2, 3, 2, 4), batch=3, minutes=40)
    reached = [path_score(chains, seen, ascend(chains, seen, max_sweeps=sweeps)) for sweeps in range(5)]
    assert np.all(np.diff(reached, axis=0) >= -1e-9)
    assert np.all(reached[-1] > reached[0])
    assert np.all(reached[-1] <= path_score(chains, seen, viterbi(chains, seen)) + 1e-9)


def test_coordinate_ascent_over_one_block_is_exact():
    chains, seen = case(3, (2, 3, 4), batch=3, minutes=30)
    np.testing.assert_array_equal(ascend(chains, seen), viterbi(chains, seen))
    for block, joint in zip(block_marginals(chains, seen), marginals(chains, seen), strict=True):
        np.testing.assert_allclose(block, joint)


def test_a_chain_counts_the_states_and_how_they_follow():
    series_w = [np.array([0.0, 0.0, 90.0, 90.0, np.nan, 0.0] * 20)]
    counted, states = count_appliance(series_w, 3)
    assert list(states[0][:6]) == [0, 0, 1, 1, -1, 0]
    np.testing.assert_allclose(counted.mean_w, [0.0, 90.0])
    assert counted.transition[1, 1] == pytest.approx((20 + 0.8) / (20 + 2), abs=0.02)


def test_a_long_record_gives_the_predictions_of_its_days():
    household = home(5)
    attacker = FHMM(floors=(0,)).fit([household], TARGETS, RNG)
    whole = attacker.predict(meter_of(household))
    middle = attacker.predict(meter_of(household.day(household.days()[2])))
    inside = slice(2 * 1440 + 60, 3 * 1440 - 60)
    for name in TARGETS:
        np.testing.assert_allclose(whole.watts[name][0, inside], middle.watts[name][0, 60:-60], atol=1.0)


def test_stretches_join_into_what_they_were_cut_from():
    readings_w = np.random.default_rng(0).uniform(0, 9, (2, 4000))
    (joined,) = in_stretches(lambda rows: [rows[..., None]], readings_w, 2000)
    np.testing.assert_array_equal(joined[..., 0], readings_w)


def test_a_home_with_other_loads_is_decoded():
    attacker = FHMM().fit([home(6, base_w=250.0)], [*TARGETS, AGGREGATE], RNG)
    day = home(1, seed=9, base_w=250.0)
    prediction = attacker.predict(meter_of(day))
    assert AGGREGATE not in prediction.on
    assert np.sqrt(np.mean((prediction.watts[AGGREGATE][0] - day.aggregate_w) ** 2)) < 5.0
    for name in TARGETS:
        rmse_w, f1 = scores(attacker, [day], name)
        assert f1 > 0.95
        assert rmse_w < 0.3 * np.std(day.appliances_w[name])
        assert scores(attacker, [day], name, head=True)[1] > 0.95


def test_blocks_of_chains_score_like_exact_decoding(monkeypatch):
    exact = FHMM(floors=(0,)).fit([home()], TARGETS, RNG)
    monkeypatch.setattr(fhmm, "MAX_JOINT_STATES", 20)
    blocks = FHMM(floors=(0,)).fit([home()], TARGETS, RNG)
    day = home(1, seed=7)
    for name in TARGETS:
        assert scores(blocks, [day], name)[1] >= scores(exact, [day], name)[1] - 0.02
