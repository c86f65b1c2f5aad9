"""`meterveil train --method ddql_flat` and `ddql_mi` from the outside."""

import json
import shutil

import pytest

from command_line import refused, run, said
from meterveil.defenders.ddql.run import load_ddql

QUICK = ("--method", "ddql_flat", "--days", "2", "--budget-days", "3")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("train") / "run"
    result = run("train", "synthetic", *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    return out, result


def test_a_training_leaves_a_run_that_says_what_it_is(trained):
    out, result = trained
    document = load_ddql(out).document
    assert document["options"]["method"] == "ddql_flat"
    assert document["asked"]["source"] == "synthetic"
    assert document["curve"][-1]["days"] == 3
    assert document["figures"]["training_seconds"] > 0.0
    assert "meter on training days, standard deviation" in said(result)
    assert {path.suffix for path in out.iterdir()} == {".json", ".safetensors"}


def test_an_unfinished_training_goes_on_by_itself_and_a_finished_one_does_not(trained, tmp_path):
    document = json.loads((trained[0] / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    refused = run("train", "synthetic", *QUICK, "--out", tmp_path)
    assert refused.exit_code == 2
    assert "holds an unfinished training; add --resume" in said(refused)
    resumed = run("train", "--resume", "--out", tmp_path)
    assert resumed.exit_code == 0, resumed.output
    policies = [(folder / "policy.safetensors").read_bytes() for folder in (tmp_path, trained[0])]
    assert policies[0] == policies[1]
    again = run("train", "--resume", "--out", tmp_path)
    assert again.exit_code == 2
    assert "is finished; there is nothing to resume" in said(again)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "ddql"), "no method 'ddql'; known are ppo, ddql_flat, ddql_mi"),
        (("--method", "ddql_mi", "--probe", "cnn"), "ddql_mi takes no --probe; that is for --method ppo"),
        (("--method", "ddql_mi", "--budget-days", "0"), "a budget of 0 days is none"),
        (("--method", "ddql_mi", "--preset", "slow"), "no preset 'slow'; known are paper, fast"),
        (("--method", "ddql_mi", "--lambda", "2"), "lambda is 2; allowed is 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(tmp_path, arguments, words):
    assert words in refused("train", *arguments, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_run_of_another_method_is_left_alone(tmp_path):
    (tmp_path / "run.json").write_text('{"format": "meterveil-run-1", "status": "finished"}')
    words = refused("train", "synthetic", *QUICK, "--out", tmp_path)
    assert "holds a training by another method (meterveil-run-1); give --out another folder" in words
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_run_is_simulated_with_its_own_battery_and_tariff_where_none_are_given(trained, tmp_path):
    own = shutil.copytree(trained[0], tmp_path / "own")
    document = json.loads((own / "run.json").read_text())
    document["battery"] |= {"capacity_kwh": 6.0, "budget_kwh": None}
    document["tariff"] |= {"prices": [0.1, 0.2]}
    (own / "run.json").write_text(json.dumps(document))
    words = ("simulate", "--defence", own, "--start", "2024-04-20", "--out", tmp_path / "out")
    asked = ("--capacity-kwh", 5, "--tariff", "paper")
    for more, capacity_kwh, night in (((), 6.0, 0.1), (asked, 5.0, 0.1317)):
        result = run(*words, *more)
        assert result.exit_code == 0, result.output
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        assert summary["battery"]["capacity_kwh"] == capacity_kwh
        assert summary["battery"]["budget_kwh"] is None
        assert summary["tariff"]["bands"][0]["price"] == night
        assert summary["total"]["throughput_kwh"] > 0.0
