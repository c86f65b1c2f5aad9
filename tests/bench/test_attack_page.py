"""`meterveil attack` as a user types it, and the page and pictures that it leaves."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from meterveil.attackers.registry import ATTACKERS
from meterveil.bench import cards
from meterveil.bench.attack_page import strength_chart
from meterveil.bench.cards import Card
from meterveil.cli import app
from meterveil.cli.attack import _names
from meterveil.cli.base import WITHOUT_TORCH
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.plots.adaptive import adaptive_figure
from meterveil.plots.attack import Score, predictions_figure

HEADING = "REDD house 2, 29 April 2011, learned from 10 other days"


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def said(result):
    return " ".join(result.output.split())


def test_an_attack_ends_with_cards_a_page_and_who_is_no_better_than_blind(meterveil, real_data, tmp_path):
    result = meterveil("attack", "redd", "--data", real_data, "--attackers", "co,mean,off", "--workers", 1)
    assert result.exit_code == 0, result.output
    assert len(cards.read(tmp_path / "out/results", "strength_10_training_paper_day")) > 20
    page = (tmp_path / "out/attack/attack.html").read_text()
    assert all(f"<h2>{head}</h2>" in page for head in (HEADING, "No better than blind"))
    assert "<td>102.6</td>" in page  # CO's fridge, and the mean beside it


def test_sub_meters_can_stand_in_for_the_mains_and_the_result_says_so(meterveil, real_data, tmp_path):
    words = ("--data", real_data, "--attackers", "co,off", "--workers", 1, "--aggregate", "submeters")
    result = meterveil("attack", "redd", *words)
    assert result.exit_code == 0, result.output
    assert f"{HEADING}, load summed from sub-meters" in said(result)
    assert (
        f"<h2>{HEADING}, load summed from sub-meters</h2>"
        in (tmp_path / "out/attack/attack.html").read_text()
    )
    found = cards.read(tmp_path / "out/results", "strength_10_training_paper_day_submeters")
    assert {card["settings"]["aggregate"] for card in found} == {"submeters"}
    assert found[0]["settings"]["summed"] == list(REDD_HOUSE2.targets)
    [fridge] = [card for card in found if (card["row"], card["column"]) == ("co fridge", "rmse")]
    assert fridge["measured"] < 90.0  # of the mains 102.6


def test_a_crossing_takes_other_houses(meterveil, real_data, tmp_path):
    words = ("--data", real_data, "--attackers", "mean,off", "--workers", 1)
    result = meterveil("attack", "--cross", "redd", *words)
    assert result.exit_code == 0, result.output
    assert "REDD house 2, 10 days, learned from REDD house 1 and REDD house 3" in said(result)
    found = cards.read(tmp_path / "out/results")
    assert {card["n_days"] for card in found if card["column"] == "rmse"} == {10}


def test_an_adaptive_curve_ends_with_cards_and_a_page(meterveil, real_data, tmp_path):
    words = ("--data", real_data, "--attackers", "co", "--workers", 1)
    result = meterveil("attack", "redd", "--adaptive", "random", "--copies", "0,1", *words)
    assert result.exit_code == 0, result.output
    assert f"{HEADING}, behind random" in said(result)
    assert "co, 1 copies" in result.output
    assert "a leak below 0: such an attacker is misled" in said(result)
    assert "masked copies of the training days" in (tmp_path / "out/attack/adaptive.html").read_text()
    assert cards.read(tmp_path / "out/results", "adaptive_random_10_training_1_days")


def test_recorded_cards_are_shown_without_data(meterveil, tmp_path):
    results = Path(__file__).parents[2] / "results"
    result = meterveil("attack", "ukdale", "--recorded", "--results", results)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out/attack/attack.html").read_text()
    for heading in (
        "UK-DALE house 1, 18 March 2013, learned from 10 other days",
        "UK-DALE house 1, 98 days, learned from 40 other days",
        "REFIT house 2, 14 days, learned from UK-DALE house 1",
    ):
        assert f"<h2>{heading}</h2>" in page
        assert heading in said(result)
    assert "REDD" not in page
    assert "strength_" not in result.output
    [kettle] = [line for line in result.output.splitlines() if line.startswith("co kettle")][:1]
    assert len(kettle.split()) > 4


def test_a_recorded_curve_is_shown_along_copies_and_along_epochs(meterveil):
    results = Path(__file__).parents[2] / "results"
    result = meterveil("attack", "redd", "--recorded", "--results", results)
    assert result.exit_code == 0, result.output
    assert said(result).count(f"{HEADING}, behind random equal") == 2
    assert "seq2point, 12 copies" in result.output
    assert "seq2point, 30 epochs" in result.output


def test_recorded_cards_are_drawn_where_nothing_can_be_fitted(tmp_path):
    cards.write(tmp_path / "results", [Card("strength_1", "co fridge", "f1", "redd", measured=0.5)])
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'joblib', 'safetensors'])); "
        "from meterveil.cli import app; app(['attack', 'redd', '--recorded'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert "<h2>REDD, one day</h2>" in (tmp_path / "out/attack/attack.html").read_text()


def test_a_curve_over_epochs_takes_the_networks_unless_some_are_named():
    assert _names("", in_epochs=True) == ("dae", "seq2point", "electricity", "bert4nilm", "nilmformer")
    assert _names("dae, dae", in_epochs=True) == ("dae",)
    assert _names("", in_epochs=False) == tuple(ATTACKERS)


def test_without_the_extra_the_attack_says_how_to_get_it(meterveil, monkeypatch):
    monkeypatch.setattr("meterveil.cli.base.find_spec", lambda name: None)
    result = meterveil("attack", "redd")
    assert result.exit_code == 2
    assert "pip install -c constraints.txt -e '.[train]'" in result.output


def test_a_network_asks_for_torch_and_only_for_that(meterveil, monkeypatch):
    monkeypatch.setattr("meterveil.cli.base.find_spec", lambda name: None if name == "torch" else name)
    result = meterveil("attack", "redd", "--attackers", "co,dae")
    assert result.exit_code == 2
    assert "attacking needs torch;" in result.output


def test_attackers_that_are_no_networks_run_without_torch(real_data, tmp_path):
    words = ["attack", "redd", "--attackers", ",".join(sorted(WITHOUT_TORCH - {"fhmm"})), "--workers", "1"]
    code = (
        "from importlib.machinery import PathFinder; found = PathFinder.find_spec; "
        "PathFinder.find_spec = lambda name, *rest: None if name == 'torch' else found(name, *rest); "
        f"from meterveil.cli import app; app({[*words, '--data', str(real_data)]})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "out/attack/attack.html").exists()


def test_nothing_recorded_is_said(meterveil, tmp_path):
    cards.write(tmp_path / "results", [Card("other", "r", "f1", "redd", measured=1.0)])
    result = meterveil("attack", "redd", "--recorded")
    assert result.exit_code == 2
    assert "holds no attack on redd" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["redd", "--attackers", "hmm"], "there is no attacker 'hmm'; known are co"),
        (["redd", "--training-days", "40"], "has 10 days to learn from"),
        (["redd", "--reserve-days", "40"], "--reserve-days is for --held-out"),
        (["redd", "--cross", "--reserve-days", "5"], "--reserve-days does not apply to --cross"),
        (["redd", "--copies", "3"], "--copies is for --adaptive alone"),
        (["redd", "--epochs", "3"], "--epochs is for --adaptive alone"),
        (["redd", "--recorded", "--adaptive", "flat"], "--adaptive does not apply to --recorded"),
        (["redd", "--adaptive", "flat", "--epochs", "2", "--attackers", "dae,co"], "co is not trained in"),
        (["redd", "--cross", "--held-out"], "--held-out does not apply to --cross"),
        (["redd", "--adaptive", "shout"], "there is no defence 'shout'"),
        (["redd", "--adaptive", "flat", "--copies", "many"], "--copies 'many' is no list of numbers"),
        (["redd", "--adaptive", "flat", "--copies", "1,2", "--epochs", "3"], "would be two curves"),
        (["redd", "--aggregate", "sum"], "--aggregate 'sum' is unknown"),
        (["redd", "--aggregate", "submeters", "--cross"], "--aggregate does not apply to --cross"),
        (["redd", "--aggregate", "submeters", "--adaptive", "flat"], "--aggregate does not apply to --adap"),
        (["refit"], "there is no protocol 'refit'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(meterveil, real_data, tmp_path, words, message):
    result = meterveil("attack", *words, "--data", real_data)
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.iterdir())


def test_a_strength_chart_has_the_papers_bars_and_the_floors_lines():
    made = [
        Card("strength", f"{name} fridge", column, "redd", measured=value, reported=reported)
        for name, column, value, reported in (
            ("co", "rmse", 50.0, 77.0),
            ("mean", "rmse", 60.0, None),
            ("co", "f1", 0.5, 0.8),
        )
    ]
    figure = strength_chart(made)
    assert [(bar.name, bar.y[0]) for bar in figure.data] == [
        ("measured", 50.0),
        ("paper", 77.0),
        ("measured", 0.5),
        ("paper", 0.8),
    ]
    assert [line.y0 for line in figure.layout.shapes] == [60.0]


def test_a_strength_chart_shows_everyone_who_was_measured_the_papers_first():
    names = ("newcomer", "bert4nilm", "another", "co")
    made = [Card("strength", f"{name} fridge", "f1", "redd", measured=0.5) for name in names]
    assert strength_chart(made).data[0].x == ("CO", "BERT4NILM", "newcomer", "another")


def test_a_day_has_a_panel_for_each_attacker_and_appliance():
    minutes = pd.date_range("2024-05-01", periods=1440, freq="min", tz="Europe/London")
    flat = {"fridge": np.full(1440, 80.0), "kettle": np.zeros(1440)}
    figure = predictions_figure(minutes, flat, {"co": flat, "fhmm": flat})
    assert [trace.name for trace in figure.data] == [
        "true",
        "CO",
        "true",
        "CO",
        "true",
        "FHMM",
        "true",
        "FHMM",
    ]
    assert sum(bool(trace.showlegend) for trace in figure.data) == 3


def test_a_curve_shows_the_clean_score_and_the_floor():
    curves = {"f1": {"co": {0: Score(0.1), 12: Score(0.3, 0.05)}}}
    figure = adaptive_figure("copies", curves, {"f1": {"co": 0.7}}, {"f1": 0.2})
    assert [trace.name for trace in figure.data] == ["CO", "CO without defence", "prior (never looks)"]
    assert figure.layout.xaxis.ticktext == ("0", "12")
