"""The demo trains and attacks a defence; the quick demo needs no extra package."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import run, said
from meterveil.bench import demo, quick_demo
from meterveil.bench.quick_demo import TARGETS, adapted, attack, attack_rows, demo_runs, note, write_report
from meterveil.data.load import load
from meterveil.errors import how_to_install


@pytest.fixture(scope="module")
def runs():
    return demo_runs(load("synthetic"))


@pytest.fixture(scope="module", autouse=True)
def few_days():
    """Let attackers learn from few days, so that they fit in seconds."""
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(quick_demo, "TRAINING_DAYS", 4)
        smaller.setattr(quick_demo, "COPIES", 1)
        yield


@pytest.fixture(scope="module")
def scores(runs, few_days):
    return attack(load("synthetic"), runs)


def test_three_defences_run_on_the_same_load(runs):
    none, random, flat = runs
    assert [run.defence for run in runs] == ["none", "random_equal", "flat"]
    assert np.array_equal(none.meter_w, none.load_w)
    assert np.array_equal(none.load_w, random.load_w)
    assert np.std(flat.meter_w) < np.std(none.meter_w) / 3


def test_an_unprotected_meter_tells_far_more_than_routine(scores):
    assert scores.f1["fhmm", "none"] > scores.f1["prior", "none"] + 0.3
    assert scores.rmse_w["fhmm", "none"] < scores.rmse_w["prior", "none"]
    assert scores.f1["prior", "none"] == scores.f1["prior", "flat"]
    assert scores.f1["fhmm", "flat"] < 0.5 * scores.f1["fhmm", "none"]


def test_only_defences_have_an_adapted_attacker_and_an_undertrained_one_is_marked(scores):
    rows = {row[0]: row for row in attack_rows(scores)}
    assert rows["FHMM, adapted"][1] == ""
    assert rows["FHMM"][1] == f"{scores.f1['fhmm', 'none']:.2f}"
    is_below = scores.f1[adapted("fhmm"), "flat"] < scores.f1["prior", "flat"]
    assert rows["FHMM, adapted"][3].endswith("*") == is_below
    assert ("undertrained" in note(scores)) == is_below


def test_the_report_has_a_section_per_defence_and_all_pictures(runs, scores, tmp_path):
    text = write_report(runs, scores, tmp_path).read_text()
    assert text.count('class="plotly-graph-div"') == 5
    assert "Times are local, Europe/London" in text
    assert all(name in text for name in ("random_equal", "flat", *TARGETS))


def test_the_quick_demo_needs_no_extra():
    code = (
        "import sys\n"
        "for name in ('torch', 'joblib', 'safetensors', 'scipy', 'onnxruntime'): sys.modules[name] = None\n"
        "from meterveil.bench import quick_demo\n"
        "from meterveil.attackers.registry import attacker\n"
        "for name in quick_demo.FIXED: attacker(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_train_extra_the_demo_is_quick_and_says_how_to_get_the_rest(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["meterveil.cli.demo"], "missing_parts", lambda: ["torch"])
    result = run("demo", "--out", tmp_path, "--picture", tmp_path / "day.html")
    assert result.exit_code == 0, result.output
    assert "what attackers read" in result.output
    assert f"report: {(tmp_path / 'report.html').as_uri()}" in result.output
    assert how_to_install("train") in said(result)
    assert "random_equal</title>" in (tmp_path / "day.html").read_text()
    assert not (tmp_path / "trained").exists()


def test_the_conclusion_calls_an_attacker_below_routine_undertrained(monkeypatch):
    f1 = {"none": 0.6, "random_equal:6.1": 0.5, "flat": 0.2, "trained": 0.4}
    monkeypatch.setattr(
        demo, "strongest", lambda cases, *_: SimpleNamespace(masked=SimpleNamespace(value=cases), prior=0.3)
    )
    results = [
        SimpleNamespace(defence=SimpleNamespace(name=name), cases={"adaptive": value}, prior={})
        for name, value in f1.items()
    ]
    words = demo.conclusion(results)
    assert "With trained, the strongest adaptive attacker reaches F1 0.40" in words
    assert "Attackers of flat score below guessing from routine" in words


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Run the whole demo, with less of everything."""
    out = tmp_path_factory.mktemp("demo")
    less = {"BUDGET_DAYS": 4.0, "PROBE": "identity", "SEEDS": 2, "COPIES": 1}
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(demo, "ATTACKERS", {"fixed": ("co",), "adaptive": ("co",)})
        for name, value in less.items():
            smaller.setattr(demo, name, value)
        result = run("demo", "--out", out, "--picture", out / "day.html")
    assert result.exit_code == 0, result.output
    return out, result


@pytest.mark.slow
def test_the_demo_trains_and_ends_with_one_table_and_a_report(shown):
    out, result = shown
    document = json.loads((out / "trained" / "run.json").read_text())
    assert document["status"] == "finished"
    moved_kwh = document["figures"]["training_days_moved_kwh"]
    named = {row[0]: row for line in result.output.splitlines() if (row := line.split())}
    assert {"none", f"random_equal:{moved_kwh:.1f}", "flat", "trained"} <= set(named)
    assert named["none"][1] == named["none"][2]
    assert float(named["flat"][1]) < float(named["none"][1])
    assert result.output.strip().splitlines()[-1] == f"report: {(out / 'evaluate.html').as_uri()}"
    page = (out / "evaluate.html").read_text()
    assert "random baseline with equal throughput" in page
    assert "A day with trained" in page
    assert "trained</title>" in (out / "day.html").read_text()


@pytest.mark.slow
def test_what_the_demo_trained_is_a_run_like_any_other(shown, tmp_path):
    words = ("simulate", "--defence", shown[0] / "trained", "--start", "2024-04-27", "--out", tmp_path)
    assert run(*words).exit_code == 0
