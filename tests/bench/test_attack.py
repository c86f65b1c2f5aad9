"""Attacker strength, and the tables and pictures that show it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from meterveil.bench import results
from meterveil.bench.attack import read, run_of, strength_figures
from meterveil.bench.attack_page import (
    mean_over_appliances,
    shortfall_rows,
    shortfalls,
    strength_chart,
    strength_rows,
    strength_tables,
)
from meterveil.bench.results import Figure
from meterveil.bench.trial import crossing_trials, own_house
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.plots.attack import predictions_figure

KEY = ("redd", 2)
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def redd(real_data):
    return load(real_data / "redd", 2)


def table(*figures):
    return results.to_table(figures)


def scored(name, appliance, **scores):
    """List the figures of an attacker on an appliance of REDD's paper day."""
    labels = {"threat": "clean", "training": "10 days", "attacker": name, "appliance": appliance}
    return [Figure("redd", 2, "paper", metric=metric, value=value, **labels) for metric, value in scores.items()]


BLIND = [*scored("mean", "fridge", rmse=50.0, f1=0.6), *scored("off", "fridge", rmse=70.0, f1=0.0)]


def test_the_papers_day_is_scored_and_shown_beside_the_papers_figures(redd):
    trial = own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test[:1], ("fridge", "microwave"))
    houses = {KEY: redd}
    run = run_of(trial, houses, ["co", "off"])
    figures = strength_figures(read(trial, houses, ["co", "off"], workers=1), run.key)
    found = {(figure.attacker, figure.appliance, figure.metric): figure for figure in figures}
    assert found["co", "fridge", "rmse"].value < found["off", "fridge", "rmse"].value
    assert found["off", "fridge", "f1"].value == 0.0
    rows = {row[0]: row for row in strength_rows(table(*figures))}
    assert (rows["co fridge"][2], rows["co aggregate"][2]) == ("77.3", "69.7")
    recorded = results.read(RESULTS).set_index(list(results.IDENTITY))["value"]
    for figure in figures:  # those of the appliances depend on which others are learned with them
        if figure.attacker == "off":
            identity = tuple(getattr(figure, name) for name in results.IDENTITY)
            assert f"{figure.value:.6g}" == f"{recorded[identity]:.6g}"


def test_several_days_give_a_mean_and_its_spread(redd):
    trial = own_house(REDD_HOUSE2, REDD_HOUSE2.training, REDD_HOUSE2.test, ("fridge",), days="held_out")
    figures = strength_figures(read(trial, {KEY: redd}, ["off"], workers=1), "")
    [mae] = [figure for figure in figures if (figure.metric, figure.appliance) == ("mae", "fridge")]
    truth = [np.nanmean(redd.day(day).appliances_w["fridge"]) for day in REDD_HOUSE2.test]
    assert mae.value == pytest.approx(np.mean(truth), rel=1e-3)
    assert mae.spread == pytest.approx(np.std(truth, ddof=1), rel=1e-2)
    assert strength_rows(table(*figures))[0] == ["attacker, target", "RMSE W", "F1", "event F1"]


def test_an_attacker_reads_a_house_that_it_never_saw(real_data):
    trial = crossing_trials("ukdale")[0]
    figures = strength_figures(read(trial, trial.load_houses(real_data), ["co", "off"], workers=1), "")
    found = {(figure.attacker, figure.appliance, figure.metric): figure for figure in figures}
    kettle = found["co", "kettle", "f1"]
    assert kettle.value > 0.5 > found["off", "kettle", "f1"].value
    assert (kettle.dataset, kettle.house, kettle.n_days, kettle.training) == ("ukdale", 2, 14, "ukdale 1")


@pytest.mark.parametrize(
    ("scores", "short"),
    [
        ({"rmse": 49.0, "f1": 0.61}, []),
        ({"rmse": 60.0, "f1": 0.7}, [("rmse", "mean", 50.0)]),
        ({"rmse": 50.0, "f1": 0.6}, [("rmse", "mean", 50.0), ("f1", "mean", 0.6)]),  # a tie is not enough
        ({"rmse": 40.0, "f1": 0.5, "f1_head": 0.7}, []),  # the better output counts
        ({"rmse": 60.0, "f1": None}, []),  # not used on that day
    ],
)
def test_an_attacker_has_to_beat_both_baselines(scores, short):
    cases = shortfalls(table(*BLIND, *scored("co", "fridge", **scores)))
    assert [(case.metric, case.baseline, case.baseline_value) for case in cases] == short


def test_neither_the_aggregate_nor_other_predictors_fall_short():
    aggregate = [*scored("mean", "aggregate", rmse=1.0), *scored("co", "aggregate", rmse=9.0)]
    assert shortfalls(table(*BLIND, *aggregate, *scored("prior", "fridge", rmse=80.0, f1=0.1))) == []
    rows = shortfall_rows(table(*BLIND, *scored("co", "fridge", rmse=60.0, f1=0.7)))
    assert rows[1:] == [["co", "fridge", "RMSE W", "60.0", "mean", "50.0"]]


@pytest.mark.parametrize(("dataset", "short"), [("redd", {"co", "fhmm", "nilmformer"}), ("ukdale", {"co", "dae"})])
def test_recorded_figures_show_who_does_not_beat_the_baselines(dataset, short):
    tables = strength_tables(results.read(RESULTS), dataset)
    [paper] = [t for t in tables if (t.iloc[0]["days"], t.iloc[0]["aggregate"]) == ("paper", "mains")]
    assert {case.attacker for case in shortfalls(paper)} == short


def test_a_mean_over_appliances_leaves_out_the_aggregate_and_what_is_undefined():
    several = table(
        *scored("co", "fridge", rmse=10.0),
        *scored("co", "kettle", rmse=20.0),
        *scored("co", "toaster", rmse=None),
        *scored("co", "aggregate", rmse=500.0),
    ).assign(spread=[2.0, np.nan, np.nan, 9.0])
    assert mean_over_appliances(several, "rmse") == {"co": 15.0}
    assert mean_over_appliances(several, "rmse", "spread") == {"co": 2.0}


def test_a_strength_chart_has_the_papers_bars_and_the_baselines_lines():
    names = ("newcomer", "bert4nilm", "co")
    figures = [figure for name in names for figure in scored(name, "fridge", rmse=50.0)]
    chart = strength_chart(table(*figures, *scored("mean", "fridge", rmse=60.0)))
    assert [(bar.name, bar.x) for bar in chart.data] == [
        ("measured", ("CO", "BERT4NILM", "newcomer")),
        ("paper", ("CO", "BERT4NILM")),
    ]
    assert chart.data[1].y[0] == 77.27
    assert [line.y0 for line in chart.layout.shapes] == [60.0]


def test_a_day_has_a_panel_for_each_attacker_and_appliance():
    minutes = pd.date_range("2024-05-01", periods=1440, freq="min", tz="Europe/London")
    flat = {"fridge": np.full(1440, 80.0), "kettle": np.zeros(1440)}
    figure = predictions_figure(minutes, flat, {"co": flat, "fhmm": flat})
    assert [trace.name for trace in figure.data] == [*["true", "CO"] * 2, *["true", "FHMM"] * 2]
    assert sum(bool(trace.showlegend) for trace in figure.data) == 3
