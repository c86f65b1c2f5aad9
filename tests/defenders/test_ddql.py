"""DDQL-flat and DDQL-MI: their rewards, and that they learn them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from ddql_small import QUICK, TINY, lesson, play, two_levels

from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import defender
from meterveil.defenders.ddql.ddql_rewards import CLASSES, MOST_NATS, FlatReward, MiReward, classes
from meterveil.defenders.ddql.ddql_training import learn, train
from meterveil.defenders.run_folder import POLICY, RUN, load_trained, own_randomness
from meterveil.errors import InputError


def loads(minutes=240, batch=4, seed=0):
    return np.random.default_rng(seed).integers(0, 20, (minutes, batch)) * 50.0


def signal(seed=0):
    with own_randomness(seed):
        return MiReward(replace(TINY, h_hidden=16, h_learning_rate=1e-2), 300.0)


def test_flat_pays_for_a_meter_near_the_mean_of_the_training_days():
    flat = FlatReward.of(two_levels(high_w=1000.0))
    assert flat.level_w == 500.0
    paid = flat.score(np.zeros((1, 3)), np.array([[500.0, 0.0, 1500.0]]))
    np.testing.assert_allclose(paid, [[0.0, -0.5, -1.0]])


@pytest.fixture(scope="module")
def levelled():
    return play(train(*lesson(settings=QUICK)).policy)


def test_flat_learns_to_level_a_load_of_two_levels(levelled):
    idle = play(defender("none"))
    assert np.abs(levelled.meter_w - 500.0).mean() < 0.5 * np.abs(idle.meter_w - 500.0).mean()
    assert levelled.meter_w.std() < idle.meter_w.std()


@pytest.mark.slow
def test_where_cost_alone_counts_wear_keeps_the_battery_from_levelling(levelled):
    frugal = play(train(*lesson(settings=QUICK, weight=0.0)).policy)
    assert np.clip(frugal.power_w, 0.0, None).sum() < 0.5 * np.clip(levelled.power_w, 0.0, None).sum()


def test_loads_are_told_apart_in_steps_of_50_w_up_to_5_kw():
    watts = torch.tensor([-100.0, 0.0, 24.0, 26.0, 4990.0, 9000.0])
    assert classes(watts).tolist() == [0, 0, 0, 1, CLASSES - 1, CLASSES - 1]


def test_a_carried_state_scores_as_the_whole_day_read_at_once():
    load_w, mi = loads(), signal()
    mi.begin(4)
    whole = mi.score(load_w, load_w + 100.0)
    mi.begin(4)
    parts = [mi.score(load_w[begin : begin + 7], load_w[begin : begin + 7] + 100.0) for begin in range(0, 240, 7)]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-5)


def test_the_future_and_the_load_itself_do_not_reach_the_h_network():
    load_w, mi = loads(), signal()
    changed_w = load_w.copy()
    changed_w[100:] = 0.0
    reading_w = np.full_like(load_w, 300.0)
    odds = []
    for watts in (load_w, changed_w):
        before = np.concatenate([np.zeros((1, 4)), watts[:-1]]).astype(np.float32)
        with torch.no_grad():
            odds.append(mi.network(torch.from_numpy(before), torch.from_numpy(reading_w.astype(np.float32)), None)[0])
    assert torch.equal(odds[0][:101], odds[1][:101])
    assert not torch.equal(odds[0][101:], odds[1][101:])


def test_the_h_network_learns_to_read_an_unprotected_meter_but_not_a_flat_one():
    load_w = loads(batch=16)
    bare, flat = signal(), signal()
    for _ in range(24):
        bare_loss, flat_loss = bare.learn(load_w, load_w), flat.learn(load_w, np.full_like(load_w, 500.0))
    assert bare_loss < 0.5
    assert 0.9 * np.log(20) < flat_loss < 1.2 * np.log(20)
    bare.begin(16)
    assert bare.score(load_w, load_w).max() <= MOST_NATS


def test_unknown_minutes_do_not_teach_the_h_network():
    load_w = loads()
    load_w[60:120] = np.nan
    assert np.isfinite(signal().learn(load_w, load_w))


@pytest.mark.slow
def test_mi_hides_more_than_it_would_by_resting():
    """A fresh H-network, taught by each meter's own days, misses more of the loads with the defence."""
    rng = np.random.default_rng(0)
    scenario = two_levels(days=8, minutes=240)
    scenario.load_w[:] = np.repeat(rng.choice([0.0, 300.0, 600.0, 900.0], (8, 24)), 10, axis=1)
    asked = lesson("ddql_mi", scenario=scenario, settings=QUICK, h_hidden=16, h_passes=2)
    policy = train(*asked).policy
    losses = []
    for each in (defender("none"), policy):
        trace, fresh = play(each, scenario), signal(seed=9)
        losses.append([fresh.learn(trace.load_w.T, trace.meter_w.T) for _ in range(24)][-1])
    assert losses[1] > 1.5 * losses[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    minutes = pd.date_range("2024-03-04", periods=2880, freq="min", tz="UTC")
    household = Household("mine", minutes, two_levels().load_w.ravel(), {})
    settings, folder = replace(TINY, method="ddql_mi", epochs=1), tmp_path_factory.mktemp("run")
    return learn(household, household.days(), Setup(decoy_library()), settings, folder), folder


def test_a_run_describes_itself_and_loads_the_same_policy(run):
    learned, folder = run
    document = json.loads((folder / RUN).read_text())
    assert document["status"] == "finished"
    assert document["options"]["method"] == learned.method == "ddql_mi"
    assert document["days"] == ["2024-03-04", "2024-03-05"]
    assert document["figures"]["training_days_moved_kwh"] > 0.0
    np.testing.assert_array_equal(play(load_trained(folder).policy).power_w, play(learned.policy).power_w)


def test_an_altered_unfinished_or_foreign_run_is_refused(run, tmp_path):
    folder = shutil.copytree(run[1], tmp_path / "copy")
    (folder / POLICY).write_bytes(b"something else")
    with pytest.raises(InputError, match="was altered since the training"):
        load_trained(folder)
    (folder / POLICY).unlink()
    with pytest.raises(InputError, match="lacks a file"):
        load_trained(folder)
    document = json.loads((folder / RUN).read_text())
    (folder / RUN).write_text(json.dumps({**document, "status": "unfinished"}))
    with pytest.raises(InputError, match="is not finished; continue it with `resume`"):
        load_trained(folder)
    (folder / RUN).write_text("{}")
    with pytest.raises(InputError, match="holds no training"):
        load_trained(folder)
