"""`meterveil attack` as a user types it."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from command_line import printed
from meterveil.attackers.registry import ATTACKERS, NETWORKS
from meterveil.bench import results
from meterveil.bench.results import Figure
from meterveil.cli import app

RECORDED = Path(__file__).parents[1] / "results"
HEADING = "REDD house 2, 29 April 2011, attackers trained on 10 days"


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def page_of(folder):
    return (folder / "out/attack/attack.html").read_text()


def figure(**changes):
    return Figure("redd", 2, "paper", **{"threat": "clean", "training": "10 days", **changes})


def test_an_attack_ends_with_figures_and_a_page(meterveil, real_data, tmp_path):
    result = meterveil("attack", "redd", "--data", real_data, "--attackers", "co,mean,off", "--workers", 1)
    assert result.exit_code == 0, result.output
    table = results.read(tmp_path / "out/results")
    assert set(table["threat"]) == {"clean"}
    assert set(table["run"]) == set(results.read_runs(tmp_path / "out/results"))
    page = page_of(tmp_path)
    assert all(f">{head}</h2>" in page for head in (HEADING, "No better than the baselines"))
    assert "102.6" in page  # CO's fridge, and the mean beside it


def test_sub_meters_can_replace_the_mains_and_the_result_names_them(meterveil, real_data, tmp_path):
    words = ("--data", real_data, "--attackers", "co,off", "--workers", 1, "--aggregate", "submeters")
    result = meterveil("attack", "redd", *words)
    assert result.exit_code == 0, result.output
    assert f"{HEADING}, load summed from sub-meters" in printed(result)
    table = results.read(tmp_path / "out/results")
    assert set(table["aggregate"]) == {"submeters"}
    fridge = results.where(table, attacker="co", appliance="fridge", metric="rmse")
    assert fridge["value"].item() < 90.0  # of the mains 102.6


def test_a_crossing_takes_other_houses(meterveil, real_data, tmp_path):
    words = ("--data", real_data, "--attackers", "mean,off", "--workers", 1)
    result = meterveil("attack", "--cross", "redd", *words)
    assert result.exit_code == 0, result.output
    assert "REDD house 2, 10 days, attackers trained on redd 1 and 3" in printed(result)
    rmse = results.where(results.read(tmp_path / "out/results"), metric="rmse")
    assert set(rmse["n_days"]) == {10}


def test_recorded_figures_are_shown_without_data(meterveil, tmp_path):
    result = meterveil("attack", "ukdale", "--recorded", "--results", RECORDED)
    assert result.exit_code == 0, result.output
    page = page_of(tmp_path)
    for heading in (
        "UK-DALE house 1, 18 March 2013, attackers trained on 10 days",
        "UK-DALE house 1, 98 days, attackers trained on 40 days",
        "REFIT house 2, 14 days, attackers trained on ukdale 1",
    ):
        assert f">{heading}</h2>" in page
        assert heading in printed(result)
    assert "REDD" not in page
    [kettle] = [line for line in result.output.splitlines() if line.startswith("co kettle")][:1]
    assert len(kettle.split()) > 4


def test_recorded_figures_are_shown_where_nothing_can_be_fitted(tmp_path):
    results.write(tmp_path / "results", [figure(attacker="co", appliance="fridge", metric="f1", value=0.5)], [])
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'joblib', 'safetensors', 'scipy'])); "
        "from meterveil.cli import app; app(['attack', 'redd', '--recorded'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert f">{HEADING}</h2>" in page_of(tmp_path)


@pytest.mark.parametrize(
    ("missing", "attackers", "words"),
    [
        (("torch", "joblib", "safetensors", "scipy"), "co,dae", "[train]"),
        (("joblib", "safetensors", "scipy"), "co,fhmm", "[attack]"),
        (("torch",), "co,dae", "attacking needs torch;"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(meterveil, monkeypatch, missing, attackers, words):
    monkeypatch.setattr("meterveil.cli.base.find_spec", lambda name: None if name in missing else name)
    result = meterveil("attack", "redd", "--attackers", attackers)
    assert result.exit_code == 2
    assert words in printed(result)


def test_attackers_that_are_not_networks_run_without_torch(real_data, tmp_path):
    quick = ",".join(name for name in ATTACKERS if name not in (*NETWORKS, "fhmm"))
    words = ["attack", "redd", "--attackers", quick, "--workers", "1"]
    code = (
        "from importlib.machinery import PathFinder; found = PathFinder.find_spec; "
        "PathFinder.find_spec = lambda name, *rest: None if name == 'torch' else found(name, *rest); "
        f"from meterveil.cli import app; app({[*words, '--data', str(real_data)]})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "out/attack/attack.html").exists()


def test_a_folder_without_attacks_is_refused(meterveil, tmp_path):
    results.write(tmp_path / "results", [figure(threat="fixed", metric="f1", value=1.0)], [])
    result = meterveil("attack", "redd", "--recorded")
    assert result.exit_code == 2
    assert "holds no attack on redd" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["redd", "--attackers", "hmm"], "no attacker 'hmm'"),
        (["redd", "--training-days", "40"], "has 10 training days"),
        (["redd", "--reserve-days", "40"], "--reserve-days applies to --held-out"),
        (["redd", "--cross", "--reserve-days", "5"], "--reserve-days does not apply to --cross"),
        (["redd", "--cross", "--held-out"], "--held-out does not apply to --cross"),
        (["redd", "--aggregate", "sum"], "no --aggregate 'sum'"),
        (["redd", "--aggregate", "submeters", "--cross"], "--aggregate does not apply to --cross"),
        (["refit"], "no protocol 'refit'"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(meterveil, real_data, tmp_path, words, message):
    result = meterveil("attack", *words, "--data", real_data)
    assert result.exit_code == 2
    assert message in result.output
    assert not list(tmp_path.iterdir())
