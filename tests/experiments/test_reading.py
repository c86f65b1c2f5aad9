"""Questions of the studies about behaviour, asked of perfect and of blind predictions."""

import numpy as np
import pytest

from experiments import behaviour, reading, seconds, study
from meterveil.attackers.protocol import Prediction
from meterveil.data import synthetic
from meterveil.data.protocols import STATES, on_threshold_w
from meterveil.data.simulation import Setup
from meterveil.data.states import with_states
from meterveil.data.synthetic import decoy_library
from meterveil.defenders.defence import find_defence

TARGETS = ("kettle", "microwave", *STATES)


@pytest.fixture(scope="module")
def days():
    home = with_states(synthetic.household(np.random.default_rng(0), days=7)).select(TARGETS)
    parts = [home.day(day) for day in home.days()]
    empty = parts[-1].appliances_w
    for watts in empty.values():
        watts[:] = 0.0
    return parts


def test_perfect_predictions_answer_every_question_and_blind_ones_none(days):
    perfect = [
        Prediction(
            {name: watts[None] for name, watts in day.appliances_w.items()},
            {name: (watts[None] >= on_threshold_w(name)) * 1.0 for name, watts in day.appliances_w.items()},
        )
        for day in days
    ]
    blind = [
        Prediction({n: w * 0.0 for n, w in p.watts.items()}, {n: w * 0.0 + 0.4 for n, w in p.on.items()})
        for p in perfect
    ]
    rows = reading.figures({"informed": reading.ask(perfect, days, TARGETS)}, dataset="x", row="none")
    read = {row["metric"]: row["value"] for row in rows}
    assert {read[f"{name}_error_min"] for name in STATES} == {0.0}
    others = [value for metric, value in read.items() if not metric.endswith("_error_min")]
    assert others == [1.0] * len(others)
    assert rows[0]["n_days"] == 7
    guessed = reading.ask(blind, days, TARGETS)
    assert reading.figures({"prior": {"a": guessed["absence_accuracy"]}})[0]["value"] == 0.5
    assert guessed["up_error_min"].statistic(guessed["up_error_min"].by_day) > 60.0


def test_a_battery_that_acts_once_a_minute_hides_no_use_from_a_meter_of_one_second():
    home = seconds.synthetic_home(0, days=4)
    setup = Setup(decoy_library())
    f1 = {}
    for name in ("none", "flat"):
        meter_w = seconds.meter_by_second(home, find_defence(name), setup)
        np.testing.assert_allclose(np.ptp((meter_w - home.load_w).reshape(-1, 60), axis=1), 0.0, atol=1e-6)
        counts = seconds.counts_of(home, meter_w, 1, name != "none")
        f1[name] = reading.detected("f1", counts.sum(axis=1))
    assert f1["none"] > 0.6
    assert f1["flat"] > 0.8 * f1["none"]


def test_the_page_is_made_from_the_recorded_figures(tmp_path, monkeypatch):
    page, saved = tmp_path / "page.md", []
    page.write_text(
        "".join(f"<!-- {mark} -->\nold\n<!-- end of {mark} -->\n" for mark in ("people", "meters", "crossing"))
    )
    monkeypatch.setattr(behaviour, "PAGE", page)
    monkeypatch.setattr(behaviour, "save", lambda figure, path, width: saved.append(figure))
    interval = {"value": 0.5, "low": 0.4, "high": 0.6}
    metrics = [*behaviour.PANELS, "kettle_use_recall", "up_close", "f1"]
    for meter in ("1 min", "30 min"):
        rows = [
            {"dataset": "ukdale_1", "row": name, "attacker": attacker, "metric": metric, **interval}
            for name in ("none", "flat")
            for attacker in reading.ATTACKERS
            for metric in metrics
        ]
        labelled = [{**row, "meter": meter, "note": "learned from ukdale 2"} for row in rows]
        study.record(tmp_path, "behaviour", "b", labelled, {}, reading.KEYS)
    study.record(tmp_path, "crossing", "c", rows, {})
    by_second = [{"dataset": "synthetic", "row": "none", "meter": "1 s", "metric": "kettle_use_f1", "value": 0.9}]
    study.record(tmp_path, "seconds", "s", by_second, {})
    behaviour.main(["--picture", "--results", str(tmp_path)])
    text = page.read_text()
    assert "old" not in text
    assert "| uses of the kettle found, F1 | 1 s | 0.90 |  |  |" in text
    assert "| first activity, error in minutes | 30 min | 0 | 0 | 0 |" in text
    assert [len(figure.layout.annotations) for figure in saved] == [len(behaviour.PANELS)] * 2
