"""The learned manager of the veil: its model of half hours, what it learns, and how it is stored."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from worlds import LIBRARY, play

from meterveil.core.battery import Battery
from meterveil.core.certificate import Rules
from meterveil.core.tariff import PAPER_TARIFF, usual_price
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import FIRST_DAY, household
from meterveil.defenders.bundle import load_bundle
from meterveil.defenders.bundle_export import card_of, export_bundle
from meterveil.defenders.defence import find_defence
from meterveil.defenders.trained_policies import Mlp
from meterveil.defenders.training_settings import VeilSettings, settings_for, settings_from_json
from meterveil.defenders.veil.half_hours import Homes, Limits, block, tables_of
from meterveil.defenders.veil.learned import Learned
from meterveil.defenders.veil.manager_learning import learn, train
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.policy import Veil
from meterveil.defenders.veil.situation import Situation, record_of
from meterveil.errors import InputError

DEFAULT = Rules()
RULES = Rules((0, 420, 1020), (300.0, 500.0))
PRICE = usual_price(PAPER_TARIFF)
NEVER = np.zeros((1, 48))
TINY = VeilSettings(rounds=10, slots=64, horizon=1024, minibatch=256, scales=(1.0,), records=2)


def held(load_w, choice, slot=14, stored_kwh=3.0, rules=RULES, kept_kwh=NEVER, left_kwh=8.0, **limits):
    """Hold one choice in one household from a half hour on."""
    homes = Homes(np.array([slot]), np.array([stored_kwh]), np.array([left_kwh]))
    bounds = Limits(**{"range_kwh": 6.4, "budget_kwh": np.array([8.0]), "rescue_kwh": 0.0, "rescue_slots": 2} | limits)
    tables = tables_of(np.atleast_2d(load_w), rules, 500.0)
    return block(tables, rules, bounds, PRICE, homes, np.array([0]), np.array([choice]), kept_kwh)


def test_a_block_costs_its_energy_and_wear_and_tells_nothing_where_the_battery_follows():
    homes, found = held(np.full(1440, 400.0), 0)
    assert (homes.slot[0], found.slots[0], found.rescued[0]) == (34, 20, False)
    assert homes.stored_kwh[0] == pytest.approx(2.0)  # 100 W for ten hours
    assert homes.left_kwh[0] == pytest.approx(7.0)
    assert found.cost[0] == pytest.approx(0.075 - (0.3075 - 0.1317))
    assert found.bits[0] == found.missed_minutes[0] == 0.0


def test_a_budget_that_runs_out_tells_every_later_reading_of_the_block():
    _, found = held(np.full(1440, 400.0), 0, left_kwh=0.5)
    assert found.missed_minutes[0] == pytest.approx(300.0)
    assert found.bits[0] == pytest.approx(300 * 16 + 3 + 2 * math.log2(1440))
    assert found.moved_kwh[0] == pytest.approx(0.5)


def test_an_empty_battery_is_rescued_and_the_next_decision_is_due():
    homes, found = held(np.full(1440, 400.0), 0, stored_kwh=0.5, rescue_kwh=0.3)
    assert found.rescued[0]
    assert homes.slot[0] == 14 + 5  # after 2.5 hours less than 0.3 kWh is left
    assert found.bits[0] == pytest.approx(3 + math.log2(1440) + 1)


def test_losses_drain_the_model_as_they_drain_a_battery():
    homes, _ = held(np.full(1440, 400.0), 0, discharge_efficiency=0.5)
    assert homes.stored_kwh[0] == pytest.approx(1.0)
    homes, _ = held(np.full(1440, 400.0), 1, charge_efficiency=0.5)
    assert homes.stored_kwh[0] == pytest.approx(3.5)


def test_a_large_load_shows_on_the_grid_where_the_budget_is_saved():
    load_w = np.full(1440, 300.0)
    load_w[600:610] = 2300.0
    _, hidden = held(load_w, 0)
    _, saved = held(load_w, 0, kept_kwh=np.full((1, 48), 9.0))
    assert hidden.moved_kwh[0] == pytest.approx(2.0 / 6.0)
    assert saved.moved_kwh[0] == 0.0
    assert saved.missed_minutes[0] == 10.0
    assert saved.bits[0] == pytest.approx(10 * 5 + 3 + 2 * math.log2(1440))


def test_an_open_block_tells_every_reading():
    rules = replace(RULES, open_modes=("grid", "rest"))
    for choice, bits in ((2, 5.0), (3, 16.0)):
        _, found = held(np.full(1440, 400.0), choice, rules=rules)
        assert found.missed_minutes[0] == 600.0
        assert found.bits[0] == pytest.approx(600 * bits)


class Always:
    """Decider that always chooses one level."""

    def __init__(self, choice):
        self.choice = choice

    def scores(self, situation):
        return np.tile(np.arange(len(situation.rules.menu_w)) == self.choice, (len(situation.soc), 1)).astype(float)


def test_the_model_moves_as_much_as_the_minutes_of_the_veil():
    home = household(np.random.default_rng(5), 6, FIRST_DAY)
    days_w = home.aggregate_w.reshape(6, 1440)
    veil = Veil(RULES, decider=Always(0), rescue_kwh=0.0, large_w=np.inf, record=record_of(days_w, RULES))
    trace = play(veil, days_w, capacity_kwh=40.0, budget_kwh=5.0, charge_w=20_000.0, discharge_w=20_000.0)
    tables, homes = tables_of(days_w, RULES, np.inf), Homes(np.zeros(6, int), np.full(6, 16.0), np.full(6, 5.0))
    limits, moved = Limits(32.0, np.full(6, 5.0), 0.0, 2), 0.0
    for _ in range(3):
        homes, found = block(tables, RULES, limits, PRICE, homes, np.arange(6), np.zeros(6, int), np.zeros((6, 48)))
        moved = moved + found.moved_kwh
    np.testing.assert_allclose(moved, np.abs(trace.power_w).sum(axis=1) / 60_000, atol=0.02)
    np.testing.assert_allclose(homes.stored_kwh, (trace.soc[:, -1] - 0.1) * 40.0, atol=0.1)
    assert 0 < np.sum(moved > 4.99) < 6


@cache
def days():
    return household(np.random.default_rng(1), 6, FIRST_DAY).aggregate_w.reshape(6, 1440)


@cache
def trained(seed=0, **changes):
    return train(Veil(), list(days()), Battery(), PRICE, replace(TINY, **changes), seed)


def test_the_manager_learns_to_save_money_where_only_money_counts():
    _, curve, _ = trained(weight=0.0)
    assert curve[-1].cost < curve[0].cost - 0.02


def test_a_training_is_repeatable_and_depends_on_its_seed():
    first, again, other = (train(Veil(), list(days()), Battery(), PRICE, replace(TINY, rounds=1), s) for s in (3, 3, 4))
    for part, same, differs in zip(*(run[0].network.weights for run in (first, again, other)), strict=True):
        np.testing.assert_array_equal(part, same)
        assert np.any(part != differs)
    assert first[1] == again[1]


def situation(rules=DEFAULT):
    rng = np.random.default_rng(2)
    battery = Battery(**{name: np.full(20, value) for name, value in vars(Battery()).items()})
    records, record = record_of(days(), rules)[None], np.zeros(20, int)
    clock = rng.choice([0, 420, 600, 1020], 20)
    state = rng.uniform(0.1, 0.9, 20), rng.uniform(0.0, 8.0, 20), clock
    return Situation(rules, battery, *state, records, record, PRICE)


def network(choices=9, size=0.0):
    rng, widths = np.random.default_rng(0), (38 + choices, 8, 8, choices)
    layers = [rng.normal(0.0, size, pair) for pair in pairwise(widths)]
    return Mlp(tuple(layers), tuple(np.zeros(width) for width in widths[1:]))


def test_without_training_the_manager_chooses_as_the_plan_does():
    planned = Planner().scores(situation()).argmax(axis=1)
    np.testing.assert_array_equal(Learned(network()).scores(situation()).argmax(axis=1), planned)
    assert len(np.unique(planned)) > 2
    assert np.any(Learned(network(size=1.0)).scores(situation()).argmax(axis=1) != planned)


def test_a_household_is_rated_alike_in_every_batch():
    together, decider = situation(), Learned(network(size=0.3))
    battery = Battery(**{name: np.full(1, value) for name, value in vars(Battery()).items()})
    parts = (part[4:5] for part in (together.soc, together.budget_left_kwh, together.minute_of_day))
    alone = Situation(together.rules, battery, *parts, together.records, together.record[4:5], PRICE)
    np.testing.assert_allclose(decider.scores(alone)[0], decider.scores(together)[4], atol=1e-12)


def test_the_manager_may_leave_a_block_open():
    rules = Rules(open_modes=("grid", "rest"))
    decider, _, _ = train(Veil(rules), list(days()), Battery(), PRICE, replace(TINY, rounds=1), 0)
    scores = decider.scores(situation(rules))
    assert scores.shape == (20, 11)
    assert np.isfinite(scores).all()


def test_a_trained_manager_is_found_by_its_folder_and_acts_alike_from_a_bundle(tmp_path):
    home, setup = household(np.random.default_rng(1), 6, FIRST_DAY), Setup(LIBRARY)
    run = learn(home, home.days(), setup, replace(TINY, rounds=1), tmp_path / "run", {"asked": {}})
    assert run.method == "veil_manager"
    assert set(run.document["figures"]) > {"training_seconds", "training_days_moved_kwh"}
    assert settings_from_json(run.document["options"]) == replace(TINY, rounds=1)
    defence = find_defence(str(tmp_path / "run"))
    policy = defence.knowing([home], setup).policies[0]
    card = card_of(defence.method, defence.trainings[0].document)
    exported = load_bundle(export_bundle(policy, setup, card, tmp_path / "bundle")).policy
    load_w = days()[:2].reshape(1, -1)
    np.testing.assert_array_equal(play(exported, load_w).power_w, play(policy, load_w).power_w)


def test_settings_that_cannot_be_learned_with_are_refused():
    with pytest.raises(InputError, match="scales are"):
        VeilSettings(scales=(0.0,))
    with pytest.raises(InputError, match="divide into 768 slots"):
        VeilSettings(horizon=1000)
    with pytest.raises(InputError, match="no setting budget_days"):
        settings_for("veil_manager", budget_days=3)
    with pytest.raises(InputError, match="its budget is 0 kWh"):
        train(Veil(), list(days()), Battery(budget_kwh=0.0), PRICE, TINY, 0)
