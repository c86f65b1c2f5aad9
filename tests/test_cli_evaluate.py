"""`meterveil evaluate` from the outside."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from command_line import printed, refused
from meterveil.bench import results
from meterveil.cli import app
from meterveil.data.synthetic import household


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)], env={"METERVEIL_DATA": ""})


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    places = ("--results", folder / "results", "--out", folder / "out")
    quick = ("--attackers", "co,prior", "--threat", "fixed", "--seeds", 2, "--workers", 1)
    return folder, run("none", "random_equal:3", "--against", "none", *quick, *places)


def test_defences_are_compared_in_one_table_and_on_one_page(compared):
    folder, result = compared
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    [none, more, *_] = [line for line in lines if line[:1] == ["none"]]  # the table is folded
    assert none[1:5] == ["0.40", "100", "no", "bound"]  # F1, leak in percent, and bits
    assert more[-4:] == ["0.0", "0.0", "0/4", "0/4"]
    assert any(line[:1] == ["random_equal:3"] for line in lines)
    assert "synthetic house 1" in result.output
    assert "difference to none" in result.output
    page = (folder / "out" / "evaluate.html").read_text()
    assert "A day with random_equal:3" in page
    assert (folder / "out" / "evaluate.html").resolve().as_uri() in result.output.replace("\n", "")


def test_a_negative_leak_of_a_fixed_attacker_is_shown_as_misled(tmp_path):
    quick = ("--attackers", "co", "--threat", "fixed", "--seeds", 2, "--workers", 1, "--out", tmp_path / "o")
    shown = {name: printed(run(name, *quick, "--results", tmp_path / "r")) for name in ("flat", "none")}
    assert "Misled: a fixed attacker" in shown["flat"]
    assert "misled" not in shown["none"].lower()


def test_the_load_can_be_the_sum_of_the_sub_meters_and_the_charge_any(tmp_path):
    quick = ("--attackers", "co", "--threat", "fixed", "--seeds", 2, "--workers", 1, "--out", tmp_path / "o")
    result = run("none", *quick, "--aggregate", "submeters", "--soc-start", 0.8, "--results", tmp_path / "r")
    assert result.exit_code == 0, result.output
    table = results.read(tmp_path / "r")
    assert set(table["aggregate"]) == {"submeters"}
    assert set(results.where(table, metric="soc_end")["value"]) == {0.8}
    [described] = results.read_runs(tmp_path / "r").values()
    assert described.settings["soc_start"] == 0.8
    assert "total cost" in (tmp_path / "o" / "evaluate.html").read_text()
    assert "load summed from sub-meters" in printed(result)


def test_by_default_nothing_is_recorded_among_the_kept_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("none", "--attackers", "co", "--threat", "fixed", "--seeds", 2, "--workers", 1)
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out/results/synthetic_paper.csv").exists()


def test_every_figure_is_a_row_of_the_table_of_results(compared):
    table = results.read(compared[0] / "results")
    [moved] = results.where(table, defence="random_equal:3", metric="throughput_kwh")["value"]
    assert moved == pytest.approx(3.0, abs=0.3)
    assert set(table["defence"]) == {"none", "random_equal:3", "random_equal:3 minus none"}
    assert set(results.where(table, attacker="prior")["appliance"]) == {"all"}
    assert set(table["run"]) == set(results.read_runs(compared[0] / "results"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("magic",), "no defence and no folder 'magic'"),
        (("flat", "flat"), "flat is named twice"),
        (("flat", "--attackers", "oracle"), "no attacker 'oracle'; known are co, fhmm, dae"),
        (("flat", "--attackers", "prior"), "none of the fixed attackers sees the meter"),
        (("flat", "--threat", "blind"), "no threat model 'blind'; known are fixed and adaptive"),
        (("flat", "--days", "seven"), "no days 'seven'; known are paper and many"),
        (
            ("flat", "--on", "mars"),
            "--on 'mars' is unknown and no file or folder; known are ukdale, redd, synthetic and",
        ),
        (("flat", "--on", "redd"), "no folder of data sets is named; pass --data or set METERVEIL_DATA"),
        (("flat", "--tariff", "cheap"), "no tariff 'cheap'"),
        (("flat", "--choice", "greedy"), "flat is no trained manager, which alone has a choice; leave --choice out"),
        (("flat", "--aggregate", "roof"), "no --aggregate 'roof'; known are mains, submeters, active"),
        (("flat", "--aggregate", "active"), "both read W, so there is no active power to estimate"),
        (("flat", "--against", "nill"), "--against nill is not among the defences; name one of them"),
    ],
)
def test_what_cannot_be_evaluated_is_said_in_one_line(arguments, words, tmp_path):
    result = run("--attackers", "co", *arguments, "--results", tmp_path / "r", "--out", tmp_path / "o")
    assert result.exit_code == 2
    assert words in printed(result)
    assert not list(tmp_path.iterdir())


def test_a_battery_that_can_do_nothing_is_refused(tmp_path):
    path = tmp_path / "battery.json"
    path.write_text('{"charge_w": 0.0, "discharge_w": 0.0}')
    result = run("flat", "--attackers", "co", "--battery", path, "--out", tmp_path / "o")
    assert result.exit_code == 2
    assert "this battery can do nothing: its power is 0 W" in printed(result)


def test_results_that_cannot_be_written_are_refused_before_anything_is_fitted(tmp_path):
    occupied = tmp_path / "results"
    occupied.write_text("mine")
    for words in (["evaluate", "none", "flat"], ["attack", "redd"]):
        result = CliRunner().invoke(app, [*words, "--results", str(occupied), "--out", str(tmp_path / "out")])
        assert result.exit_code == 2, result.output
        assert "is a file; give a folder" in " ".join(result.output.split())


@pytest.fixture(scope="module")
def own_house(tmp_path_factory):
    """Table of a week with a meter and three appliances, one of which is never used."""
    home = household(np.random.default_rng(5), days=7)
    columns = {"Kettle (W)": home.appliances_w["kettle"], "TV_w": home.appliances_w["electronics"], "sauna_w": 0.0}
    path = tmp_path_factory.mktemp("own") / "mine.csv"
    pd.DataFrame({"time": home.minutes, "house_w": home.aggregate_w.round(), **columns}).to_csv(path, index=False)
    return path


def test_defences_are_compared_on_ones_own_sub_metered_house(own_house, tmp_path):
    places = ("--results", tmp_path / "results", "--out", tmp_path / "out")
    quick = ("--attackers", "co", "--seeds", 2, "--copies", 1, "--workers", 1)
    result = run("none", "flat", "--on", own_house, *quick, *places)
    assert result.exit_code == 0, result.output
    assert "Attackers learn kettle, tv from 5 days and read the 2 later ones." in result.output
    assert "left out: sauna" in printed(result)
    assert "mine, 2 days from 20 April 2024 on" in result.output
    table = results.read(tmp_path / "results")
    scores = results.where(table, dataset="mine", days="2024-04-20..2024-04-21", attacker="co", metric="f1")
    assert {*zip(scores.defence, scores.threat, strict=True)} >= {("flat", "fixed"), ("flat", "adaptive")}
    assert {"kettle", "tv"} <= set(scores.appliance)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--appliances", "oven"), "has no column 'oven'; it has time, house_w, Kettle (W)"),
        (("--appliances", "sauna_w"), "was in use for 5 minutes; in use means at least: sauna 50 W"),
        (("--house", 2), "--house does not apply"),
    ],
)
def test_columns_that_cannot_be_evaluated_are_refused(own_house, options, words):
    assert words in refused("evaluate", "none", "--on", own_house, *options)


def test_too_few_days_and_a_meter_without_sub_meters_are_refused(own_house, tmp_path):
    table = pd.read_csv(own_house)
    table.iloc[: 5 * 1440].to_csv(tmp_path / "short.csv", index=False)
    table[["time", "house_w"]].to_csv(tmp_path / "meter.csv", index=False)
    short = refused("evaluate", "none", "--on", tmp_path / "short.csv")
    assert "short has 5 whole days on which the meter and kettle, tv know 80%" in short
    assert "an evaluation needs 7" in short
    meter = refused("evaluate", "none", "--on", tmp_path / "meter.csv")
    assert "meter has no columns of single appliances" in meter
    assert "use meterveil simulate" in meter
    assert "for your own house" in refused("evaluate", "none", "--house", 1)
