"""`meterveil report` as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.report.files import BEGIN, END, markdown
from meterveil.bench.report.reading import read_results
from meterveil.cli import app
from report_cards import headline, write_reproduction

RECORDED = Path(__file__).parents[1] / "results"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of every table."""
    return write_reproduction(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Results of one table."""
    folder = tmp_path_factory.mktemp("few")
    cards.write(folder, headline("overall_transfer", "ukdale", "ours", {"rmse_increase_percent": 101.8}))
    return folder


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["report", *(str(word) for word in words)])


def test_a_report_ends_with_a_page_and_tables(report, whole, tmp_path):
    result = report("--results", whole)
    assert result.exit_code == 0, result.output
    assert "UK-DALE: attackers' RMSE rises" in result.output
    assert (tmp_path / "out/report/report.html").exists()
    names = {path.name for path in (tmp_path / "out/report/tables").iterdir()}
    assert {"claims.csv", "battery_sensitivity.csv", "battery_sensitivity_ukdale.tex"} <= names
    assert "leaderboard_many_days_ukdale.csv" in names


def test_a_report_is_written_over_an_older_one_but_not_over_foreign_tables(report, few, tmp_path):
    assert report("--results", few).exit_code == 0
    assert report("--results", few).exit_code == 0
    (tmp_path / "mine/tables").mkdir(parents=True)
    (tmp_path / "mine/tables/claims.csv").write_text("my own")
    result = report("--results", few, "--out", "mine")
    assert result.exit_code == 2
    assert "holds claims.csv and no report beside it" in result.output
    assert (tmp_path / "mine/tables/claims.csv").read_text() == "my own"


def test_the_recorded_results_make_a_report(report, tmp_path):
    result = report("--results", RECORDED)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out/report/report.html").read_text()
    assert "<h2>Attackers on the bare meter, REDD</h2>" in page


def test_what_a_kill_left_beside_the_cards_does_not_stop_a_report(report, tmp_path):
    made = headline("overall_transfer", "ukdale", "ours", {"rmse_increase_percent": 101.8})
    [written] = cards.write(tmp_path / "results", made)
    written.with_name(f".{written.stem}-x1y2z3.json").touch()
    result = report()
    assert result.exit_code == 0, result.output
    assert "101.8" in result.output


def test_what_was_not_run_is_named_with_its_command(report, tmp_path):
    cards.write(tmp_path / "results", [Card("strength_1", "co fridge", "f1", "redd", measured=0.5)])
    result = report()
    assert result.exit_code == 0, result.output
    assert "note: not run yet, all: meterveil reproduce --table probe_ablation\n" in result.output
    page = (tmp_path / "out/report/report.html").read_text()
    left = page.split("<h2>Not run yet</h2>")[1]
    assert "<span>--table</span> <span>lambda_sweep</span></small>" in left


def test_claims_go_between_the_marks_of_a_readme(report, few, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- claims: meterveil report -->\nold\n<!-- end of claims -->\nafter\n")
    for _ in range(2):
        assert report("--results", few, "--markdown", readme).exit_code == 0
    text = readme.read_text()
    assert text.startswith(
        "before\n<!-- claims: meterveil report -->\n| claim | paper | ours | verdict | why |"
    )
    assert text.endswith("<!-- end of claims -->\nafter\n")
    assert "\nold\n" not in text
    [card] = json.loads(next(few.rglob("*.json")).read_text())
    source = f"`overall_transfer` {card['commit']}"
    row = f"| UK-DALE: attackers' RMSE rises, % | 107.1 | 101.8 | reproduced |  | {source} |"
    assert text.count(row) == 1


def test_a_readme_without_marks_is_left_alone(report, few, tmp_path):
    (tmp_path / "README.md").write_text("mine\n")
    result = report("--results", few, "--markdown", "README.md")
    assert result.exit_code == 2
    assert "does not say where the claims go" in result.output
    assert (tmp_path / "README.md").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "co-fridge.json is no file of result cards"),
        ('{"some": "document"}', "co-fridge.json is no file of result cards"),
        ('[{"table": "t"}]', "0.key: Field required"),
        ("NaN", "co-fridge.json is no file of result cards"),
    ],
)
def test_a_damaged_or_foreign_card_is_named_and_nothing_is_written(report, tmp_path, content, message):
    (path,) = cards.write(tmp_path / "results", [Card("t", "co fridge", "f1", "redd", measured=0.5)])
    path.write_text(content)
    result = report()
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_a_figure_that_is_no_number_and_a_card_in_a_foreign_folder_are_refused(report, tmp_path):
    (path,) = cards.write(tmp_path / "results", [Card("t", "co fridge", "f1", "redd", measured=0.5)])
    (document,) = json.loads(path.read_text())
    path.write_text(json.dumps([document | {"measured": float("inf")}]))
    assert "0.measured: Input should be a finite number" in report().output
    path.write_text(json.dumps([document | {"dataset": "ukdale"}]))
    assert "holds a card of t/ukdale" in report().output


def test_no_results_is_said(report, tmp_path):
    assert "results is no folder of results" in report().output
    (tmp_path / "results").mkdir()
    assert "holds no result cards" in report().output


def test_a_report_needs_nothing_that_trains(whole, tmp_path):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'joblib', 'scipy', 'safetensors', 'ray'])); "
        "from meterveil.cli import app; app(['report', '--results', sys.argv[1]])"
    )
    subprocess.run([sys.executable, "-c", code, str(whole)], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out/report/report.html").exists()


def test_the_readme_claims_what_the_recorded_results_say():
    root = Path(__file__).parents[1]
    claimed = (root / "README.md").read_text().partition(BEGIN)[2].partition(END)[0]
    assert claimed.strip() == markdown(read_results(root / "results")).strip()


def test_two_folders_of_results_are_compared_digit_by_digit(report, few, tmp_path):
    again, other = tmp_path / "again", tmp_path / "other"
    cards.write(again, headline("overall_transfer", "ukdale", "ours", {"rmse_increase_percent": 101.8}))
    cards.write(other, headline("overall_transfer", "ukdale", "ours", {"rmse_increase_percent": 101.801}))
    cards.write(again, [Card("overall_transfer", "battery, ours", "training_seconds", "ukdale", 5.0)])
    cards.write(other, [Card("overall_transfer", "battery, ours", "soc_end", "ukdale", 0.9)])
    same = report("--results", few, "--against", again)
    assert same.exit_code == 0, same.output
    assert "overall_transfer ukdale 1 0 0 0" in " ".join(same.output.split())
    different = report("--results", few, "--against", other)
    assert different.exit_code == 1
    assert "overall_transfer ukdale 0 1 0 1" in " ".join(different.output.split())
    assert "rmse_increase_percent: 101.8 here, 101.801 there" in " ".join(different.output.split())
    assert not (tmp_path / "out").exists()
    cards.write(again, [Card("behaviour", "ours", "soc_end", "redd", 0.9)])
    assert "in one folder alone: behaviour, redd" in report("--results", few, "--against", again).output


def test_folders_that_share_no_table_are_not_called_the_same(report, few, tmp_path):
    cards.write(tmp_path / "other", [Card("behaviour", "ours", "soc_end", "redd", 0.9)])
    result = report("--results", few, "--against", tmp_path / "other")
    assert result.exit_code == 2
    assert "share no table" in result.output


def test_every_leaderboard_is_saved_as_a_picture(report, tmp_path, chromium):
    figures = {"strongest_f1": 0.3, "strongest_f1_raw": 0.8, "prior_f1": 0.2}
    made = headline("many_days", "redd", "ours", figures)
    made += [Card("many_days", "battery, ours", "throughput_kwh", "redd", 8.0)]
    cards.write(tmp_path / "results", made)
    result = report("--leaderboards", "pictures")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "pictures/leaderboard-many-days-redd.png").stat().st_size > 10_000


def test_both_sides_of_a_claim_stand_side_by_side_in_a_narrow_terminal(report, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    root = Path(__file__).parents[1]
    result = report("--results", root / "results", "--pictures", root / "docs/img")
    assert result.exit_code == 0, result.output
    heads = [line for line in result.output.splitlines() if line.startswith("claim ")]
    assert [head.split() for head in heads] == [["claim", "paper", "ours", "verdict"]]
