"""Uses of appliances, their scores, and attackers that learn from sub-meters."""

import dataclasses

import numpy as np
import pytest

from meterveil.audit import submeters
from meterveil.audit.audit_page import audit_page
from meterveil.audit.findings import audit
from meterveil.audit.model import Shape, agreeing, minutes_of, runs_of
from meterveil.audit.submeters import score
from meterveil.data.submeters import appliance_of

SHAPE = Shape(pause_minutes=2, least_minutes=3, most_minutes=6)


def on(text):
    return np.array([letter == "#" for letter in text])


@pytest.mark.parametrize(
    ("text", "runs"),
    [("..##..##...###.", [(2, 8), (11, 14)]), ("##......#######", []), ("..........", [])],
    ids=["a pause joins and a break separates", "too short and too long", "never on"],
)
def test_on_minutes_become_uses(text, runs):
    assert runs_of(on(text), SHAPE) == runs


def test_minutes_of_uses_and_agreement():
    assert minutes_of([(1, 3), (5, 6)], 6).tolist() == [False, True, True, False, False, True]
    detected, true = [(0, 10), (20, 30), (40, 50)], [(2, 6), (36, 44)]
    assert agreeing(detected, true, 60).tolist() == [True, False, True]


def test_scores_of_perfect_empty_and_impossible_readings():
    truth_w = np.where(on("...##.....##..."), 2000.0, 0.0)
    perfect = score("kettle", truth_w, (truth_w > 0).astype(float))
    assert (perfect.f1, perfect.use_f1, perfect.uses) == (1.0, 1.0, 2)
    assert score("kettle", truth_w, np.zeros(15)).use_f1 == 0.0
    assert np.isnan(score("kettle", np.zeros(9), np.ones(9)).use_f1)


def test_a_second_appliance_of_a_kind_is_scored_like_the_first():
    washing_w = np.zeros(600)
    washing_w[100:120] = washing_w[140:160] = 500.0
    first, second = (score(name, washing_w, washing_w / 500.0) for name in ("washing_machine", "washing_machine_2"))
    assert first == second
    assert second.uses == 1


@pytest.mark.parametrize("name", ["Kettle (W)", "kettle_w", "kettle", "Kettle_kW"])
def test_the_appliance_of_a_column_is_recognised(name):
    assert appliance_of(name) == "kettle"


def test_only_known_and_used_sub_meters_are_targets(home):
    never_used = {**home.appliances_w, "toaster": np.zeros(len(home.minutes))}
    targets = submeters.metered(dataclasses.replace(home, appliances_w=never_used)).appliances_w
    assert "kettle" in targets
    assert not {"toaster", "electronics"} & set(targets)
    assert len(targets) <= submeters.MOST_TARGETS


def test_two_columns_of_one_appliance_are_both_kept(home):
    kettle_w, fridge_w = home.appliances_w["kettle"], home.appliances_w["fridge"]
    columns = {"kettle": kettle_w, "Kettle (W)": kettle_w + fridge_w, "kettle_2": fridge_w + 1000.0}
    targets = submeters.metered(dataclasses.replace(home, appliances_w=columns)).appliances_w
    for name, column in zip(("kettle", "kettle_3", "kettle_2"), columns.values(), strict=True):
        np.testing.assert_array_equal(targets[name], column)


def test_the_last_days_are_test_days_and_one_day_is_too_few(home):
    training, test = submeters.choose_days(home)
    assert max(training) < min(test)
    assert (len(training), len(test)) == (10, 3)
    assert submeters.choose_days(home.day(home.days()[0])) == ((), ())


def test_attackers_that_learned_here_are_scored_beside_the_shipped_model(home, model):
    few = home.between(home.days()[0], home.days()[5]).select(["kettle", "fridge"])
    trained = submeters.train_and_score(few, model)
    assert trained.scores["fhmm", "kettle"].use_f1 > 0.5
    assert {name for name, _ in trained.scores} == {"fhmm", "shipped"}
    assert "Learned from this home" in audit_page(audit(few, model), model, trained)


@pytest.mark.slow
def test_a_network_learns_from_days_around_a_gap(home, model):
    few = home.between(home.days()[0], home.days()[6]).select(["kettle"])
    gap = few.minutes.normalize() == few.day(few.days()[1]).minutes[0]
    gappy = dataclasses.replace(few, aggregate_w=np.where(gap, np.nan, few.aggregate_w))
    trained = submeters.train_and_score(gappy, model, names=("seq2point",), workers=1, epochs=1)
    assert trained.training == (few.days()[0], *few.days()[2:5])
    assert ("seq2point", "kettle") in trained.scores
