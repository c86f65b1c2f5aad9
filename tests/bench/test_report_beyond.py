"""What the report shows beyond the paper: adaptive attackers, chance that moves as much, others' entries."""

import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.report.adaptive import adaptive_case_rows, adaptive_comparisons, adaptive_sections
from meterveil.bench.report.chance import gap_sections
from meterveil.bench.report.claims import claims
from meterveil.bench.report.files import markdown, write_report
from meterveil.bench.report.leaderboard import boards, standing_name
from meterveil.bench.report.lookup import Recorded
from meterveil.bench.report.names import row_name
from meterveil.bench.report.others import other_rows, other_sections
from meterveil.bench.report.page import report_page
from meterveil.bench.report.reading import Results, read_results
from meterveil.bench.report.specs import SPECS
from meterveil.bench.report.text import command_of, found_text, pivot_rows
from meterveil.bench.report.verdict import verdict_words
from meterveil.bench.submission import keep
from report_cards import battery, case, headline, reproduction

SPEC = {spec.name: spec for spec in SPECS}
GAP = {"": 12.0, "_low": 3.0, "_high": 21.0, "_p": 0.0123}


def results_of(made):
    return Results(tuple(made))


def adaptive(table, dataset, label, read, days=1, **more):
    columns = {"strongest_f1": read, "strongest_f1_raw": 0.6, "prior_f1": 0.2, "f1_leak": 0.5, **more}
    return headline(table, dataset, label, columns, "adaptive", days, attackers=("fhmm",))


def test_adaptive_figures_have_a_table_with_chance_costs_information_and_events():
    made = []
    for label, read in (("ours", 0.4), ("random_equal", 0.45)):
        made += adaptive("many_days", "redd", label, read, rmse_increase_percent=50.0)
        made += battery("many_days", "redd", label, {"throughput_kwh": 8.0, "soc_neutral_cost": 0.5})
        made += case("many_days", "redd", label, "fhmm", "fridge", {"event_f1": 0.3}, "adaptive")
        made += [Card("many_days", f"meter fridge, {label}", "information_bits", "redd", 0.07)]
    made += headline("many_days", "redd", "flat", {"strongest_f1": 0.1})
    rows = pivot_rows(adaptive_comparisons(SPEC["many_days"], "redd", results_of(made)))
    assert [row[0] for row in rows] == ["", "chance at equal kWh", "ours"]
    compared = adaptive_comparisons(SPEC["many_days"], "redd", results_of(made))
    assert {command_of(one) for one in compared} == {
        "meterveil reproduce --table many_days --dataset redd --threat adaptive"
    }
    found = dict(zip(rows[0], rows[2], strict=True))
    assert (found["F1 of the strongest"], found["events F1"], found["bits"]) == ("0.40", "0.30", "0.070")
    assert (found["leak"], found["neutral cost"], found["RMSE Inc. %"]) == ("0.50", "0.500", "50.0")
    (section,) = adaptive_sections(SPEC["many_days"], results_of(made))
    assert "Attackers: FHMM. Without a defence the strongest reads F1 0.60; habits alone give 0.20." in (
        section.text
    )


def test_fixed_figures_alone_make_no_adaptive_table():
    made = headline("many_days", "redd", "flat", {"strongest_f1": 0.1})
    assert list(adaptive_sections(SPEC["many_days"], results_of(made))) == []


def test_adaptive_cases_stand_beside_those_of_chance():
    made = case("many_days", "redd", "ours", "fhmm", "fridge", {"f1": 0.3, "f1_delta": -0.4}, "adaptive")
    made += case("many_days", "redd", "random_equal", "fhmm", "fridge", {"f1": 0.5}, "adaptive")
    (_, row) = adaptive_case_rows(Recorded(made))
    assert row[:3] == ["FHMM, fridge, F1", "0.70", "0.30±0.01"]
    assert row[5] == "0.50±0.01"


def test_the_adaptive_claim_is_of_many_days_where_the_papers_day_is_missing_and_says_so():
    made = adaptive("many_days", "ukdale", "ours", 0.3, days=126)
    made += adaptive("many_days", "ukdale", "random_equal", 0.35, days=126)
    one = next(one for one in claims(results_of(made)) if "strongest adaptive" in one.row)
    assert one.row == "UK-DALE: F1 of the strongest adaptive attacker, 126 days"
    assert one.why == "many days, since the paper's day is not run yet; behind chance at equal kWh 0.35"
    made += adaptive("baseline_comparison", "ukdale", "ours", 0.5)
    one = next(one for one in claims(results_of(made)) if "strongest adaptive" in one.row)
    assert (one.row, one.ours.value) == ("UK-DALE: F1 of the strongest adaptive attacker", 0.5)


def gap(days, threat, column, factor=1.0):
    """Cards as a gap is recorded."""
    row = f"headline, {'many days' if days > 1 else 'one day'}, {threat}"
    return [
        Card(
            *("gap_to_chance", row, f"{column}_difference{ending}", "redd"),
            value if ending == "_p" else factor * value,
            threat_model=threat,
            n_days=days,
        )
        for ending, value in GAP.items()
    ]


def test_a_tested_gap_to_chance_is_a_claim_with_interval_and_p():
    made = gap(1, "fixed", "rmse_increase_percent") + gap(9, "fixed", "rmse_increase_percent", 2.0)
    made += gap(9, "adaptive", "strongest_f1", -0.01)
    text = markdown(results_of(made))
    beyond = "| REDD: ours beyond chance at equal kWh, points of RMSE, fixed attackers, 9 days | - |"
    figure = "24.0\u2009(6.0..42.0),\u2009p\u00a00.012"
    assert f"{beyond} {figure} | beyond the paper |  | `gap_to_chance` |" in text
    assert text.count("points of RMSE, fixed attackers") == 1
    strongest = (
        "| REDD: F1 of the strongest attacker, ours minus chance at equal kWh, adaptive attackers, 9 days"
    )
    assert f"{strongest} | - | -0.120\u2009(" in text
    assert "lead over chance" not in text
    assert "<h2>Ours against chance at equal kWh, REDD</h2>" in report_page(results_of(made))


def test_the_table_of_gaps_has_heads_with_units_and_no_column_of_p():
    made = gap(9, "fixed", "rmse_increase_percent") + gap(1, "adaptive", "f1_leak", -0.01)
    (section,) = gap_sections(results_of(made))
    head, few, many = section.table
    assert head[1:3] == ["RMSE Inc., percentage points", "F1 Red., percentage points"]
    assert few == ["one day, adaptive attackers", "", "", "", few[4]]
    assert few[4].startswith("-0.120\u2009(")
    assert many[:2] == ["9 days, fixed attackers", "12.0\u2009(3.0..21.0),\u2009p\u00a00.012"]
    assert list(other_sections(results_of(made))) == []


def test_a_gap_that_could_not_be_measured_is_no_claim():
    row = "headline, one day, fixed"
    made = [Card("gap_to_chance", row, "rmse_increase_percent_difference", "redd", None, note="no")]
    assert "beyond chance" not in markdown(results_of(made))


def test_other_tables_have_a_row_for_each_row_and_intervals_beside_their_figures():
    made = [
        Card("behaviour", row, column, "redd", value)
        for row, column, value in (
            ("flat_decoys", "reward", 2421.4),
            ("flat_decoys", "cosine", 0.9),
            ("flat_decoys", "cosine_low", 0.8),
            ("flat_decoys", "cosine_high", 1.0),
            ("ours", "cosine", None),
        )
    ]
    assert other_rows(made, {"cosine": "cosine, over the day"}) == [
        ["", "reward", "cosine, over the day"],
        ["flat with decoys", "2421", "0.9\u2009(0.8..1)"],
        ["ours", "", ""],
    ]


@pytest.mark.parametrize(
    ("table", "column", "head"),
    [
        ("alignment_fast", "training_cosine", "cosine, paid against the day"),
        ("behaviour", "net_kwh", "charged on balance, kWh a day"),
        ("reproduction_time", "clock_seconds", "clock time of a task, s"),
        ("training_observations", "reward_at_600000", "reward after 600000 decisions"),
        ("something_else", "net_kwh", "net kwh"),
    ],
)
def test_columns_of_other_tables_are_named_with_their_units(table, column, head):
    (section,) = other_sections(results_of([Card(table, "ours", column, "redd", 1.0)]))
    assert section.table[0] == ["", head]


def test_without_that_test_the_lead_over_chance_is_that_of_the_headlines():
    made = headline("baseline_comparison", "ukdale", "ours", {"rmse_increase_percent": 90.0})
    made += headline("baseline_comparison", "ukdale", "random_equal", {"rmse_increase_percent": 70.0})
    one = next(one for one in claims(results_of(made)) if "lead over chance" in one.row)
    assert (one.ours.value, one.verdict) == (20.0, "beyond the paper")


def test_a_spread_over_seeds_stands_beside_an_interval_over_days():
    made = headline("many_days", "redd", "ours", {"rmse_increase_percent": 50.0}, days=9)
    spread = [Card(**{**card.__dict__, "spread": 2.5}) for card in made]
    found = Recorded(spread).find("ours", "rmse_increase_percent")
    assert found_text(found, 1) == "50.0±2.5\u2009(45.0..55.0)"
    days = battery("many_days", "redd", "ours", {"soc_end": 0.5, "soc_end_low": 0.4, "soc_end_high": 0.6}, 9)
    days = [Card(**{**card.__dict__, "spread": 0.2}) for card in days]
    assert Recorded(days).find("ours", "soc_end").spread is None


def submitted(label, read, attackers=("fhmm",), test=("2011-04-29", "2011-04-29")):
    columns = {"strongest_f1": read, "prior_f1": 0.2}
    settings = {"house": 2, "test": list(test), "attackers": list(attackers), "defence": label}
    row = f"headline, {label}, adaptive"
    return [
        Card("evaluation_paper_day", row, column, "redd", value, threat_model="adaptive", settings=settings)
        for column, value in columns.items()
    ]


def ours_beside(theirs):
    own = [Card(**{**card.__dict__, "table": "baseline_comparison"}) for card in submitted("flat", 0.4)]
    return Results(tuple(own), (), {"cap": {("evaluation_paper_day", "redd"): tuple(theirs)}})


def test_a_submitted_defence_is_ranked_among_ours_and_marked():
    (board,) = boards(ours_beside(submitted("cap", 0.3)))
    assert [standing_name(one) for one in board.standings] == ["cap (submitted: cap)", "flat"]
    assert "cap (submitted: cap)" in report_page(ours_beside(submitted("cap", 0.3)))


def test_what_ours_has_already_is_not_listed_again():
    (board,) = boards(ours_beside(submitted("flat", 0.1)))
    assert [one.submitted for one in board.standings] == [""]


@pytest.mark.parametrize(
    "other", [{"attackers": ("co",)}, {"test": ("2011-04-30", "2011-04-30")}], ids=["attackers", "days"]
)
def test_a_submitted_defence_read_by_others_or_on_other_days_has_a_board_of_its_own(other):
    ours, theirs = boards(ours_beside(submitted("cap", 0.3, **other)))
    assert [one.label for one in ours.standings] == ["flat"]
    assert (theirs.submitted, [one.label for one in theirs.standings]) == ("cap", ["cap"])


def test_a_defence_that_few_attackers_read_does_not_join_with_one_that_more_read():
    few, many = submitted("few", 0.01), submitted("many", 0.3, ("bert4nilm", "fhmm"))
    own = [Card(**{**card.__dict__, "table": "baseline_comparison"}) for card in many]
    own = [Card(**{**card.__dict__, "row": card.row.replace("many", "flat")}) for card in own]
    theirs = {("evaluation_paper_day", "redd"): (*few, *many)}
    ours, apart = boards(Results(tuple(own), (), {"cap": theirs}))
    assert [one.label for one in ours.standings] == ["flat", "many"]
    assert [one.label for one in apart.standings] == ["few"]
    assert apart.attackers == {"adaptive": ("fhmm",)}


def test_every_board_has_a_heading_and_a_file_of_its_own(tmp_path):
    theirs = [*submitted("cap", 0.3, ("co",)), *submitted("cup", 0.3, ("mean",))]
    own = submitted("flat", 0.4)
    results = Results(tuple(own), (), {"cap": {("evaluation_paper_day", "redd"): tuple(theirs)}})
    page = write_report(results, tmp_path / "report", None).read_text()
    headings = [part.split("</h2>")[0] for part in page.split("<h2>Leaderboard: ")[1:]]
    assert len(headings) == len(set(headings)) == 3
    assert len(list((tmp_path / "report" / "tables").glob("leaderboard_*.csv"))) == 3


def test_a_submitted_defence_that_does_not_say_who_read_it_has_a_board_of_its_own():
    ours, theirs = boards(ours_beside(submitted("cap", 0.01, attackers=())))
    assert [one.label for one in ours.standings] == ["flat"]
    assert [one.label for one in theirs.standings] == ["cap"]


def test_what_was_submitted_is_read_from_its_own_folder(tmp_path):
    cards.write(tmp_path / "own", submitted("flat", 0.4))
    cards.write(tmp_path / "sent", submitted("cap", 0.3))
    keep(tmp_path / "own", "cap", cards.read(tmp_path / "sent"))
    found = read_results(tmp_path / "own")
    assert {card.settings["defence"] for card in found.cards} == {"flat"}
    (board,) = boards(found)
    assert [standing_name(one) for one in board.standings] == ["cap (submitted: cap)", "flat"]


def test_rows_have_names_that_people_read():
    assert row_name("random_equal:7.5") == "chance at 7.5 kWh"
    assert row_name("ddql_mi") == "DDQL-MI"
    page = report_page(results_of(reproduction()))
    assert "random_equal" not in page.replace("adaptive random_equal", "")


def test_the_verdict_comes_first():
    results = results_of(reproduction())
    words = verdict_words(results)
    assert words.startswith("UK-DALE, attackers that never saw the defence: RMSE rises by 101.8 %")
    assert "one day, attackers that adapt to the defence: F1 0.62 behind ours" in words
    body = report_page(results).split("</h1>")[1]
    assert body.strip().startswith('<ul class="lead"><li>UK-DALE, attackers that never saw')
