"""The report's arithmetic: verdicts, claims, ranks and what is written, checked by hand."""

import csv
from dataclasses import replace
from io import StringIO

import pytest

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.report.charts import board_chart, cases_chart, pareto_chart, sensitivity_chart
from meterveil.bench.report.claims import claims
from meterveil.bench.report.columns import judge, tolerance
from meterveil.bench.report.compare import Comparison, compare, compare_cases
from meterveil.bench.report.files import claims_tex, comparisons_csv
from meterveil.bench.report.latex import escape_latex, latex
from meterveil.bench.report.leaderboard import boards
from meterveil.bench.report.lookup import Found, Recorded
from meterveil.bench.report.page import all_comparisons, report_page
from meterveil.bench.report.reading import Results, read_results
from meterveil.bench.report.rows import board_rows, board_words
from meterveil.bench.report.specs import SPECS
from meterveil.bench.report.text import measured_words, pivot_rows, reason_words
from meterveil.bench.reported.claimed import claimed, labels
from report_cards import battery, case, headline, papers_cases, reproduction, row_of

SPEC = {spec.name: spec for spec in SPECS}


def results_of(made):
    return Results(tuple(made))


def find(comparisons, row, column):
    (one,) = [one for one in comparisons if (one.row, one.column) == (row, column)]
    return one


@pytest.mark.parametrize(
    ("column", "paper", "ours", "verdict"),
    [
        ("rmse_increase_percent", 107.12, 96.5, "reproduced"),  # within 10 %
        ("rmse_increase_percent", 107.12, 96.3, "worse"),
        ("rmse_increase_percent", 107.12, 118.0, "better"),
        ("rmse_increase_percent", 18.58, 23.58, "reproduced"),  # within 5 points
        ("rmse_increase_percent", 18.58, 23.6, "better"),
        ("f1_masked", 0.16, 0.22, "worse"),  # attackers read more
        ("f1_delta", -0.5, -0.6, "better"),
        ("total_cost", -0.764, -0.5, "worse"),
        ("training_hours", 1.2, 0.5, "better"),
        ("rmse_raw_w", 44.5, 60.0, "differs"),
        ("rmse_increase_percent", None, 60.0, "beyond the paper"),
    ],
)
def test_a_verdict_follows_tolerance_and_direction(column, paper, ours, verdict):
    assert judge(column, paper, ours) == verdict


def test_what_seeds_alone_may_move_widens_the_tolerance():
    assert judge("rmse_delta", 100.0, 88.0) == "worse"
    assert judge("rmse_delta", 100.0, 88.0, allowance=12.0) == "reproduced"
    assert tolerance("rmse_delta", 100.0, 12.0) == 12.0


def test_counts_compare_as_shares_of_their_cases():
    columns = {"rmse_significant": 17.0, "rmse_cases": 18.0, "f1_significant": 12.0, "f1_cases": 18.0}
    made = headline("overall_transfer", "ukdale", "ours", columns)
    found = compare(SPEC["overall_transfer"], "ukdale", results_of(made))
    assert find(found, "ours", "rmse_significant").verdict == "reproduced"  # 17/18 beside 22/24
    worse = find(found, "ours", "f1_significant")
    assert (worse.verdict, worse.gap) == ("worse", "-0.33 of all, allowed ±0.10")


def test_every_row_that_the_paper_prints_has_a_label_of_ours():
    assert labels("battery_sensitivity", "ukdale")[:2] == ("main", "capacity 2 kWh")
    assert labels("signature_size_ablation", "ukdale") == ("10", "9", "7", "5", "3")
    assert labels("heldout_day_generalization", "ukdale")[3] == "2013-03-30 house 4"
    assert claimed("baseline_comparison")["ukdale", "ddql_mi", "training_hours"] == 6.6
    assert claimed("overall_transfer")["redd", "ours", "rmse_increase_percent"] == 165.90
    assert claimed("many_days") == {}


def test_means_of_other_days_are_taken_over_the_papers_attackers_and_appliances_alone():
    label, table = "2011-04-30 house 2", "heldout_day_generalization_redd"
    made = headline(table, "redd", label, {"rmse_increase_percent": 50.0})
    made += case(table, "redd", label, "co", "fridge", {"rmse": 100.0, "rmse_delta": 60.0})
    made += case(table, "redd", label, "dae", "lighting", {"rmse": 200.0, "rmse_delta": 40.0})
    made += case(table, "redd", label, "nilmformer", "fridge", {"rmse": 900.0, "rmse_delta": 0.0})
    made += case(table, "redd", label, "co", "aggregate", {"rmse": 900.0, "rmse_delta": 0.0})
    recorded = Recorded(made)
    assert recorded.find(label, "rmse_raw_w").value == 100.0
    assert recorded.find(label, "rmse_masked_w").value == 150.0


def test_a_row_without_data_is_not_measurable_and_says_why():
    label = "2013-03-30 house 4"
    made = headline(SPECS[6].name, "ukdale", label, {"f1_reduction_percent": None}, note="no house 4")
    found = compare(SPEC["heldout_day_generalization"], "ukdale", results_of(made))
    assert find(found, label, "f1_reduction_percent").verdict == "not measurable here"
    assert reason_words(found) == "2013-03-30 house 4: no house 4."
    assert find(found, "2013-01-18 house 1", "f1_reduction_percent").verdict == "not run yet"


def test_cases_of_an_appliance_that_is_not_metered_stay_in_the_table():
    found = compare_cases("ukdale", results_of(papers_cases("ukdale")))
    assert find(found, "co kettle", "f1_delta").verdict == "reproduced"
    toaster = find(found, "co toaster", "f1_delta")
    assert (toaster.verdict, toaster.ours) == ("not measurable here", None)
    assert toaster.why == "not measured: no toaster here"
    assert {one.verdict for one in compare_cases("ukdale", results_of([]))} == {"not run yet"}


def test_what_no_card_speaks_of_is_not_run_yet_and_not_beyond_measurement():
    made = headline("overall_transfer", "ukdale", "ours", {"rmse_increase_percent": 100.0}, note="18 cases")
    made += case("overall_transfer", "ukdale", "ours", "co", "kettle", {"rmse_delta": 90.0})
    found = compare(SPEC["overall_transfer"], "ukdale", results_of(made))
    missing = find(found, "ours", "f1_reduction_percent")
    assert (missing.verdict, missing.why) == ("not run yet", "")
    toaster = find(compare_cases("ukdale", results_of(made)), "co toaster", "f1_delta")
    assert (toaster.verdict, toaster.why) == ("not run yet", "")


def test_a_claim_of_a_lead_is_derived_alike_for_the_paper_and_for_us():
    table, made = "baseline_comparison", []
    for label, rise in (("random", 10), ("rule_based", 20), ("ddql_flat", 60), ("ddql_mi", 80), ("ours", 95)):
        made += headline(table, "ukdale", label, {"rmse_increase_percent": float(rise)})
    lead = next(one for one in claims(results_of(made)) if "next best" in one.row)
    assert lead.paper == pytest.approx(107.12 - 93.51)
    assert (lead.ours.value, lead.ours.seeds, lead.ours.n_days) == (15.0, 5, 1)
    assert lead.verdict == "reproduced"


def test_a_lead_that_turned_into_a_lag_is_worse_whatever_the_tolerance():
    made = headline("probe_ablation", "ukdale", "transformer", {"rmse_increase_percent": 90.0})
    made += headline("probe_ablation", "ukdale", "cnn", {"rmse_increase_percent": 90.5})
    one = next(one for one in claims(results_of(made)) if "transformer over CNN" in one.row)
    assert (one.verdict, one.gap) == ("worse", "-13.5, allowed ±5.0")


def test_other_days_are_averaged_over_those_that_both_sides_have():
    table = "heldout_day_generalization"
    made = headline(table, "ukdale", "2013-01-18 house 1", {"f1_reduction_percent": 40.0})
    made += headline(table, "ukdale", "2013-07-15 house 1", {"f1_reduction_percent": 60.0})
    one = next(one for one in claims(results_of(made)) if "on 2 other days" in one.row)
    assert one.paper == pytest.approx((47.5 + 71.9) / 2)
    assert (one.ours.value, one.ours.seeds, one.ours.n_days) == (50.0, 5, 2)


def test_a_derived_claim_has_the_fewest_seeds_of_the_figures_that_it_uses():
    made = headline("probe_ablation", "ukdale", "transformer", {"rmse_increase_percent": 90.0})
    few = headline("probe_ablation", "ukdale", "cnn", {"rmse_increase_percent": 70.0})
    made += [replace(card, seeds=(0, 1)) for card in few]
    rows = csv.DictReader(StringIO(comparisons_csv(claims(results_of(made)))))
    one = next(row for row in rows if "transformer over CNN" in row["row"])
    assert (one["ours"], one["seeds"], one["days"]) == ("20.0", "2", "1")


def test_training_takes_hours_in_the_paper_and_seconds_on_a_card():
    made = battery("baseline_comparison", "ukdale", "ours", {"training_seconds": 1800.0})
    assert Recorded(made).find("ours", "training_hours").value == 0.5


def test_the_leaderboard_ranks_by_adaptive_attackers_and_puts_what_never_met_one_last():
    made = []
    for label, adaptive, fixed in (("a", 0.5, 0.1), ("b", 0.3, 0.4), ("c", None, 0.0)):
        made += headline("baseline_comparison", "redd", label, {"strongest_f1": fixed, "prior_f1": 0.2})
        if adaptive is not None:
            made += headline("baseline_comparison", "redd", label, {"strongest_f1": adaptive}, "adaptive")
    (board,) = boards(results_of(made))
    assert [one.label for one in board.standings] == ["b", "a", "c"]
    assert board.prior_f1 == 0.2


def board_of(**attackers):
    """A board whose attackers of each threat model read another share of the bare meter."""
    made, levels = [], {"fixed": 0.9, "adaptive": 0.7}
    for threat, names in attackers.items():
        columns = {"strongest_f1": 0.5, "strongest_f1_raw": levels[threat], "prior_f1": 0.2}
        made += headline("many_days", "redd", "flat", columns, threat, attackers=names)
    made += battery("many_days", "redd", "flat", {"throughput_kwh": 4.0})
    (board,) = boards(results_of(made))
    return made, board


@pytest.mark.parametrize(("threats", "drawn"), [(("fixed", "adaptive"), 0.7), (("fixed",), 0.9)])
def test_the_level_without_a_defence_is_that_of_the_attackers_that_are_drawn(threats, drawn):
    _, board = board_of(**dict.fromkeys(threats, ("fhmm",)))
    assert (board.threat, board.raw_f1) == (threats[-1], drawn)
    lines = [shape.y0 for shape in board_chart(board).layout.shapes]
    assert lines == [drawn, 0.2]


def test_a_level_of_other_attackers_is_drawn_for_none():
    made = headline("many_days", "redd", "flat", {"strongest_f1": 0.5, "strongest_f1_raw": 0.9})
    made += headline("many_days", "redd", "flat", {"strongest_f1": 0.5}, "adaptive")
    (board,) = boards(results_of(made))
    assert board.raw_f1 is None
    assert board_chart(board) is None


def test_a_board_says_who_read():
    made, board = board_of(fixed=("co", "fhmm", "bert4nilm"), adaptive=("fhmm",))
    words = "Adaptive attackers: FHMM. Fixed attackers: CO, FHMM, BERT4NILM."
    assert board_words(board) == words
    assert words in report_page(results_of(made))
    assert board_words(board_of(adaptive=())[1]) == ""


@pytest.mark.parametrize(
    ("threats", "said"),
    [
        ({"none": ("adaptive", "fixed"), "flat": ("adaptive", "fixed")}, ""),
        (
            {"none": ("fixed",), "flat": ("adaptive", "fixed")},
            "Those without a rank met fixed attackers alone",
        ),
        ({"none": ("fixed",), "flat": ("fixed",)}, "so there is no rank"),
    ],
)
def test_a_board_says_where_a_rank_is_missing(threats, said):
    made = []
    for label, kinds in threats.items():
        for threat in kinds:
            made += headline("baseline_comparison", "ukdale", label, {"strongest_f1": 0.5}, threat)
    (board,) = boards(results_of(made))
    words = board_words(board)
    assert said in words
    assert bool(words) == bool(said)
    assert ("rank" in board_rows(board)[0]) == any("adaptive" in kinds for kinds in threats.values())


def test_events_are_those_that_the_best_attacker_finds_and_information_is_a_mean():
    made = headline("many_days", "redd", "flat", {"strongest_f1": 0.3})
    for attacker, target, value in (("co", "fridge", 0.2), ("co", "lighting", 0.4), ("dae", "fridge", 0.25)):
        made += case("many_days", "redd", "flat", attacker, target, {"event_f1": value})
    made += [Card("many_days", "meter fridge, flat", "information_bits", "redd", 0.2)]
    made += [Card("many_days", "meter lighting, flat", "information_bits", "redd", 0.1)]
    (board,) = boards(results_of(made))
    assert board.standings[0].event_f1.value == pytest.approx(0.3)
    assert board.standings[0].information_bits.value == pytest.approx(0.15)


def test_an_evaluation_stands_in_until_the_comparison_is_recorded():
    early = row_of("evaluation_paper_day", "redd", "flat", 3)
    late = row_of("baseline_comparison", "redd", "flat", 3)
    assert [board.table for board in boards(results_of(early))] == ["evaluation_paper_day"]
    assert [board.table for board in boards(results_of([*early, *late]))] == ["baseline_comparison"]


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([(2, 1), (5, 1)], "2 to 5 seeds, one day."),
        ([(5, 126), (5, 98)], "5 seeds, 98 to 126 days."),
        ([(1, 9)], "1 seed, 9 days."),
        ([], ""),
    ],
)
def test_rows_of_fewer_seeds_or_days_are_not_counted_as_the_most(counts, words):
    found = [Found(1.0, seeds=seeds, n_days=days) for seeds, days in counts]
    rows = [
        Comparison("many_days", "redd", "ours", "soc_end", "beyond the paper", ours=ours) for ours in found
    ]
    assert measured_words(rows) == words


def test_csv_holds_every_figure_unrounded():
    made = headline("overall_transfer", "redd", "ours", {"rmse_increase_percent": 101.23456}, days=7)
    found = compare(SPEC["overall_transfer"], "redd", results_of(made))
    row = next(csv.DictReader(StringIO(comparisons_csv(found))))
    assert (row["paper"], row["ours"], row["seeds"], row["days"]) == ("165.9", "101.23456", "5", "7")
    assert float(row["low"]) == pytest.approx(91.111104)
    assert (row["verdict"], row["gap"]) == ("worse", "-64.7, allowed ±16.6")


def test_latex_prints_what_was_written():
    assert escape_latex(r"5 % of_a & {b} \ $3 #1 ~^") == (
        r"5 \% of\_a \& \{b\} \textbackslash{} \$3 \#1 \textasciitilde{}\textasciicircum{}"
    )
    text = latex([["", "F1 Red. %"], ["rule_based", "▲ 0.5±0.1"]], "a & b")
    assert r"rule\_based & $\uparrow$ 0.5$\pm$0.1 \\" in text
    assert r"\caption{a \& b}" in text
    assert r"\begin{tabular}{lr}" in text


def test_claims_for_latex_have_paragraphs_of_words_and_no_commands():
    made = headline("overall_transfer", "ukdale", "ours", {"f1_reduction_percent": 50.0})
    text = claims_tex(results_of(made))
    assert r"\begin{tabular}{p{0.28\textwidth}lrrp{0.28\textwidth}}" in text
    assert "\nclaim & verdict & paper & ours & why \\\\\n" in text
    assert "the reward pays watts" in text
    assert "meterveil reproduce" not in text


def test_rows_that_the_paper_does_not_have_follow_in_the_order_of_their_numbers():
    made = [
        card
        for weight in ("0.25", "10", "0", "1")
        for card in headline("lambda_sweep", "ukdale", f"lambda {weight}", {"rmse_increase_percent": 1.0})
    ]
    rows = pivot_rows(compare(SPEC["lambda_sweep"], "ukdale", results_of(made)))
    assert [row[0] for row in rows[1:]] == ["lambda 0", "lambda 0.25", "lambda 1", "lambda 10"]


def test_the_main_battery_is_a_point_of_every_curve():
    results = results_of(reproduction())
    figure = sensitivity_chart(compare(SPEC["battery_sensitivity"], "ukdale", results))
    measured = [trace for trace in figure.data if trace.name == "RMSE Inc. %, measured"]
    assert [trace.x for trace in measured] == [(2, 4, 8, 12), (1, 2, 4, 6), (2, 4, 6, 8)]


def test_pictures_are_left_out_where_nothing_was_measured():
    assert pareto_chart(compare(SPEC["lambda_sweep"], "ukdale", results_of([]))) is None
    assert cases_chart("redd", results_of([])) is None


def test_the_page_says_which_tables_are_missing_and_shows_the_others(tmp_path):
    cards.write(tmp_path, row_of("probe_ablation", "ukdale", "transformer", 3))
    page = report_page(read_results(tmp_path))
    assert "<h2>Which probe, UK-DALE</h2>" in page
    assert "<h2>Which battery, UK-DALE</h2>" not in page
    left = page.split("<h2>Not run yet</h2>")[1].split("</section>")[0]
    assert "<span>battery_sensitivity</span>" in left
    assert left.count("<span>gap_to_chance</span>") == 4
    assert "±0.1 of the share or 10 %" in page


def test_all_of_the_papers_figures_are_compared():
    found = all_comparisons(results_of(reproduction()))
    adaptive = {f"{name}_adaptive" for name in SPEC}
    assert set(found) == {*SPEC, *adaptive, "attacker_ukdale", "attacker_redd"}
    assert len(found["attacker_redd"]) == 138
    printed = [one for one in found["battery_sensitivity"] if one.paper is not None]
    assert len(printed) == 50
