"""The demo trains a defence and attacks it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from command_line import refused, run
from meterveil.bench import demo
from meterveil.errors import how_to_install


def test_without_the_train_extra_the_demo_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr("meterveil.cli.base.find_spec", lambda name: None if name == "torch" else name)
    words = refused("demo", "--out", tmp_path / "demo")
    assert "the demo needs torch" in words
    assert how_to_install("train") in words
    assert not (tmp_path / "demo").exists()


def test_a_reader_that_knows_the_defence_and_gets_less_than_routine_counts_as_routine(monkeypatch):
    f1 = {"none": 0.6, "random_equal:6.1": 0.5, "trained": 0.2, "as_routine": 0.3, "veil": 0.4}
    monkeypatch.setattr(
        demo, "strongest", lambda cases, *_: SimpleNamespace(masked=SimpleNamespace(value=cases), prior=0.3)
    )
    results = [
        SimpleNamespace(
            defence=SimpleNamespace(name=name),
            cases={"adaptive": value},
            prior={},
            masked=SimpleNamespace(certificate=SimpleNamespace(bits=np.array([8.5]))),
        )
        for name, value in f1.items()
    ]
    words = demo.conclusion(results)
    assert "With veil, the best reader that knows it gets 40 of 100" in words
    assert "at most 8.5 bits (median day)" in words
    assert "with trained they scored below guessing from the usual hours" in words
    assert [round(demo._f1(result, "adaptive"), 2) for result in results] == [0.6, 0.5, 0.3, 0.3, 0.4]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Run the whole demo, with less of everything."""
    out = tmp_path_factory.mktemp("demo")
    less = {"BUDGET_DAYS": 4.0, "PROBE": "identity", "SEEDS": 2, "COPIES": 1}
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(demo, "ATTACKERS", {"fixed": ("co",), "adaptive": ("co",)})
        for name, value in less.items():
            smaller.setattr(demo, name, value)
        result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output
    return out, result


@pytest.mark.slow
def test_the_demo_trains_and_ends_with_one_table_and_a_report(shown):
    out, result = shown
    document = json.loads((out / "trained" / "run.json").read_text())
    assert document["status"] == "finished"
    moved_kwh = document["figures"]["training_days_moved_kwh"]
    named = {row[0]: row for line in result.output.splitlines() if (row := line.split())}
    assert {"none", f"random_equal:{moved_kwh:.1f}", "trained", "veil"} <= set(named)
    assert named["none"][1:5] == [named["none"][1], named["none"][1], "no", "bound"]
    assert float(named["veil"][1]) < float(named["none"][1])
    assert float(named["veil"][3]) < 1000.0
    assert result.output.strip().splitlines()[-1] == f"report: {(out / 'evaluate.html').as_uri()}"
    page = (out / "evaluate.html").read_text()
    assert "the best reader that knows it" in page
    assert "A day with trained" in page


@pytest.mark.slow
def test_what_the_demo_trained_is_a_run_like_any_other(shown, tmp_path):
    words = ("simulate", "--defence", shown[0] / "trained", "--start", "2024-04-27", "--out", tmp_path)
    assert run(*words).exit_code == 0
