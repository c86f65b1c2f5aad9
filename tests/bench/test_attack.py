"""Attacker strength, adaptive curves, and the tables and pictures that show them."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from meterveil.attackers import fitting
from meterveil.attackers.registry import attacker
from meterveil.bench import results
from meterveil.bench.attack import (
    Curve,
    Point,
    check_epochs,
    masked_test_days,
    networks,
    point_figures,
    read,
    run_of,
    strength_figures,
)
from meterveil.bench.attack_page import strength_chart
from meterveil.bench.attack_tables import (
    curve_rows,
    curve_tables,
    mean_over_appliances,
    shortfall_rows,
    shortfalls,
    strength_rows,
    strength_tables,
)
from meterveil.bench.results import Figure
from meterveil.bench.trial import HouseDays, Trial, crossing_trials, own_house
from meterveil.data.load import load
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.defenders import defender
from meterveil.defenders.defence import common_setup
from meterveil.errors import InputError
from meterveil.plots.attack import Score, adaptive_figure, predictions_figure

KEY = ("redd", 2)
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def home():
    return load("synthetic", days=4)


@pytest.fixture(scope="module")
def curve(home):
    days = tuple(home.days())
    trial = Trial((HouseDays(*KEY, days[:3]),), HouseDays(*KEY, days[3:]), ("fridge", "kettle"), "paper")
    return Curve(trial, "random", defender("random"), common_setup([]), draws=2)


@pytest.fixture(scope="module")
def redd(real_data):
    return load(real_data / "redd", 2)


def table(*figures):
    return results.to_table(figures)


def scored(name, appliance, **scores):
    """List the figures of an attacker on an appliance of REDD's paper day."""
    labels = {"threat": "clean", "training": "10 days", "attacker": name, "appliance": appliance}
    return [
        Figure("redd", 2, "paper", metric=metric, value=value, **labels) for metric, value in scores.items()
    ]


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


def test_every_draw_masks_the_same_day_differently_and_keeps_the_truth(home, curve):
    first, second = masked_test_days(curve, home)
    day = home.day(curve.trial.test.days[0])
    assert not np.array_equal(first.aggregate_w, second.aggregate_w)
    for masked in (first, second):
        np.testing.assert_array_equal(masked.appliances_w["kettle"], day.appliances_w["kettle"])
        np.testing.assert_array_equal(masked.appliances_w["aggregate"], day.aggregate_w)


def test_a_curve_has_a_point_for_each_number_of_copies(home, curve, tmp_path):
    houses = {KEY: home}
    names = ("co", "prior")
    clean = run_of(curve.trial, houses, names)
    figures, runs = strength_figures(read(curve.trial, houses, names, workers=1), clean.key), [clean]
    for point in (Point(0), Point(2)):
        runs.append(curve.run(point, houses, ["co"]))
        figures += point_figures(curve, point, houses, ["co"], runs[-1].key, workers=1)
    results.write(tmp_path, figures, runs)
    [shown] = curve_tables(results.read(tmp_path), results.read_runs(tmp_path), "redd")
    assert shown.steps == "copies"
    labels = shown.points[["threat", "training", "seeds", "n_days"]].drop_duplicates()
    assert sorted(labels.itertuples(index=False, name=None)) == [
        ("adaptive", "3 days x 2 copies", 2, 1),
        ("fixed", "3 days", 2, 1),
    ]
    rows = curve_rows(shown)
    assert [row[0] for row in rows[1:]] == [
        "co, no defence",
        "co, 0 copies",
        "co, 2 copies",
        "prior, no defence",
    ]
    assert float(rows[2][1]) > float(rows[1][1])  # RMSE with and without the defence
    assert [run.key for run in runs] == list(dict.fromkeys(run.key for run in runs))
    other = dataclasses.replace(curve, trial=dataclasses.replace(curve.trial, seed=1))
    assert other.run(Point(2), houses, ["co"]).key != runs[-1].key


def test_a_curve_over_epochs_trains_networks_that_long_and_never_twice(home, curve, monkeypatch):
    quick = dataclasses.replace(attacker("dae"))
    quick = dataclasses.replace(quick, recipe=dataclasses.replace(quick.recipe, windows=8))
    monkeypatch.setattr(fitting, "attacker", lambda name: quick)
    houses, point = {KEY: home}, Point(1, epochs=1)
    figures = point_figures(curve, point, houses, ["dae"], "", workers=1)
    assert {figure.training for figure in figures} == {"3 days x 1 copies, 1 epochs"}
    monkeypatch.setattr(type(quick), "fit", None)
    assert point_figures(curve, point, houses, ["dae"], "", workers=1) == figures


def test_attackers_without_epochs_are_refused_before_anything_is_fitted():
    assert networks(["co", "dae", "mean"]) == ("dae",)
    with pytest.raises(InputError, match="co, mean is not trained in epochs; networks are dae, seq2point"):
        check_epochs(["co", "dae", "mean"])


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


@pytest.mark.parametrize(
    ("dataset", "short"), [("redd", {"co", "fhmm", "nilmformer"}), ("ukdale", {"co", "dae"})]
)
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


def test_a_curve_shows_the_clean_score_and_the_prior():
    curves = {"f1": {"co": {0: Score(0.1), 12: Score(0.3, 0.05)}}}
    figure = adaptive_figure("copies", curves, {"f1": {"co": 0.7}}, {"f1": 0.2})
    assert len(figure.data) == 3
    assert figure.layout.xaxis.ticktext == ("0", "12")
