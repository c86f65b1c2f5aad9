"""Questions of the studies about behaviour, and the page that is made of the answers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import behaviour, reading, refits, seconds, study
from experiments.times_of_use import QUESTIONS
from meterveil.attackers.baselines import Prior
from meterveil.bench.trial import HouseDays, Trial
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library, household
from meterveil.defenders.defence import find_defence
from meterveil.errors import InputError

TARGETS = ("kettle", "microwave")


def test_the_attacker_answers_no_worse_than_its_prior_without_a_network():
    home = household(np.random.default_rng(0), days=7).select(TARGETS)
    days = [home.day(day) for day in home.days()]
    days[-1] = replace(days[-1], appliances_w={name: np.zeros(1440) for name in TARGETS})
    prior = Prior().fit([home], TARGETS, np.random.default_rng(0))
    usual = {name: reading.usual_of([home], name) for name in QUESTIONS}
    answers = reading.ask(reading.Reader(prior, prior, usual), days, TARGETS)
    rows = reading.figures({"prior": answers}, dataset="x", row="none")
    read = {row["metric"]: row["value"] for row in rows}
    assert read["absence_accuracy"] == 0.5
    assert 0.0 < read["first_activity_error_min"] < 200.0
    assert 0.0 <= read["kettle_use_f1"] < 0.5
    assert {row["n_days"] for row in rows} == {7}


@pytest.mark.parametrize(("name", "least"), [("none", 1.0), ("veil", 0.8)])
def test_the_energy_of_a_day_tells_an_empty_house_whatever_the_defence(name, least):
    home = replace(household(np.random.default_rng(0), days=10).select(TARGETS), name="home")
    empty = slice(-3 * 1440, None)  # a battery that fills up may hide the first of these days
    aggregate_w, appliances_w = home.aggregate_w.copy(), {part: home.appliances_w[part].copy() for part in TARGETS}
    aggregate_w[empty] = np.nanmedian(home.day(home.days()[0]).aggregate_w[reading.NIGHT])
    for power_w in appliances_w.values():
        power_w[empty] = 0.0
    home = replace(home, aggregate_w=aggregate_w, appliances_w=appliances_w)
    days = home.days()
    known, read = HouseDays("synthetic", 1, days[:4]), HouseDays("synthetic", 1, days[4:])
    trial = Trial((known,), read, TARGETS, "x")
    answers = reading.read_energy(trial, {read.key: home}, find_defence(name), Setup(decoy_library()))
    rows = reading.figures(answers, dataset="x", row=name)
    assert {row["attacker"] for row in rows} == {"energy"}
    value = {row["metric"]: row["value"] for row in rows}
    assert value["absence_accuracy"] >= least
    mean = (value["absence_found"] + 1.0 - value["absence_false_alarms"]) / 2
    assert value["absence_accuracy"] == pytest.approx(mean)


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
    metrics = [*behaviour.PANELS, "kettle_use_recall", "first_activity_close", "f1"]
    for meter in ("1 min", "30 min"):
        rows = [
            {"dataset": "ukdale_1", "row": name, "attacker": attacker, "metric": metric, **interval}
            for name in ("none", "flat")
            for attacker in ("informed", "prior")
            for metric in metrics
        ]
        labelled = [{**row, "meter": meter, "note": "learned from ukdale 2"} for row in rows]
        study.record(tmp_path, "behaviour", "b", labelled, {}, reading.KEYS)
    energy = {"attacker": "energy", "metric": "absence_accuracy", "meter": "1 min"}
    better, worse = {**rows[0], **energy, "value": 0.81}, {**rows[-1], **energy, "value": 0.44}
    study.record(tmp_path, "behaviour", "e", [better, worse], {}, reading.KEYS)
    study.record(tmp_path, "crossing", "c", rows, {})
    by_second = [{"dataset": "synthetic", "row": "none", "meter": "1 s", "metric": "kettle_use_f1", "value": 0.9}]
    study.record(tmp_path, "seconds", "s", by_second, {})
    behaviour.main(["--picture", "--results", str(tmp_path)])
    text = page.read_text()
    assert "old" not in text
    assert "| uses of the kettle found, F1 | 1 s | 0.90 |  |  |" in text
    by_name = {line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("| UK-DALE 1 | `")}
    assert by_name["`none`"].endswith("| 81% |")
    assert by_name["`flat`"].endswith("| 50% |")
    assert "| first activity, error in minutes | 30 min | 0 | 0 | 0 |" in text
    assert [len(figure.layout.annotations) for figure in saved] == [len(behaviour.PANELS)] * 2


def test_the_table_of_fits_names_what_each_reads_better_than_habits():
    f1 = {"prior": (0.2, 0.05), "informed": (0.5, 0.06)}
    rows = [
        {"dataset": "refit_2", "row": "veil", "x": fit, "attacker": attacker, "metric": metric, "value": value}
        for fit in (1.0, 2.0)
        for attacker, (dishwasher, kettle) in f1.items()
        for metric, value in {
            "dishwasher_f1": dishwasher if fit == 1.0 else 0.2,
            "kettle_f1": kettle,
            "f1": (dishwasher + kettle) / 2,
            "kettle_use_recall": kettle,
            "kettle_use_f1": 1.0,
        }.items()
    ]
    rows += [
        {"dataset": "redd_2", "row": "none", "x": 1.0, "attacker": attacker, "metric": metric, "value": value}
        for attacker, value in (("prior", 0.2), ("informed", 0.9))
        for metric in ("fridge_f1", "f1")
    ]
    without_kettle, first, second = refits.page_table(pd.DataFrame(rows)).splitlines()[2:]
    assert without_kettle == "| REDD 2 | `none` | 1 | fridge 0.90 (0.20) | 0.90 | 0.20 |  |"
    assert first == "| REFIT 2 | `veil` | 1 | dishwasher 0.50 (0.20) | 0.28 | 0.12 | 6% |"
    assert second.startswith("| REFIT 2 | `veil` | 2 | none |")


def test_the_veil_that_is_read_knows_the_earlier_days_of_its_house(monkeypatch):
    home = replace(household(np.random.default_rng(0), days=7).select(TARGETS), name="home")
    days = home.days()
    known, read = HouseDays("synthetic", 1, days[:5]), HouseDays("synthetic", 1, days[5:])
    told = []

    def stop_at_the_fit(names, households, targets, seed, policy, setup, **_):
        told.append(policy)
        raise InputError("enough")

    monkeypatch.setattr(reading, "adaptive", stop_at_the_fit)
    with pytest.raises(InputError, match="enough"):
        reading.read(
            Trial((known,), read, TARGETS, "x"), {read.key: home}, find_defence("veil"), Setup(decoy_library())
        )
    assert told[0].record is not None
    assert told[0].dice.spike_rate > 0.0
