"""`meterveil train --method ddql_flat` and `ddql_mi` from the outside."""

import json

import pytest
from typer.testing import CliRunner

from meterveil.cli import app
from meterveil.defenders.ddql.run import load_ddql

QUICK = ("--method", "ddql_flat", "--days", "2", "--budget-days", "3")


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"METERVEIL_DATA": ""})


def said(result):
    return " ".join(result.output.split())


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
    result = run("train", *arguments, "--out", tmp_path / "run")
    assert result.exit_code == 2, result.output
    assert words in said(result)
    assert not (tmp_path / "run").exists()
