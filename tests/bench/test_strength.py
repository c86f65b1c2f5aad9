import json
from pathlib import Path

import numpy as np
import pytest
from meterveil.bench.strength import DEFAULT_ATTACKERS, longer_training, measure, own_house

from meterveil.attackers.registry import ATTACKERS
from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2, UKDALE_HOUSE1
from meterveil.data.splits import only_days
from meterveil.errors import InputError


def test_a_card_is_written_with_the_claim_beside_the_measurement(tmp_path):
    card = Card("strength", "co fridge", "rmse", "redd", measured=102.5712345, reported=77.27)
    [path] = cards.write(tmp_path, [card])
    assert path == tmp_path / "strength" / "redd" / "co-fridge.json"
    [read] = cards.read(tmp_path, "strength")
    assert (read["measured"], read["reported"], read["key"]) == (102.571, 77.27, card.key)
    assert read.keys() >= {"table", "row", "column", "spread", "seeds", "n_days", "threat_model", "commit"}


def test_what_is_undefined_is_null_and_not_a_number(tmp_path):
    [path] = cards.write(tmp_path, [Card("t", "r", "f1", "redd", measured=float("nan"))])
    assert json.loads(path.read_text())[0]["measured"] is None


def test_a_key_names_what_was_measured_and_not_how_it_came_out():
    first, second = (Card("t", "r", "f1", "redd", measured=value) for value in (0.1, 0.9))
    assert first.key == second.key
    assert first.key != Card("t", "r", "f1", "redd", measured=0.1, settings={"training_days": 40}).key


def test_reading_results_that_are_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no results"):
        cards.read(tmp_path, "nothing")


@pytest.fixture(scope="module")
def redd_house2(real_data):
    return load(real_data / "redd", 2)


@pytest.fixture(scope="module")
def ukdale_house1(real_data):
    return load(real_data / "ukdale", 1)


def test_the_papers_day_is_scored_beside_the_papers_figures(redd_house2):
    trial = own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test[:1], ("fridge", "microwave"))
    made = measure(trial, {("redd", 2): redd_house2}, ["co", "off"], workers=1)
    found = {(card.row, card.column): card for card in made}
    fridge = found["co fridge", "rmse"]
    assert (fridge.reported, fridge.n_days, fridge.settings["training_days"]) == (77.27, 1, 10)
    assert fridge.measured < found["off fridge", "rmse"].measured
    assert found["off fridge", "f1"].measured == 0.0
    assert found["co aggregate", "rmse"].reported == 69.69


def test_a_card_measured_again_replaces_the_recorded_one(redd_house2):
    recorded = Path(__file__).parents[2] / "results/strength_10_training_paper_day/redd/off-fridge.json"
    trial = own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test[:1], ("fridge",))
    made = measure(trial, {("redd", 2): redd_house2}, ["off"], workers=1)
    keys = {card.key: card.measured for card in made if card.row == "off fridge"}
    for old in json.loads(recorded.read_text()):
        assert keys[old["key"]] == pytest.approx(old["measured"], rel=1e-4)


def test_unless_some_are_named_all_attackers_are_measured():
    assert set(DEFAULT_ATTACKERS) == set(ATTACKERS)


def test_a_day_cannot_be_learned_from_and_read():
    with pytest.raises(InputError, match="2011-04-19 would be learned from and read"):
        own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.training[:1], ("fridge",))


def test_forty_days_of_ukdale_leave_the_test_day_and_the_papers_other_days_alone(ukdale_house1):
    days = longer_training(UKDALE_HOUSE1, ukdale_house1, 40)
    assert days[:10] == UKDALE_HOUSE1.training
    assert len(set(days)) == 40
    assert not {str(day) for day in days} & {"2013-03-18", "2013-01-18", "2013-03-30", "2013-07-15"}


def test_a_house_with_too_few_days_says_how_many_it_has(redd_house2):
    with pytest.raises(InputError, match="has 10 days to learn from, 40 are asked for; give at most 10"):
        longer_training(REDD_HOUSE2, redd_house2, 40)


def test_a_lesson_knows_the_days_that_teach_and_no_other(redd_house2):
    first, _, third = days = REDD_HOUSE2.training[:3]
    taught = only_days(redd_house2, (first, third))
    assert taught.days() == list(days)
    assert np.isnan(taught.day(days[1]).aggregate_w).all()
    assert np.isnan(taught.day(days[1]).appliances_w["fridge"]).all()
    np.testing.assert_array_equal(taught.day(third).aggregate_w, redd_house2.day(third).aggregate_w)


def test_several_days_give_a_mean_and_its_spread(redd_house2):
    trial = own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test, ("fridge",))
    made = measure(trial, {("redd", 2): redd_house2}, ["off"], workers=1)
    [card] = [card for card in made if card.column == "mae" and "fridge" in card.row]
    truth = [np.nanmean(redd_house2.day(day).appliances_w["fridge"]) for day in REDD_HOUSE2.test]
    assert card.measured == pytest.approx(np.mean(truth), rel=1e-3)
    assert card.spread == pytest.approx(np.std(truth, ddof=1), rel=1e-2)
    assert card.reported is None
