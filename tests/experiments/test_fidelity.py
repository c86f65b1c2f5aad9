"""The search of the paper's unstated choices, without a training, and the tables of its page."""

import numpy as np
import pandas as pd
import pytest

from experiments import fidelity, fidelity_page, study
from meterveil.bench import fingerprint, results
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario

PAPERS = {name: fingerprint.printed(name) for name in ("ukdale", "redd")}


def test_every_combination_is_screened_once_and_never_again():
    every = fidelity.screened(set())
    assert len(every) == len({candidate.name for candidate in every}) == 3 * (2 * len(fidelity.WEIGHTS) - 1)
    assert fidelity.screened({every[0].name}) == every[1:]
    assert {candidate.settings.choice for candidate in every} == {"greedy"}  # one training serves all ways to act


def test_a_drain_charges_by_night_and_covers_the_load_by_day():
    minutes = np.arange(1440)
    price = np.where(minutes < 420, fingerprint.CHEAP, fingerprint.DEAR)
    load_w = np.full(1440, 300.0)
    scenario = Scenario(
        load_w[None], minutes[None], np.zeros((1, 1440), dtype=np.int64), price[None], np.array([1440]), 0
    )
    library = Library.of([("kettle", [2000.0] * 10)], source="by hand")
    trace = rollout(fidelity.Drain(0.68), Battery(), library, scenario, [np.random.default_rng(0)])
    assert trace.soc[0, 419] == pytest.approx(0.68, abs=0.05)
    assert trace.soc[0, -1] == pytest.approx(0.1)
    assert (trace.meter_w[0, 420:600] == 0.0).all()


def test_scores_are_recorded_and_the_page_shows_the_best_first(tmp_path):
    for name, factor in (("worse", 1.5), ("better", 1.1)):
        other = fingerprint.Reading(*(factor * value for value in PAPERS["redd"].terms.values()))
        fidelity.record(tmp_path, name, {"ukdale": [PAPERS["ukdale"]], "redd": [other]}, {})
    scored = fidelity.scores(tmp_path, "ukdale_redd")
    assert 0.0 < scored["better"] < scored["worse"]
    assert fidelity.scores(tmp_path, "ukdale") == {}
    lines = fidelity_page.candidates(study.read(tmp_path, "fidelity")).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["paper", "better", "worse"]


def test_the_page_says_what_is_not_measured_and_joins_the_paper():
    page = fidelity_page.side_by_side(results.to_table([]))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    assert ["RMSE increase, %", "107", "", ""] in rows
    assert ["significant cases, F1", "25/30", "", ""] in rows
    assert ["kWh moved", "6.13", "", ""] in rows
    assert ["attackers, seeds", "6, 5", "not measured", "not measured"] in rows
    assert "Not measured yet" in fidelity_page.informed(results.to_table([]))
    assert "Not measured yet" in fidelity_page.by_attacker(results.to_table([]))
    assert "Not measured yet" in fidelity_page.levels(results.to_table([]))
    drawn = fidelity_page.picture(results.to_table([]))
    assert [bar.x for bar in drawn.data if bar.x] == [("paper",)] * 6  # REDD has no energy and no cost
    assert "| energy moved, UK-DALE | 6.13 kWh |" in fidelity_page.bounds()


def test_candidates_of_both_houses_come_first_and_each_is_listed_once(tmp_path):
    papers = {"ukdale": [PAPERS["ukdale"]]}
    fidelity.record(tmp_path, "one house", papers, {})
    fidelity.record(tmp_path, "both", papers, {})
    worse = [fingerprint.Reading(*(share * value for value in PAPERS["redd"].terms.values())) for share in (1.4, 1.6)]
    fidelity.record(tmp_path, "both", {"ukdale": 2 * papers["ukdale"], "redd": worse}, {})
    lines = fidelity_page.candidates(study.read(tmp_path, "fidelity")).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["paper", "both", "one house"]
    assert "| 249±0 |" in lines[3]
    assert "| 451±43 |" in lines[3]
    every = fidelity.screened(set())
    assert fidelity.best(every, {every[2].name: 0.5, every[0].name: 0.7, "another": 0.1}, 3) == [every[2], every[0]]


def test_batteries_are_shown_as_shares_of_the_papers(tmp_path):
    assert "Not measured yet" in fidelity_page.batteries(pd.DataFrame(columns=["dataset", "row", "metric", "value"]))
    shared = {"dataset": "ukdale", "row": "battery, capacity 2 kWh", "seeds": 1, "n_days": 1}
    figures = [{**shared, "metric": name, "value": value} for name, value in (("paper_share", 0.578), ("share", 0.6))]
    study.record(tmp_path, "fidelity", "key", figures, {})
    assert "| capacity 2 kWh | 58 % | 60 % |" in fidelity_page.batteries(study.read(tmp_path, "fidelity"))


def test_an_attacker_is_compared_over_the_appliances_that_all_sides_have():
    shared = {"dataset": "ukdale", "house": 1, "days": "paper", "battery": "8/4/8", "threat": "fixed"}
    figures = [
        results.Figure(
            **shared,
            aggregate=aggregate,
            defence=defence,
            attacker=attacker,
            appliance=appliance,
            metric=metric,
            value=value,
            change=change,
        )
        for defence, aggregate in (("as_published", "active"), ("ours", "mains"))
        for attacker in ("co", "fhmm")
        for appliance in ("kettle", "oven")
        for metric, value, change in (("rmse", 300.0, 200.0), ("f1", 0.2, -0.6))
    ]
    table = fidelity_page.by_attacker(results.to_table(figures))
    kettle = fidelity.reported.cases("ukdale").query("target == 'kettle' and attacker == 'co' and metric == 'rmse'")
    papers = 100 * (kettle["masked"] / kettle["raw"] - 1).item()
    assert f"| UK-DALE house 1, 18 March 2013 | CO | {papers:.0f} | 200 | 200 |" in table
    assert table.splitlines()[-1].endswith("| 75 | 75 |")
    assert [line.split(" | ")[1] for line in table.splitlines()[2:]] == ["CO", "FHMM", "together"]
    assert fidelity_page.levels(results.to_table(figures)).splitlines()[-1].endswith("| 0.80 to 0.20 | 0.80 to 0.20 |")
