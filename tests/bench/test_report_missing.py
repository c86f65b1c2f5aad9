"""What was not run is named by table, data set, attackers and row, and a claim by what measures it."""

from dataclasses import replace
from pathlib import Path

import pytest
from meterveil.bench.reproduce.specs import SEEDS, TABLES, RationOf

from meterveil.bench.report.claims import claims
from meterveil.bench.report.columns import judge
from meterveil.bench.report.declared import ABLATIONS, HEADLINES
from meterveil.bench.report.files import markdown
from meterveil.bench.report.missing import Missing, command, missing, missing_lines, missing_sections
from meterveil.bench.report.reading import Results, read_results
from meterveil.bench.report.reasons import REASONS
from meterveil.bench.report.specs import REPRODUCED
from meterveil.bench.report.text import command_of
from report_cards import battery, headline

ROOT = Path(__file__).parents[2]
RMSE = "rmse_increase_percent"


def measured(table, dataset, labels, threat="fixed", value=50.0):
    return [card for label in labels for card in headline(table, dataset, label, {RMSE: value}, threat)]


def test_rows_without_cards_are_named_for_each_data_set_and_threat():
    labels = [row.label for row in TABLES["many_days"].rows if row.label not in ("random", "rule_based")]
    made = measured("many_days", "ukdale", labels)
    found = [one for one in missing(Results(tuple(made))) if one.table == "many_days"]
    assert found[0] == Missing("many_days", "ukdale", "fixed", ("random", "rule_based"), False)
    assert [(one.dataset, one.threat, one.is_all) for one in found[1:]] == [
        ("ukdale", "adaptive", True),
        ("redd", "fixed", True),
        ("redd", "adaptive", True),
    ]
    command = "meterveil reproduce --table many_days --dataset ukdale --threat fixed"
    assert f"not run yet, random replay; rule-based: {command}" in missing_lines(Results(tuple(made)))


def rows_missing(made, table, threat):
    asked = (one for one in missing(Results(tuple(made))) if (one.table, one.threat) == (table, threat))
    return next((one.rows for one in asked if one.dataset == "ukdale"), ())


@pytest.mark.parametrize("table", ["many_days", "gap_to_chance"])
@pytest.mark.parametrize("threat", ["fixed", "adaptive"])
def test_a_row_over_fewer_seeds_than_asked_for_is_missing(table, threat):
    asked = [row.label for row in TABLES[table].rows if threat in row.threats]
    made = measured(table, "ukdale", asked, threat)
    whole, short = (
        [replace(card, seeds=tuple(range(SEEDS[threat] - fewer))) for card in made] for fewer in (0, 1)
    )
    assert rows_missing(whole, table, threat) == ()
    assert rows_missing(short, table, threat) == tuple(asked)


def test_recorded_rows_of_a_defence_without_dice_are_not_missing():
    found = [one for one in missing(read_results(ROOT / "results")) if one.dataset == "redd"]
    tables = ("baseline_comparison", "many_days")
    assert not [one for one in found if one.table in tables and {"none", "flat"} & set(one.rows)]


def test_rows_that_adaptive_attackers_do_not_meet_are_not_missing():
    asked = next(one for one in missing(Results(())) if (one.table, one.threat) == ("many_days", "adaptive"))
    assert "ours" in asked.rows
    assert {"ddql_mi", "random", "ours (paper's settings)"}.isdisjoint(asked.rows)


def test_a_row_that_could_not_be_measured_is_not_missing():
    labels = [row.label for row in TABLES["heldout_day_generalization_redd"].rows]
    made = measured("heldout_day_generalization_redd", "redd", labels, value=None)
    assert "heldout_day_generalization_redd" not in [one.table for one in missing(Results(tuple(made)))]


def test_the_report_has_every_table_that_can_be_reproduced():
    assert {spec.name for spec in REPRODUCED} == set(TABLES)


def test_a_table_with_rationed_rows_says_what_these_are():
    told = {spec.name: spec.words.lower() for spec in REPRODUCED}
    with_ration = {
        name for name, table in TABLES.items() if any(isinstance(row.defence, RationOf) for row in table.rows)
    }
    assert with_ration
    assert all("rationed" in told[name] and "as the day passes" in told[name] for name in with_ration)


def test_where_nothing_is_missing_there_is_no_section():
    made = [
        card
        for name, table in TABLES.items()
        for dataset in table.datasets
        for threat in table.threats
        for card in measured(name, dataset, [row.label for row in table.rows], threat)
    ]
    assert list(missing_sections(Results(tuple(made)))) == []


def test_a_command_names_only_what_is_not_the_tables_own_choice():
    assert command("lambda_sweep", "ukdale", "fixed") == "meterveil reproduce --table lambda_sweep"
    assert command("overall_transfer", "redd", "fixed").endswith("--table overall_transfer --dataset redd")
    assert command("many_days", "redd", "adaptive").endswith("many_days --dataset redd --threat adaptive")


def test_a_claim_that_came_out_worse_says_why_and_one_that_was_reproduced_does_not():
    def capacity(small):
        made = measured("battery_sensitivity", "ukdale", ["main"], value=100.0)
        made += measured("battery_sensitivity", "ukdale", ["capacity 2 kWh"], value=small)
        return Results(tuple(made))

    worse, same = (
        next(one for one in claims(capacity(small)) if "of capacity over 2" in one.row)
        for small in (120.0, 50.0)
    )
    assert (worse.verdict, same.verdict) == ("worse", "reproduced")
    assert worse.why.startswith("a small battery is full sooner")
    assert same.why == ""
    recorded = replace(capacity(120.0), commits={("battery_sensitivity", "ukdale"): ("a1", "b2")})
    assert "[docs/ablations.md](docs/ablations.md) | `battery_sensitivity` a1 b2 |" in markdown(recorded)


def test_a_reason_depends_on_the_direction():
    probe = ABLATIONS[0]
    assert judge("difference", 13.0, 40.0) == "better"
    assert probe.reason("better") != probe.reason("worse") == probe.reason("differs")
    assert probe.reason("reproduced") == probe.reason("not run yet") == ""


def test_a_larger_gap_between_two_rows_has_another_reason_than_a_larger_figure():
    made = measured("battery_sensitivity", "ukdale", ["main"], value=180.0)
    made += measured("battery_sensitivity", "ukdale", ["throughput 2 kWh"], value=50.0)
    one = next(one for one in claims(Results(tuple(made))) if "8 kWh a day over 2" in one.row)
    assert (one.verdict, one.why) == ("better", ABLATIONS[3].better)
    assert one.why not in {claim.better for claim in HEADLINES}


def test_a_claim_about_a_column_gives_the_columns_own_reason():
    made = battery("baseline_comparison", "ukdale", "ours", {"total_cost": 0.9, "training_seconds": 60.0})
    found = {one.column: one.why for one in claims(Results(tuple(made)))}
    assert {column: found[column] for column in ("total_cost", "training_hours")} == {
        column: REASONS[column] for column in ("total_cost", "training_hours")
    }


def test_every_recorded_claim_that_is_worse_has_a_reason_with_a_page_that_exists():
    results = read_results(ROOT / "results")
    worse = [one for one in claims(results) if one.verdict in ("worse", "differs")]
    assert worse
    for one in worse:
        page = one.why.rpartition("; ")[2]
        assert (ROOT / page).is_file(), f"{one.row}: {one.why}"


def test_an_adaptive_claim_is_measured_by_an_adaptive_command():
    found = {command_of(one) for one in claims(Results(())) if "adaptive" in one.row}
    assert found == {
        f"meterveil reproduce --table baseline_comparison --dataset {dataset} --threat adaptive"
        for dataset in ("ukdale", "redd")
    }
