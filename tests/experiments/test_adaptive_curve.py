"""Curves of adaptive attackers are measured, recorded and drawn."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from experiments import adaptive_curve
from experiments.adaptive_curve import Curve, Point, figure, measure_curve, recorded, rows
from meterveil.attackers import fitting
from meterveil.attackers.registry import attacker
from meterveil.bench import results
from meterveil.bench.trial import HouseDays, Trial
from meterveil.data.load import load
from meterveil.defenders import defender
from meterveil.defenders.defence import common_setup
from meterveil.errors import InputError

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


def test_every_draw_masks_the_same_day_differently_and_keeps_the_truth(home, curve):
    first, second = curve.masked_days(home)
    day = home.day(curve.trial.test.days[0])
    assert not np.array_equal(first.aggregate_w, second.aggregate_w)
    for masked in (first, second):
        np.testing.assert_array_equal(masked.appliances_w["kettle"], day.appliances_w["kettle"])
        np.testing.assert_array_equal(masked.appliances_w["aggregate"], day.aggregate_w)


def test_a_curve_has_a_point_for_each_number_of_copies(home, curve, tmp_path):
    measure_curve(curve, [Point(0), Point(2)], {KEY: home}, ["co"], tmp_path)
    points = recorded(tmp_path, "redd", "random", "copies").points
    labels = points[["threat", "training", "seeds", "n_days", "step"]].drop_duplicates()
    assert sorted(labels.itertuples(index=False, name=None)) == [
        ("adaptive", "3 days x 2 copies", 2, 1, 2),
        ("fixed", "3 days", 2, 1, 0),
    ]
    fridge = results.where(results.read(tmp_path), attacker="co", appliance="fridge", metric="rmse")
    rmse = dict(zip(fridge["threat"], fridge["value"], strict=True))
    assert rmse["fixed"] > rmse["clean"]
    other = dataclasses.replace(curve, trial=dataclasses.replace(curve.trial, seed=1))
    keys = {each.run(Point(2), {KEY: home}, ["co"]).key for each in (curve, other)}
    assert len(keys | set(points["run"])) == 3


def test_a_curve_over_epochs_trains_networks_that_long_and_never_twice(home, curve, monkeypatch):
    quick = dataclasses.replace(attacker("dae"))
    quick = dataclasses.replace(quick, recipe=dataclasses.replace(quick.recipe, windows=8))
    monkeypatch.setattr(fitting, "attacker", lambda name: quick)
    houses, point = {KEY: home}, Point(1, epochs=1)
    figures = curve.measure(point, houses, ["dae"], "", workers=1)
    assert {figure.training for figure in figures} == {"3 days x 1 copies, 1 epochs"}
    monkeypatch.setattr(type(quick), "fit", None)
    assert curve.measure(point, houses, ["dae"], "", workers=1) == figures


def test_recorded_curves_are_drawn_along_copies_and_along_epochs(tmp_path, monkeypatch, capsys):
    saved = []
    monkeypatch.setattr(adaptive_curve, "save", lambda drawn, path: saved.append(path.name))
    words = ["redd", "random_equal", "--picture", "--results", str(RESULTS)]
    adaptive_curve.main(words)
    adaptive_curve.main([*words, "--epochs", "3"])
    assert saved == [f"redd-2-paper-random_equal-{steps}.png" for steps in ("copies", "epochs")]
    assert "seq2point\t12 copies" in capsys.readouterr().out
    curve = recorded(RESULTS, "redd", "random_equal_shipped_signatures", "copies")
    assert rows(curve)[1][:2] == ["fhmm", "no defence"]
    drawn = figure(curve, "random_equal")
    assert "REDD house 2, 29 April 2011, attackers trained on 10 days" in drawn.layout.title.text
    assert drawn.layout.xaxis.ticktext == ("0", "1", "3", "12")
    assert len(drawn.data) == 3 * 5  # two attackers with and without the defence, and the prior
    with pytest.raises(InputError, match="no curve of flat"):
        recorded(RESULTS, "redd", "flat", "copies")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--attackers", "co", "dae"], "co is not trained in epochs"),
        (["--attackers", "dae", "--copies", "1", "2"], "two curves"),
    ],
)
def test_curves_that_cannot_be_meant_are_refused_before_anything_is_fitted(words, message):
    with pytest.raises(InputError, match=message):
        adaptive_curve.main(["redd", "flat", "--epochs", "2", *words])
