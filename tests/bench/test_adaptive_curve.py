"""An adaptive attacker against the masked copies that it learned from."""

import dataclasses

import numpy as np
import pytest
from meterveil.bench.adaptive_curve import (
    Curve,
    Point,
    check_epochs,
    masked_test_days,
    measure_point,
    references,
)
from meterveil.bench.strength import HouseDays, Trial

from meterveil.attackers import fitting
from meterveil.attackers.registry import attacker
from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.curves import is_reference, lines
from meterveil.bench.floors import from_documents
from meterveil.data import settings
from meterveil.data.load import load
from meterveil.data.simulation import Setup
from meterveil.defenders import defender
from meterveil.errors import InputError

KEY = ("redd", 2)


@pytest.fixture(scope="module")
def home():
    return load("synthetic", days=4)


@pytest.fixture(scope="module")
def curve(home):
    days = tuple(home.days())
    trial = Trial(
        "strength",
        (HouseDays(*KEY, days[:3]),),
        HouseDays(*KEY, days[3:]),
        ("fridge", "kettle"),
        {"house": 2},
    )
    return Curve(trial, "random", defender("random"), Setup(settings.library()), draws=2)


def test_every_draw_masks_the_same_day_differently_and_keeps_the_truth(home, curve):
    first, second = masked_test_days(curve, home)
    day = home.day(curve.trial.test.days[0])
    assert not np.array_equal(first.aggregate_w, second.aggregate_w)
    for masked_day in (first, second):
        np.testing.assert_array_equal(masked_day.appliances_w["kettle"], day.appliances_w["kettle"])
        np.testing.assert_array_equal(masked_day.appliances_w["aggregate"], day.aggregate_w)


def test_a_curve_has_a_point_for_each_number_of_copies_and_both_threat_models(home, curve, tmp_path):
    houses = {KEY: home}
    made = references(curve, houses, ["co"], workers=1)
    for copies in (0, 2):
        made += measure_point(curve, Point(copies), houses, ["co"], workers=1)
    cards.write(tmp_path, made)
    read = from_documents(cards.read(tmp_path, "adaptive_random_3_training_1_days"))
    assert {card.key for card in read} == {card.key for card in made}
    assert {card.settings["copies"]: card.threat_model for card in read if "copies" in card.settings} == {
        0: "fixed",
        2: "adaptive",
    }
    assert set(lines(read, "rmse", "copies")["co"]) == {0, 2}
    bare = {card.row for card in read if is_reference(card)}
    assert {"co fridge, without defence", "prior fridge, without defence"} <= bare


def test_a_defence_costs_an_attacker_that_never_saw_it(home, curve):
    houses = {KEY: home}
    bare = {c.row: c for c in references(curve, houses, ["co"], workers=1) if c.column == "rmse"}
    hit = {c.row: c for c in measure_point(curve, Point(0), houses, ["co"], workers=1) if c.column == "rmse"}
    assert hit["co fridge, 0 copies"].measured > bare["co fridge, without defence"].measured
    assert hit["co fridge, 0 copies"].seeds == (0, 1)


def test_a_curve_over_epochs_trains_networks_that_long_and_never_twice(home, curve, monkeypatch):
    quick = dataclasses.replace(attacker("dae"))
    quick = dataclasses.replace(quick, recipe=dataclasses.replace(quick.recipe, windows=8))
    monkeypatch.setattr(fitting, "attacker", lambda name: quick)
    houses, point = {KEY: home}, Point(1, epochs=1)
    made = measure_point(curve, point, houses, ["dae"], workers=1)
    assert lines(made, "f1_head", "epochs")["dae"].keys() == {1}
    monkeypatch.setattr(type(quick), "fit", None)
    assert measure_point(curve, point, houses, ["dae"], workers=1) == made


def test_a_floor_that_is_asked_for_is_fitted_once(home, curve):
    made = references(curve, {KEY: home}, ["prior", "mean"], workers=1)
    assert len({(card.row, card.column) for card in made}) == len(made)
    assert {card.row.split()[0] for card in made} == {"prior", "mean"}


def test_cards_of_another_seed_have_other_keys_and_name_it(home, curve):
    other = dataclasses.replace(curve, trial=dataclasses.replace(curve.trial, seed=1))
    made = [measure_point(one, Point(0), {KEY: home}, ["mean"], workers=1) for one in (curve, other)]
    assert not {card.key for card in made[0]} & {card.key for card in made[1]}
    assert [several[0].settings["seed"] for several in made] == [0, 1]


def test_an_appliance_without_a_score_or_a_spread_does_not_narrow_the_curve():
    settings = {"copies": 3}
    cases = {"fridge": (0.5, 0.2), "kettle": (None, None), "oven": (0.7, None)}
    made = [
        Card("adaptive", f"co {target}, 3 copies", "f1", "redd", value, spread=spread, settings=settings)
        for target, (value, spread) in cases.items()
    ]
    assert lines(made, "f1", "copies") == {"co": {3: (pytest.approx(0.6), 0.2)}}
    assert lines(made[2:], "f1", "copies") == {"co": {3: (0.7, 0.0)}}


def test_what_has_no_epochs_is_refused_before_anything_is_fitted():
    with pytest.raises(InputError, match="co, mean is not trained in epochs; networks are dae, seq2point"):
        check_epochs(["co", "dae", "mean"])


def test_what_has_no_epochs_is_refused(home, curve):
    with pytest.raises(InputError, match="co is not trained in epochs"):
        measure_point(curve, Point(1, epochs=2), {KEY: home}, ["co"])
