"""`meterveil train` and `meterveil export` from the outside."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import meterveil
from command_line import printed, refused, run
from meterveil.core.decoys import Library

QUICK = ("--probe", "identity", "--days", "2", "--budget-days", "12")
DDQL = ("--method", "ddql_flat", "--days", "2", "--budget-days", "3")


def train(folder, *arguments):
    result = run("train", "synthetic", *arguments, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder, result


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(tmp_path_factory.mktemp("train") / "run", *QUICK)


@pytest.fixture(scope="module")
def trained_ddql(tmp_path_factory):
    return train(tmp_path_factory.mktemp("train") / "run", *DDQL)


def document_of(folder):
    return json.loads((folder / "run.json").read_text())


def simulated(defence, out, *more):
    result = run("simulate", "--defence", defence, "--start", "2024-04-20", "--out", out, *more)
    assert result.exit_code == 0, result.output
    return json.loads((out / "summary.json").read_text())


def test_a_training_writes_a_run_that_describes_itself(trained):
    out, result = trained
    document = document_of(out)
    assert document["status"] == "finished"
    assert (document["options"]["probe"], document["options"]["weight"]) == ("identity", 1.0)
    assert document["options"]["budget_days"] == 12.0
    assert len(document["days"]) == 2
    assert document["figures"]["minutes"] >= 12 * 1440
    assert {path.suffix for path in out.iterdir() if path.is_file()} == {".json", ".safetensors"}
    assert "throughput on training days" in printed(result)
    assert out.resolve().as_uri() in result.output.replace("\n", "")


def test_a_ddql_training_writes_a_run_that_describes_itself(trained_ddql):
    out, result = trained_ddql
    document = document_of(out)
    assert document["options"]["method"] == "ddql_flat"
    assert document["asked"]["source"] == "synthetic"
    assert document["curve"][-1]["days"] == 3
    assert document["figures"]["training_seconds"] > 0.0
    assert "standard deviation of the meter" in printed(result)


def test_an_unfinished_training_is_resumed_but_not_overwritten(trained_ddql, tmp_path):
    document = document_of(trained_ddql[0])
    (tmp_path / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    assert "holds an unfinished training; add --resume" in refused("train", *DDQL, "--out", tmp_path)
    assert run("train", "--resume", "--out", tmp_path).exit_code == 0
    policies = [(folder / "policy.safetensors").read_bytes() for folder in (tmp_path, trained_ddql[0])]
    assert policies[0] == policies[1]
    assert "is finished" in refused("train", "--resume", "--out", tmp_path)


def test_a_finished_training_may_be_replaced(trained, tmp_path):
    copy = shutil.copytree(trained[0], tmp_path / "copy")
    before = (copy / "policy.safetensors").read_bytes()
    train(copy, *QUICK, "--seed", 1)
    assert (copy / "policy.safetensors").read_bytes() != before


@pytest.mark.parametrize("method", ["manager", "ddql"])
def test_a_folder_with_a_run_of_another_method_is_left_alone(tmp_path, method):
    other = "meterveil-ddql-1" if method == "manager" else "meterveil-run-1"
    (tmp_path / "run.json").write_text(json.dumps({"format": other, "status": "finished"}))
    words = refused("train", *(QUICK if method == "manager" else DDQL), "--out", tmp_path)
    assert f"holds a training by another method ({other})" in words
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["flat", "random_equal:8", "manager", "ddql"])
def test_a_bundle_is_simulated_and_exported_as_the_defence_that_it_was_exported_from(
    trained, trained_ddql, tmp_path, name
):
    defence = {"manager": trained[0], "ddql": trained_ddql[0]}.get(name, name)
    bundle, again = tmp_path / "bundle", tmp_path / "again"
    for source, out in ((defence, bundle), (bundle, again)):
        result = run("export", source, "--out", out)
        assert result.exit_code == 0, result.output
    totals = [simulated(each, tmp_path / "out")["total"] for each in (defence, bundle, again)]
    assert totals[0] == totals[1] == totals[2]
    assert totals[0]["throughput_kwh"] > 0.0


def test_an_exported_defence_keeps_the_battery_and_tariff_that_were_given(tmp_path):
    battery = tmp_path / "battery.json"
    battery.write_text('{"capacity_kwh": 5}')
    given = ("--battery", battery, "--tariff", "flat:0.25")
    assert run("export", "flat", *given, "--out", tmp_path / "bundle").exit_code == 0
    bundle = meterveil.load_bundle(tmp_path / "bundle")
    assert (bundle.battery.capacity_kwh, bundle.tariff.prices) == (5.0, (0.25,))
    summary = simulated(tmp_path / "bundle", tmp_path / "out")
    assert summary["battery"]["capacity_kwh"] == 5.0


def test_several_trainings_or_an_unknown_defence_are_not_exported(trained, tmp_path):
    for name in "ab":
        shutil.copytree(trained[0], tmp_path / "runs" / name)
    assert "holds 2 trainings" in refused("export", tmp_path / "runs", "--out", tmp_path / "bundle")
    assert "no defence and no folder" in refused("export", "cloak", "--out", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_trained_manager_is_simulated_without_torch_and_with_its_own_signatures_only(trained, tmp_path):
    words = ["simulate", "--defence", str(trained[0]), "--start", "2024-04-20", "--out", str(tmp_path)]
    code = (
        f"import sys; from meterveil.cli import app; app({words!r}, standalone_mode=False); "
        "assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["defence"] == str(trained[0])
    assert summary["library"]["digest"] == document_of(trained[0])["library"]
    other = tmp_path / "other.json"
    other.write_text(Library.of([("lamp", [60.0] * 8)], source="by hand").to_json())
    assert "signatures that differ" in refused(*words, "--library", other)


def test_a_run_is_simulated_with_its_own_battery_and_tariff_unless_others_are_given(trained_ddql, tmp_path):
    own = shutil.copytree(trained_ddql[0], tmp_path / "own")
    document = document_of(own)
    document["battery"] |= {"capacity_kwh": 6.0, "budget_kwh": None}
    document["tariff"] |= {"prices": [0.1, 0.2]}
    (own / "run.json").write_text(json.dumps(document))
    given = ("--capacity-kwh", 5, "--tariff", "paper")
    for more, capacity_kwh, night in (((), 6.0, 0.1), (given, 5.0, 0.1317)):
        summary = simulated(own, tmp_path / "out", *more)
        assert summary["battery"]["capacity_kwh"] == capacity_kwh
        assert summary["battery"]["budget_kwh"] is None
        assert summary["tariff"]["bands"][0]["price"] == night


def test_days_that_a_defence_was_trained_on_are_named(trained, tmp_path):
    seen, several, unseen = (
        printed(run("simulate", "--defence", trained[0], "--out", tmp_path, "--start", *days))
        for days in (["2024-04-15"], ["2024-04-16", "--days", 3], ["2024-04-20"])
    )
    assert "trained on 2024-04-15" in seen
    assert "trained on 1 of these 3 days" in several
    assert "trained on" not in unseen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--probe", "oracle"), "no probe 'oracle'; known are transformer, lstm, cnn, identity, denoising"),
        (("--lambda", "1.5"), "lambda is 1.5; allowed is 0"),
        (("--budget-days", "0"), "is 0; give more than 0"),
        (("--resume",), "holds no training"),
        (("--method", "ddql"), "no method 'ddql'; did you mean ddql_mi"),
        (("--method", "ddql_mi", "--probe", "cnn"), "ddql_mi has no setting probe"),
        (("--method", "ddql_mi", "--clip"), "ddql_mi has no setting clip"),
        (("--method", "ddql_mi", "--library", "{tmp}/none.json"), "replays no signatures"),
        (("redd",), "no folder of data sets is named"),
        (("redd", "--aggregate", "submeters"), "no folder of data sets is named"),
        (("--loss", "mae"), "no loss 'mae'; did you mean mse? Known are mse, rmse"),
        (("--method", "ddql_mi", "--masked"), "ddql_mi has no setting masked"),
        (("--method", "ddql_mi", "--probe-from", "{tmp}"), "ddql_mi has no probe; leave --probe-from out"),
        (("--probe-from", "{tmp}"), "holds no probe"),
        (("ukdale", "--house", "2", "--start", "2013-04-01"), "--house, --start cannot be used with ukdale"),
        (("--aggregate", "roof"), "roof"),
        (("--library", "{tmp}/none.json"), "cannot read"),
    ],
)
def test_impossible_options_are_refused_in_one_line(tmp_path, arguments, words):
    given = [part.replace("{tmp}", str(tmp_path)) for part in arguments]
    assert words in refused("train", *given, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_battery_that_can_do_nothing_or_too_little_is_refused(tmp_path):
    weak = tmp_path / "battery.json"
    weak.write_text('{"charge_w": 500, "discharge_w": 500}')
    words = ("train", "synthetic", *QUICK, "--battery", weak, "--out", tmp_path / "run")
    assert "or accept that it is cut off (--clip)" in refused(*words)
    for settings in ({"budget_kwh": 0.0}, {"charge_w": 0.0, "discharge_w": 0.0}):
        weak.write_text(json.dumps(settings))
        assert "this battery can do nothing" in refused(*words)
        assert "this battery can do nothing" in refused(*words[:2], "--method", "ddql_flat", *words[-4:])


@pytest.mark.parametrize(("hours", "unknown"), [(10, 0), (48, 40)])
def test_a_record_shorter_than_a_day_or_full_of_gaps_is_refused(tmp_path, hours, unknown):
    minutes = pd.date_range("2024-03-04", periods=hours * 60, freq="min", tz="UTC")
    watts = np.random.default_rng(0).gamma(2.0, 200.0, len(minutes))
    watts[60 : 60 + unknown * 60] = np.nan
    pd.DataFrame({"time": minutes, "watts": watts}).to_parquet(tmp_path / "mine.parquet")
    columns = ("--timestamp", "time", "--power", "watts", "--unit", "W", "--timezone", "UTC")
    words = refused("train", tmp_path / "mine.parquet", *columns, *QUICK, "--out", tmp_path / "run")
    assert "has no whole civil day to learn from" in words


def test_the_paper_s_days_of_a_data_set_train(real_data, tmp_path):
    result = run("train", "redd", "--data", real_data, *QUICK, "--lambda", 0.9, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    document = document_of(tmp_path / "run")
    assert (document["days"][0], document["days"][-1]) == ("2011-04-19", "2011-04-28")
    assert document["options"]["weight"] == 0.9
    assert document["aggregate"] == "mains"


def test_the_papers_days_train_on_the_sum_of_the_sub_meters_too(real_data, tmp_path):
    summed = ("train", "redd", "--data", real_data, *QUICK, "--aggregate", "submeters", "--out", tmp_path / "run")
    result = run(*summed)
    assert result.exit_code == 0, result.output
    document = document_of(tmp_path / "run")
    assert (document["aggregate"], document["asked"]["aggregate"]) == ("submeters", "submeters")
    assert document["figures"]["training_days_load_std_w"] == pytest.approx(159.6, abs=0.1)  # not that of the mains
    active = ("train", "redd", "--data", real_data, *QUICK, "--aggregate", "active", "--out", tmp_path / "active")
    assert "both read VA" in refused(*active)


def test_a_training_takes_its_probe_loss_and_mask_from_options(trained, tmp_path):
    folder, _ = train(tmp_path / "run", *QUICK[2:], "--probe-from", trained[0], "--loss", "mse_kw2", "--masked")
    options = document_of(folder)["options"]
    assert (options["probe"], options["loss"], options["masked"]) == ("identity", "mse_kw2", True)
    assert document_of(folder)["asked"]["probe_from"] == str(trained[0])
    cards = [json.loads((run_folder / "probe.json").read_text()) for run_folder in (folder, trained[0])]
    assert cards[0] == cards[1]
    other = ("train", "synthetic", "--probe", "cnn", "--probe-from", trained[0], "--out", tmp_path / "other")
    assert "holds the probe identity, not cnn" in refused(*other)
