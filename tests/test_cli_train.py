"""`meterveil train` and `meterveil export` from the outside."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import meterveil
from command_line import refused, run, said
from meterveil.core.decoys import Library
from meterveil.data import signatures

QUICK = ("--probe", "identity", "--days", "2", "--budget-days", "12")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("train") / "run"
    result = run("train", "synthetic", *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    return out, result


def test_a_training_leaves_a_run_that_says_what_it_is(trained):
    out, result = trained
    document = json.loads((out / "run.json").read_text())
    assert document["status"] == "finished"
    assert document["options"]["probe"] == "identity"
    assert document["options"]["weight"] == 1.0
    assert document["options"]["preset"]["budget_days"] == 12.0
    assert len(document["days"]) == 2
    assert document["figures"]["minutes"] >= 12 * 1440
    assert {path.suffix for path in out.iterdir() if path.is_file()} == {".json", ".safetensors"}
    assert "moved on a training day" in said(result)
    assert out.resolve().as_uri() in result.output.replace("\n", "")


def test_what_is_exported_loads_and_carries_the_card(trained, tmp_path):
    result = run("export", trained[0], "--out", tmp_path / "bundle")
    assert result.exit_code == 0, result.output
    bundle = meterveil.load_bundle(tmp_path / "bundle")
    assert bundle.library.n_actions == bundle.policy.n_actions == 21
    assert bundle.card["asked"]["source"] == "synthetic"


def test_a_trained_manager_is_simulated_without_torch_and_with_its_own_signatures_alone(trained, tmp_path):
    place = ("--start", "2024-04-20", "--out", str(tmp_path))
    words = ["simulate", "--defence", str(trained[0]), *place]
    code = (
        f"import sys; from meterveil.cli import app; app({words!r}, standalone_mode=False); "
        "assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["defence"] == str(trained[0])
    assert summary["library"]["digest"] == json.loads((trained[0] / "run.json").read_text())["library"]
    assert summary["total"]["throughput_kwh"] > 1.0
    other = tmp_path / "other.json"
    other.write_text(Library.of([("lamp", [60.0] * 8)], source="by hand").to_json())
    assert "signatures that differ" in refused(*words, "--library", other)


def test_a_bundle_is_simulated_as_the_run_that_it_was_exported_from(trained, tmp_path):
    bundle = tmp_path / "bundle"
    assert run("export", trained[0], "--out", bundle).exit_code == 0
    totals = []
    for defence in (trained[0], bundle):
        place = ("--start", "2024-04-20", "--out", tmp_path / "out")
        assert run("simulate", "--defence", defence, *place).exit_code == 0
        totals.append(json.loads((tmp_path / "out" / "summary.json").read_text())["total"])
    assert totals[0] == totals[1]


def test_days_that_a_defence_was_trained_on_are_named(trained, tmp_path):
    seen, several, unseen = (
        said(run("simulate", "--defence", trained[0], "--out", tmp_path, "--start", *days))
        for days in (["2024-04-15"], ["2024-04-16", "--days", 3], ["2024-04-20"])
    )
    assert "note: this defence was trained on 2024-04-15; its last training day is 2024-04-16" in seen
    assert "trained on 1 of these 3 days" in several
    assert "trained on" not in unseen


def test_a_finished_training_is_not_resumed_but_may_be_replaced(trained):
    again = run("train", "--resume", "--out", trained[0])
    assert again.exit_code == 2
    assert "is finished; there is nothing to resume" in said(again)
    before = (trained[0] / "policy.safetensors").read_bytes()
    assert run("train", "synthetic", *QUICK, "--seed", 1, "--out", trained[0]).exit_code == 0
    assert (trained[0] / "policy.safetensors").read_bytes() != before


def test_an_unfinished_training_is_not_overwritten(trained, tmp_path):
    document = json.loads((trained[0] / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    result = run("train", "synthetic", *QUICK, "--out", tmp_path)
    assert result.exit_code == 2
    assert "holds an unfinished training; add --resume, or give --out another folder" in said(result)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--probe", "oracle"), "no probe 'oracle'; known are transformer, lstm, cnn, identity"),
        (("--preset", "slow"), "no preset 'slow'; known are paper, fast"),
        (("--lambda", "1.5"), "lambda is 1.5; allowed is 0"),
        (("--lambda", "-0.1"), "lambda is -0.1; allowed is 0"),
        (("--lambda", "nan"), "lambda is nan; allowed is 0"),
        (("--choice", "lucky"), "no choice 'lucky'; known are sampled, greedy"),
        (("--budget-days", "0"), "a budget of 0 days is none"),
        (("--resume",), "holds no training"),
        (("redd",), "no folder of data sets is named; pass --data or set METERVEIL_DATA"),
        (("--library", "{tmp}/none.json"), "cannot read"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(tmp_path, arguments, words):
    given = [part.replace("{tmp}", str(tmp_path)) for part in arguments]
    assert words in refused("train", *given, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_battery_that_can_do_nothing_or_too_little_is_refused(tmp_path):
    weak = tmp_path / "battery.json"
    weak.write_text('{"charge_w": 500, "discharge_w": 500}')
    words = ("train", "synthetic", *QUICK, "--battery", weak, "--out", tmp_path / "run")
    assert "the battery 500 W; leave it out, or accept that its top is cut off (--clip)" in refused(*words)
    for settings in ({"budget_kwh": 0.0}, {"charge_w": 0.0, "discharge_w": 0.0}):
        weak.write_text(json.dumps(settings))
        assert "this battery can do nothing" in refused(*words)
        assert "this battery can do nothing" in refused(*words[:2], "--method", "ddql_flat", *words[-4:])


def test_a_signature_longer_than_a_day_is_refused(tmp_path):
    library = tmp_path / "library.json"
    library.write_text(Library.of([("heater", [900.0] * 1440)], source="by hand").to_json())
    document = json.loads(library.read_text())
    document["signatures"][0]["watts"].append(900.0)
    library.write_text(json.dumps(document))
    for verb in ("train", "simulate"):
        words = refused(verb, "--library", library, "--out", tmp_path / "run")
        assert "has shape (1441,); allowed are 1 to 1440 minutes" in words


def test_a_library_that_was_altered_after_it_was_built_is_refused(tmp_path):
    built = signatures.save(signatures.read(), tmp_path / "library.json")
    document = json.loads(built.read_text())
    document["signatures"][0]["watts"][0] += 1.0
    built.write_text(json.dumps(document))
    words = refused("train", "synthetic", *QUICK, "--library", built, "--out", tmp_path / "run")
    assert "does not match its sha256, so it was altered after it was built" in words


def test_a_folder_with_a_run_of_another_method_is_left_alone(tmp_path):
    (tmp_path / "run.json").write_text('{"format": "meterveil-ddql-1", "status": "finished"}')
    words = refused("train", "synthetic", *QUICK, "--out", tmp_path)
    assert "holds a training by another method (meterveil-ddql-1); give --out another folder" in words
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(("hours", "unknown"), [(10, 0), (48, 40)])
def test_a_record_shorter_than_a_day_or_full_of_gaps_is_refused(tmp_path, hours, unknown):
    minutes = pd.date_range("2024-03-04", periods=hours * 60, freq="min", tz="UTC")
    watts = np.random.default_rng(0).gamma(2.0, 200.0, len(minutes))
    watts[60 : 60 + unknown * 60] = np.nan
    pd.DataFrame({"time": minutes, "watts": watts}).to_parquet(tmp_path / "mine.parquet")
    columns = ("--timestamp", "time", "--power", "watts", "--unit", "W", "--timezone", "UTC")
    words = refused("train", tmp_path / "mine.parquet", *columns, *QUICK, "--out", tmp_path / "run")
    assert "records no civil day from midnight to midnight that could be learned from" in words


def test_the_paper_s_days_of_a_data_set_train(real_data, tmp_path):
    result = run("train", "redd", "--data", real_data, *QUICK, "--lambda", 0.9, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (document["days"][0], document["days"][-1]) == ("2011-04-19", "2011-04-28")
    assert document["options"]["weight"] == 0.9
