import json
from datetime import date

import numpy as np
import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.strength import Trial, longer_training, measure
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
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


def test_the_papers_day_is_scored_beside_the_papers_figures(real_data, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path))
    household = load(real_data / "redd", 2)
    trial = Trial(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test[:1], ("fridge", "microwave"))
    found = {(card.row, card.column): card for card in measure(trial, household, ["co", "off"], workers=1)}
    fridge = found["co fridge", "rmse"]
    assert (fridge.reported, fridge.n_days, fridge.settings["training_days"]) == (77.27, 1, 10)
    assert fridge.measured < found["off fridge", "rmse"].measured
    assert found["off fridge", "f1"].measured == 0.0
    assert found["co aggregate", "rmse"].reported == 69.69


def test_longer_training_never_takes_a_test_day(real_data):
    household = load(real_data / "redd", 2)
    days = longer_training(REDD_HOUSE2, household, 40)
    assert days[:10] == REDD_HOUSE2.training
    assert not set(days) & set(REDD_HOUSE2.test)
    assert len(days) < 40  # the record ends on 1 May
    assert all(isinstance(day, date) for day in days)


def test_several_days_give_a_mean_and_its_spread(real_data, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path))
    household = load(real_data / "redd", 2)
    trial = Trial(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test, ("fridge",))
    [card] = [
        c for c in measure(trial, household, ["off"], workers=1) if c.column == "mae" and "fridge" in c.row
    ]
    truth = [np.nanmean(household.day(day).appliances_w["fridge"]) for day in REDD_HOUSE2.test]
    assert card.measured == pytest.approx(np.mean(truth), rel=1e-3)
    assert card.spread == pytest.approx(np.std(truth, ddof=1), rel=1e-2)
    assert card.reported is None
