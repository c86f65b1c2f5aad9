"""An attacker has to beat those that never look at the meter."""

from pathlib import Path

import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.floors import (
    from_documents,
    mean_over_appliances,
    shortfall_rows,
    shortfalls,
)

RESULTS = Path(__file__).parents[2] / "results"


def made(name, target, reported=None, **scores):
    return [
        Card("strength", f"{name} {target}", column, "redd", measured=value, reported=reported)
        for column, value in scores.items()
    ]


BLIND = [*made("mean", "fridge", rmse=50.0, f1=0.6), *made("off", "fridge", rmse=70.0, f1=0.0)]


def test_an_attacker_that_beats_both_blind_ones_has_no_shortfall():
    assert shortfalls([*BLIND, *made("co", "fridge", rmse=49.0, f1=0.61)]) == []


def test_a_shortfall_names_the_better_of_the_blind_ones():
    [by_rmse, by_f1] = shortfalls([*BLIND, *made("co", "fridge", rmse=60.0, f1=0.5)])
    assert (by_rmse.attacker, by_rmse.target, by_rmse.metric) == ("co", "fridge", "rmse")
    assert (by_rmse.floor, by_rmse.floor_score) == ("mean", 50.0)
    assert (by_f1.metric, by_f1.measured, by_f1.floor_score) == ("f1", 0.5, 0.6)


def test_a_tie_is_no_win():
    assert len(shortfalls([*BLIND, *made("co", "fridge", rmse=50.0, f1=0.6)])) == 2


def test_the_better_of_power_and_head_decides_by_f1():
    assert shortfalls([*BLIND, *made("fhmm", "fridge", rmse=40.0, f1=0.5, f1_head=0.7)]) == []


def test_an_appliance_that_stood_still_and_the_aggregate_do_not_count():
    still = [*made("mean", "kettle", rmse=1.0, f1=None), *made("co", "kettle", rmse=9.0, f1=None)]
    load = [*made("mean", "aggregate", rmse=1.0), *made("co", "aggregate", rmse=9.0)]
    assert shortfalls([*still, *load]) == []


def test_rows_are_for_people():
    rows = shortfall_rows([*BLIND, *made("co", "fridge", rmse=60.0, f1=0.7)])
    assert rows[1:] == [["co", "fridge", "RMSE, W", "60.0", "mean", "50.0"]]


def test_a_mean_over_appliances_leaves_out_the_aggregate_and_what_is_undefined():
    several = [
        *made("co", "fridge", rmse=10.0, reported=30.0),
        *made("co", "kettle", rmse=20.0),
        *made("co", "toaster", rmse=None, reported=99.0),
        *made("co", "aggregate", rmse=500.0),
    ]
    assert mean_over_appliances(several, "rmse") == {"co": 15.0}
    assert mean_over_appliances(several, "rmse", reported=True) == {"co": 30.0}


def test_those_that_never_look_have_no_shortfall_of_their_own():
    seeing = made("co", "fridge", rmse=60.0, f1=0.7)
    never = [*made("prior", "fridge", rmse=80.0, f1=0.1), *made("off", "kettle", rmse=9.0, f1=0.0)]
    assert {(case.attacker, case.metric) for case in shortfalls([*BLIND, *seeing, *never])} == {
        ("co", "rmse")
    }


@pytest.mark.parametrize(
    ("dataset", "short"),
    [("redd", {"co", "fhmm", "nilmformer"}), ("ukdale", {"co", "dae"})],
)
def test_recorded_cards_say_who_is_no_better_than_blind(dataset, short):
    recorded = from_documents(cards.read(RESULTS, "strength_10_training_paper_day"))
    of_one = [card for card in recorded if card.dataset == dataset]
    assert {case.attacker for case in shortfalls(of_one)} == short
