"""The report: the paper's figures joined with ours, verdicts, leaderboards, claims, and the files."""

import math
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from meterveil.bench import results
from meterveil.bench.metrics import MOST_BELOW_PRIOR, UNDERTRAINED
from meterveil.bench.report import cells, claims, comparison
from meterveil.bench.report.comparison import METRICS, judge, reason, summaries
from meterveil.bench.report.leaderboard import boards
from meterveil.bench.report.report_page import Report, read_report, report_page, write_report
from meterveil.bench.reported import TABLES as PRINTED
from meterveil.bench.reported import figures as printed
from meterveil.bench.reproduce.experiments import TABLES
from meterveil.bench.results import Figure, diff
from meterveil.errors import InputError

RECORDED = Path(__file__).parents[2] / "results"
NAN = float("nan")


@pytest.fixture(scope="module")
def report():
    return read_report(RECORDED)


def table_of(*figures):
    table = pd.DataFrame([asdict(figure) for figure in figures])
    return table.astype(dict.fromkeys(results.NUMBERS, "float64"))


def headline(defence="ours", threat="fixed", days="paper", dataset="ukdale", **values):
    """Figures of one defence; `strongest_f1=0.3` is a figure of the strongest attacker."""
    house = {"ukdale": 1, "redd": 2}[dataset]
    found = []
    for name, value in values.items():
        attacker = next((one for one in ("strongest", "prior") if name.startswith(one)), "all")
        metric = name.removeprefix(f"{attacker}_")
        seeds = 0 if math.isnan(value) else 5
        cell = Figure(dataset, house, days, "mains", defence, "8/4/8", threat, "10 days", attacker, "all", metric)
        found.append(Figure(**{**asdict(cell), "value": value, "seeds": seeds}))
    return found


def cell(frame, **where):
    [row] = results.where(frame, **where).to_dict("records")
    return row


@pytest.mark.parametrize(
    ("metric", "paper", "ours", "verdict"),
    [
        ("rmse_increase_percent", 100.0, 110.0, "reproduced"),
        ("rmse_increase_percent", 100.0, 110.1, "better"),
        ("rmse_increase_percent", 100.0, 89.0, "worse"),
        ("rmse_increase_percent", 10.0, 15.0, "reproduced"),
        ("f1_masked", 0.2, 0.26, "worse"),
        ("f1_masked", 0.2, 0.14, "better"),
        ("f1_raw", 0.2, 0.4, "differs"),
        ("total_cost", -0.764, 0.981, "worse"),
        ("total_cost", NAN, 0.5, "beyond the paper"),
        ("total_cost", 0.5, NAN, "not measured"),
    ],
)
def test_a_verdict_follows_from_tolerance_and_direction(metric, paper, ours, verdict):
    assert judge(metric, paper, ours) == verdict


def test_a_reason_is_given_for_our_own_defence_alone():
    assert "leaves the evening unprotected" in reason("t", "ours_lstm", "f1_reduction_percent", "worse")
    assert reason("t", "ddql_mi", "f1_reduction_percent", "worse") == ""
    assert reason("t", "ours", "f1_reduction_percent", "reproduced") == ""


@pytest.mark.parametrize("name", [name for name in PRINTED if not name.startswith("attacker_")])
def test_every_printed_figure_has_a_row_and_a_column_on_the_page(name):
    rows = {row.label for row in TABLES[name].rows}
    assert set(printed(name)["label"]) <= rows
    assert set(printed(name)["metric"]) <= set(TABLES[name].columns) <= set(METRICS)


def test_a_count_compares_as_a_share_of_its_cases(report):
    row = cell(report.tables["overall_transfer"], dataset="ukdale", metric="f1_significant")
    assert (row["paper"], row["paper_cases"], row["value"], row["cases"]) == (24, 24, 17, 18)
    assert row["verdict"] == "reproduced"
    assert cells.ours_text(row) == "≈\u00a017/18"


def test_a_figure_that_cannot_be_measured_stays_in_its_table_with_the_reason(report):
    row = cell(report.tables["heldout_day_generalization"], label="2013-03-30 house 4", metric="f1_raw")
    assert row["verdict"] == "not measured"
    assert "house 4" in row["reason"].lower()
    toaster = results.where(report.tables["attacker_ukdale"], appliance="toaster")
    assert set(toaster["verdict"]) == {"not measured"}


def test_means_over_cases_are_those_of_the_papers_six_attackers(report):
    ours = results.where(report.figures, dataset="ukdale", days="paper", defence="ours", battery="8/4/8")
    rmse = ours[(ours.threat == "fixed") & (ours.metric == "rmse") & (ours.appliance != "aggregate")]
    rmse = rmse[rmse.change.notna()]
    assert len(rmse) == 18
    row = cell(report.tables["heldout_day_generalization"], label="2013-03-18 house 1", metric="rmse_raw_w")
    assert row["value"] == pytest.approx((rmse.value - rmse.change).mean())


def test_the_papers_tables_are_recorded_and_a_lost_row_is_listed_with_its_command(report):
    def missing(whole):
        rows = comparison.missing(whole)
        return rows[rows["table"].isin(PRINTED) & (rows["threat"] == "fixed")]

    assert len(missing(report.whole)) == 0
    is_lost = (report.whole["defence"] == "ours_cnn") & (report.whole["threat"] == "fixed")
    [row] = missing(report.whole[~is_lost]).to_dict("records")
    assert (row["rows"], row["command"]) == ("cnn", "meterveil reproduce --table probe_ablation")
    few = report.whole.assign(seeds=report.whole["seeds"].clip(upper=2))
    assert "meterveil reproduce --table overall_transfer --dataset redd" in set(comparison.missing(few)["command"])


def test_adaptive_tables_hold_only_rows_that_adaptive_attackers_have_read(report):
    rows = report.adaptive["baseline_comparison"]
    recorded = results.where(results.read(RECORDED), threat="adaptive", days="paper")
    compared = {row.label for row in TABLES["baseline_comparison"].rows}
    assert {"none", "ours", "veil"} < set(rows["label"]) == compared & set(recorded["defence"])
    assert set(rows["verdict"]) == {"beyond the paper"}


def ranked(*defences):
    """Boards of defences given as (name, adaptive F1, fixed F1); without a defence F1 is 0.8."""
    figures = []
    for name, adaptive, fixed in defences:
        figures += headline(name, "fixed", strongest_f1=fixed, strongest_f1_undefended=0.8)
        if adaptive is not None:
            figures += headline(name, "adaptive", strongest_f1=adaptive, strongest_f1_undefended=0.8, prior_f1=0.2)
    table = table_of(*figures)
    return boards(table, summaries(table))


def test_a_leaderboard_ranks_by_the_strongest_adaptive_attacker():
    entries = [("flat", 0.3, 0.1), ("ours", 0.25, 0.5), ("random", None, 0.05)]
    [board] = ranked(*entries)
    assert list(board.entries["defence"]) == ["ours", "flat", "random"]
    assert list(board.entries["rank"]) == ["1", "2", ""]


def test_leaks_of_a_board_share_one_figure_without_a_defence():
    figures = []
    for name, adaptive, undefended in (("none", 0.8, 0.8), ("flat", 0.5, 0.7)):  # flat has a later fit of its own
        figures += headline(name, "adaptive", strongest_f1=adaptive, strongest_f1_undefended=undefended, prior_f1=0.2)
    table = table_of(*figures)
    [board] = boards(table, summaries(table))
    assert board.entries.set_index("defence")["leak"].to_dict() == pytest.approx({"none": 1.0, "flat": 0.5})
    [head, *rows] = cells.board_rows(board)
    assert sorted(row[head.index("leak")] for row in rows) == ["100\u00a0%", "50\u00a0%"]


def test_a_defence_read_below_habits_is_undertrained_also_where_no_attacker_reads_more_than_habits():
    figures = []
    for name, adaptive in (("none", 0.2), ("flat", 0.1)):
        figures += headline(name, "adaptive", strongest_f1=adaptive, strongest_f1_undefended=0.2, prior_f1=0.2)
    table = table_of(*figures)
    [board] = boards(table, summaries(table))
    assert board.entries.set_index("defence")["rank"].to_dict() == {"none": "1", "flat": ""}
    [head, *rows] = cells.board_rows(board)
    assert {row[head.index("leak")] for row in rows} == {"unknown", UNDERTRAINED}


def test_an_undertrained_attacker_does_not_lift_a_defence_above_one_that_tells_habits():
    [board] = ranked(("ours", 0.19, 0.1), ("veil", 0.2001, 0.3))
    assert list(board.entries["defence"]) == ["veil", "ours"]


def test_an_undertrained_attacker_is_named_and_far_below_the_prior_the_defence_has_no_rank():
    [board] = ranked(("flat", 0.3, 0.1), ("flat_decoys", 0.1, 0.1), ("ours", 0.19, 0.3))
    assert list(board.entries["defence"]) == ["ours", "flat", "flat_decoys"]
    assert list(board.entries["rank"]) == ["1", "2", ""]
    [_, *rows] = cells.board_rows(board)
    assert [UNDERTRAINED in row for row in rows] == [True, False, True]
    assert "no success of the defence" in cells.board_text(board)
    [head, *rows] = cells.informed_rows([replace(board, days="held_out")])
    assert head == ["defence", "UK-DALE house 1, one day"]
    assert rows == [
        ["ours", "0.19 (undertrained)"],
        ["flat", "0.30 (17\u00a0%)"],
        ["flat with decoys", "0.10 (undertrained)"],
        ["habits alone", "0.20"],
    ]


def test_the_recorded_boards_are_the_papers_houses_and_two_more_and_the_veil_leads(report):
    boards_by_name = {board.name: board for board in report.boards}
    days = ("held_out", "paper")
    ours = {f"leaderboard_{dataset}_{day}" for dataset in ("redd", "ukdale") for day in days}
    assert set(boards_by_name) == {*ours, "leaderboard_refit_2_held_out", "leaderboard_ukdale_2_held_out"}
    assert all(set(board.attackers["adaptive"]) == {"informed"} for board in report.boards)
    held_out = boards_by_name["leaderboard_ukdale_held_out"].entries.set_index("defence")
    assert held_out.loc["veil", "rank"] == "1"
    assert held_out.loc["flat", "leak"] > 0.7
    for board in report.boards:
        assert (board.entries["adaptive"].dropna() >= board.prior_f1 - MOST_BELOW_PRIOR).all(), board.name


@pytest.mark.parametrize(("drop", "joins"), [("", True), ("informed", False)])
def test_a_submission_joins_our_board_where_at_least_our_attackers_read_it(report, drop, joins):
    theirs = results.where(report.figures, dataset="redd", days="held_out", defence=["flat", "random_equal"])
    theirs = theirs[theirs["attacker"] != drop].replace({"defence": {"flat": "cap"}})
    found = boards(report.figures, report.whole, {"lab": theirs})
    home = next(board for board in found if board.name == "leaderboard_redd_held_out")
    assert ("cap (submitted: lab)" in set(home.entries["defence"])) is joins
    assert ("lab" in {board.submitted for board in found}) is not joins


def test_every_recorded_f1_lies_between_0_and_1(report):
    found = results.where(report.figures, metric=["f1", "f1_head", "event_f1"])
    values = found.loc[~found["defence"].str.contains(" minus "), "value"].dropna()
    assert values[~values.between(0.0, 1.0)].empty


def test_there_are_claims_with_the_papers_figure_beside_ours(report):
    found = claims.claims(report.whole)
    assert [(claim.paper, claim.verdict) for claim in found] == [
        ("107.1", "better"),
        ("79.3", "worse"),
        ("165.9", "better"),
        ("80.1", "worse"),
        ("-", "beyond the paper"),
        ("-", "beyond the paper"),
        ("-", "beyond the paper"),
    ]
    assert found[0].ours == "177.6±8.8"
    assert all(claim.as_published == "-" for claim in found[4:])
    assert [claim.ours[:4] for claim in found[4:6]] == ["0.51", "0.25"]
    assert all(claim.command.startswith("meterveil reproduce --table ") for claim in found)


def test_the_page_opens_with_six_lines(report):
    lines = claims.opening(report.whole, comparison.tally(report.tables))
    assert len(lines) == 6
    assert "459 figures" in lines[-1]


def test_a_line_without_figures_says_how_to_measure_them():
    table = table_of(*headline(rmse_increase_percent=101.8))
    found = Report.of(table)
    lines = claims.opening(found.whole, comparison.tally(found.tables))
    assert "not measured; run meterveil reproduce --table overall_transfer --dataset redd." in lines[1]
    [claim] = claims.claims(found.whole)
    assert (claim.paper, claim.as_published) == ("107.1", claims.UNKNOWN)
    assert claims.claim_rows([claim])[0] == ["claim", "paper", "ours", "verdict", "why"]
    beside = claims.claim_rows([claim._replace(as_published="98.7")])
    assert [row[1:4] for row in beside] == [["paper", "as published", "ours"], ["107.1", "98.7", "101.8"]]
    assert "overall_transfer" in report_page(found)


def test_claims_go_between_the_marks_of_a_file(tmp_path):
    path = tmp_path / "README.md"
    (begin, end), sections = claims.marks("claims"), {"claims": "| new |\n", "other": "| more |\n"}
    path.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        claims.write_markdown(path, sections)
    assert path.read_text() == f"before\n{begin}\n| new |\n{end}\nafter\n"
    for text, words in (("mine\n", "no place for a table"), (f"{end}\n{begin}\n", "claims in no clear place")):
        path.write_text(text)
        with pytest.raises(InputError, match=words):
            claims.write_markdown(path, sections)
        assert path.read_text() == text


def test_a_figure_is_written_with_spread_interval_and_p():
    row = {"value": -0.0291, "spread": 0.004, "low": -0.045, "high": -0.012, "p": 0.0004}
    assert cells.figure_text(row, 3).split() == ["-0.029±0.004", "(-0.045..-0.012),", "p", "<", "0.001"]
    assert cells.figure_text({"value": -0.0001}, 2) == "0.00"
    assert cells.figure_text({"value": NAN}, 2) == cells.figure_text(None, 2) == ""


def test_latex_escapes_what_it_would_read_as_a_command():
    text = cells.latex([["F1 Red. %", "ours"], ["a_b", "▲\u00a01±2"]], "50 % & more")
    assert r"\caption{50 \% \& more}" in text
    assert r"a\_b & $\uparrow$~1$\pm$2 \\" in text


def test_attackers_without_a_defence_stand_beside_the_papers(report):
    rows = cells.strength_rows(report.figures, "redd")
    assert rows[0][:3] == ["attacker", "RMSE, W, paper", "ours"]
    assert [row[0] for row in rows[1:7]] == ["CO", "FHMM", "DAE", "Seq2Point", "ELECTRIcity", "BERT4NILM"]
    others = cells.other_rows(report.figures)
    assert any("REFIT house 2" in row[0] and "trained on ukdale 1" in row[0] for row in others)
    adapting = cells.adapting_rows(report.figures)
    assert any(row[0].endswith("10 days x 12 copies, 30 epochs") for row in adapting)


def test_every_file_is_written_and_the_page_is_small(report, tmp_path):
    page = write_report(report, tmp_path / "out")
    assert page.stat().st_size < 1_500_000
    names = {path.name for path in (tmp_path / "out/tables").iterdir()}
    assert {"claims.csv", "claims.tex", "attacker_redd.tex", "many_days_adaptive_redd.tex"} <= names
    assert {"battery_sensitivity.csv", "battery_sensitivity_ukdale.tex", "leaderboard_ukdale_paper.csv"} <= names
    rows = pd.read_csv(tmp_path / "out/tables/baseline_comparison.csv")
    ours = rows[(rows.dataset == "ukdale") & (rows.label == "ours") & (rows.metric == "total_cost")]
    assert ours[["paper", "value", "verdict"]].values.tolist() == [[-0.764, 0.981396, "worse"]]
    small = Report.of(table_of(*headline(rmse_increase_percent=101.8)))
    write_report(small, tmp_path / "out")
    (tmp_path / "mine/tables").mkdir(parents=True)
    (tmp_path / "mine/tables/claims.csv").write_text("mine")
    with pytest.raises(InputError, match="no report beside it"):
        write_report(small, tmp_path / "mine")
    assert (tmp_path / "mine/tables/claims.csv").read_text() == "mine"


def test_two_tables_are_compared_digit_by_digit_all_but_times():
    here = table_of(*headline(rmse_increase_percent=101.8, f1_reduction_percent=60.0, training_seconds=5.0))
    there = table_of(*headline(rmse_increase_percent=101.801, f1_reduction_percent=60.0, training_seconds=9.0))
    found = diff(here, there)
    assert found.counts[1][-4:] == ["1", "1", "0", "0"]
    assert "rmse_increase_percent: 101.8 here, 101.801 there" in found.lines()[0]
    assert diff(here, here).different.empty
    assert diff(here, here.iloc[:1]).counts[1][-4:] == ["1", "0", "1", "0"]
