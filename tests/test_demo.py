"""The demo trains and attacks; the quick one attacks with nothing but what the package itself needs."""

import json
import subprocess
import sys

import pytest
from meterveil.demo import TARGETS, adapted, attack, attack_rows, attack_section
from meterveil.simulate import demo_runs

from command_line import run, said
from meterveil import demo_trained
from meterveil.cli.demo import _train as train_demo
from meterveil.data.load import load
from meterveil.errors import InputError, how_to_install


@pytest.fixture(scope="module")
def found():
    return attack(load("synthetic"), demo_runs())


def test_the_bare_meter_tells_far_more_than_habits_do(found):
    assert found.f1["fhmm", "none"] > found.f1["prior", "none"] + 0.3
    assert found.rmse_w["fhmm", "none"] < found.rmse_w["prior", "none"]


def test_a_flat_meter_leaves_an_adapted_attacker_little(found):
    assert found.f1[adapted("fhmm"), "flat"] < found.f1["prior", "flat"] + 0.1
    assert found.f1["fhmm", "flat"] < 0.5 * found.f1["fhmm", "none"]


def test_what_never_looks_is_not_moved_by_a_defence(found):
    assert found.f1["prior", "none"] == found.f1["prior", "flat"]


def test_there_is_nothing_to_adapt_to_without_a_defence(found):
    rows = {row[0]: row for row in attack_rows(found)}
    assert rows["FHMM, adapted"][1] == ""
    assert rows["FHMM"][1] == f"{found.f1['fhmm', 'none']:.2f}"


def test_the_picture_has_a_row_for_each_defence_and_a_column_for_each_appliance(found):
    figure = attack_section(found).figure
    assert len(figure.data) == 2 * len(found.said_w) * len(TARGETS)


def test_it_needs_no_extra():
    code = (
        "import sys\n"
        "for name in ('torch', 'joblib', 'safetensors', 'scipy', 'onnxruntime'): sys.modules[name] = None\n"
        "import meterveil.demo\n"
        "from meterveil.attackers.registry import attacker\n"
        "for name in meterveil.demo.FIXED: attacker(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def train_less(monkeypatch):
    monkeypatch.setattr(demo_trained, "BUDGET_DAYS", 4.0)
    monkeypatch.setattr(demo_trained, "PROBE", "identity")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Show the whole demo, with less of everything."""
    out = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as smaller:
        train_less(smaller)
        smaller.setattr(demo_trained, "ATTACKERS", {"fixed": ("co",), "adaptive": ("co",)})
        smaller.setattr(demo_trained, "SEEDS", 2)
        smaller.setattr(demo_trained, "COPIES", 1)
        result = run("demo", "--out", out, "--picture", out / "day.html")
    assert result.exit_code == 0, result.output
    return out, result


def test_the_demo_trains_and_prints_one_table_of_defences(shown):
    out, result = shown
    document = json.loads((out / "trained" / "run.json").read_text())
    assert document["status"] == "finished"
    moved_kwh = document["figures"]["training_days_moved_kwh"]
    rows = [line.split() for line in result.output.splitlines()]
    named = {row[0]: row for row in rows if row}
    assert {"none", f"random_equal:{moved_kwh:.1f}", "flat", "flat_decoys", "trained"} <= set(named)
    assert named["none"][1] == named["none"][2]
    assert float(named["flat"][1]) < float(named["none"][1])
    assert "trained:" in named


def test_the_demo_ends_with_a_report_of_before_and_after_and_a_day_behind_each_defence(shown):
    out, result = shown
    assert result.output.strip().splitlines()[-1] == f"report: {(out / 'evaluate.html').as_uri()}"
    page = (out / "evaluate.html").read_text()
    assert "What is read behind trained" in page
    (short,) = (line for line in result.output.splitlines() if line.startswith("in short: "))
    assert "hides most from adaptive attackers" in short
    assert "which is chance that moves as much energy" in short
    assert f"<p>{short.removeprefix('in short: ')}</p>" in page
    assert "A day behind trained" in page
    assert "trained: adaptive attackers, case by case" in page
    assert "decoy" in (out / "day.html").read_text()[-2_000_000:]


def test_what_the_demo_trained_is_a_run_like_any_other(shown, tmp_path):
    words = ("simulate", "--defence", shown[0] / "trained", "--start", "2024-04-27", "--out", tmp_path)
    assert run(*words).exit_code == 0


@pytest.fixture
def stopped(shown, tmp_path, monkeypatch):
    """Leave a demo as a kill does; return what goes on with the training."""
    train_less(monkeypatch)
    document = json.loads((shown[0] / "trained" / "run.json").read_text()) | {"status": "unfinished"}

    def leave(**asked):
        changed = document | {"asked": document["asked"] | asked}
        (tmp_path / "run.json").write_text(json.dumps(changed))
        (tmp_path / "checkpoint.safetensors").write_bytes(b"of another seed")
        return tmp_path

    return leave


def test_a_demo_of_another_seed_replaces_its_own_unfinished_training(stopped):
    folder = stopped(seed=7)
    train_demo(1, folder)
    document = json.loads((folder / "run.json").read_text())
    assert (document["status"], document["asked"]["seed"]) == ("finished", 1)


def test_a_demo_leaves_an_unfinished_training_that_is_not_its_own(stopped):
    with pytest.raises(InputError, match="holds an unfinished training"):
        train_demo(1, stopped(preset="paper"))


def test_without_the_train_extra_the_demo_says_how_to_get_the_rest(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["meterveil.cli.demo"], "missing_parts", lambda: ["torch"])
    result = run("demo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "what attackers read" in result.output
    assert f"to train a defence and attack it too: {how_to_install('train')}" in said(result)
    assert not (tmp_path / "trained").exists()
