"""`meterveil report`, `meterveil results` and `meterveil submit` as a user types them."""

import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

from command_line import printed, refused, run
from meterveil.bench import results
from meterveil.bench.report.claims import CLAIMS, markdown, marks
from meterveil.bench.report.comparison import summaries
from meterveil.bench.submission import read_submission, write_submission
from meterveil.data import outputs
from meterveil.errors import InputError

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "results"
COMMIT = "0123abc"


@pytest.fixture(scope="module")
def recorded():
    return results.read(RECORDED)


@pytest.fixture
def few(tmp_path, recorded):
    """Results of one cell: ours on the paper's day of UK-DALE."""
    return written(tmp_path / "few", results.where(recorded, dataset="ukdale", days="paper", defence="ours"))


def written(folder, figures, runs=True):
    """Write figures as a folder of results, with runs from a clean checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "figures.csv").write_text(results.to_csv(figures))
    keys = figures["run"].unique() if runs else []
    settings = {"training": ["2013-03-19", "2013-03-28"], "test": ["2013-03-18", "2013-03-18"]}
    described = [results.Run(key, settings, commit=COMMIT) for key in keys]
    (folder / results.RUNS).write_text(results.runs_text(described))
    return folder


def test_a_report_ends_with_a_page_and_claims_and_names_what_is_not_measured(few, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("\n".join([*marks(CLAIMS), ""]))
    result = run("report", "--results", few, "--out", tmp_path / "out", "--markdown", readme)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out/report.html").exists()
    row = "| UK-DALE, the paper's test day: attackers' F1 falls, % | 79.3 | 59.2±3.3 | worse |"
    assert row in readme.read_text()
    assert f"| {COMMIT} |" in readme.read_text()
    assert "177.6±8.8" in result.output
    assert "meterveil reproduce --table overall_transfer --dataset redd" in printed(result)


def test_a_report_needs_nothing_that_trains(few, tmp_path):
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'joblib', 'scipy', 'safetensors', 'ray'])); "
        "from meterveil.cli import app; app(['report', '--results', sys.argv[1]])"
    )
    subprocess.run([sys.executable, "-c", code, str(few)], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "out/report/report.html").exists()


def test_a_folder_without_results_and_a_damaged_file_are_named(few, tmp_path):
    assert "holds no results" in refused("report", "--results", tmp_path / "none", "--out", tmp_path / "out")
    (few / "figures.csv").write_text("dataset,house\nredd,2\n")
    assert "figures.csv" in refused("report", "--results", few, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_readme_and_threat_model_say_what_the_recorded_results_say(recorded):
    whole = summaries(recorded)
    tables = {("README.md", CLAIMS): markdown(whole, results.read_runs(RECORDED))}
    for (page, name), table in tables.items():
        begin, end = marks(name)
        said = (ROOT / page).read_text().partition(begin)[2].partition(end)[0]
        assert said.strip() == table.strip(), f"run meterveil report --markdown {page}"


def test_two_folders_are_compared_and_a_difference_ends_with_status_1(few, tmp_path):
    again = Path(shutil.copytree(few, tmp_path / "again"))
    same = run("report", "--results", few, "--against", again)
    assert same.exit_code == 0, same.output
    text = (again / "figures.csv").read_text()
    (again / "figures.csv").write_text(text.replace("59.1869", "59.1868"))
    different = run("report", "--results", few, "--against", again)
    assert different.exit_code == 1
    assert "f1_reduction_percent: 59.1869 here, 59.1868 there" in printed(different)
    other = written(tmp_path / "other", results.read(few).assign(dataset="synthetic"))
    assert "share no figure" in refused("report", "--results", few, "--against", other)


def test_a_leaderboard_is_saved_as_a_picture(recorded, tmp_path, chromium):
    folder = written(tmp_path / "one", results.where(recorded, dataset="redd", days="paper"))
    pictures = ("--out", tmp_path / "out", "--leaderboards", tmp_path)
    result = run("report", "--results", folder, *pictures)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "leaderboard-redd-paper.png").stat().st_size > 10_000


def test_results_are_queried_as_csv(recorded):
    where = "dataset=ukdale,house=1,days=held_out,defence=flat|ours,threat=adaptive,attacker=strongest,metric=f1"
    result = run("results", "--results", RECORDED, "--where", where)
    table = pd.read_csv(StringIO(result.output))
    assert dict(zip(table.defence, table.value, strict=True)) == {"flat": 0.618684, "ours": 0.505592}
    assert "column" in refused("results", "--results", RECORDED, "--where", "row=flat")
    nothing = refused("results", "--results", RECORDED, "--where", "dataset=redd,house=1,defence=veil,threat=adaptive")
    assert "no figure meets all conditions" in nothing
    mistyped = refused("results", "--results", RECORDED, "--where", "defence=flat_decoy")
    assert "no defence 'flat_decoy'; did you mean flat_decoys" in " ".join(mistyped.split())


@pytest.fixture
def entry(recorded):
    """Complete entry for a leaderboard: `flat` as `cap`, beside the random baseline."""
    chosen = results.where(recorded, dataset="redd", days="held_out", defence=["flat", "random_equal"])
    return chosen.replace({"defence": {"flat": "cap"}})


def problems(folder, figures):
    return " | ".join(f"{where}: {what}" for where, what in read_submission(written(folder, figures)).problems)


def test_a_complete_submission_is_copied_and_ranked(entry, recorded, tmp_path):
    home = written(tmp_path / "results", results.where(recorded, dataset="redd", days="held_out"))
    folder = written(tmp_path / "theirs", entry)
    check = run("submit", folder, "--name", "lab", "--results", home, "--check")
    assert check.exit_code == 0, check.output
    assert not (home / "submitted").exists()
    assert run("submit", folder, "--name", "lab", "--results", home).exit_code == 0
    copied = results.read(home / "submitted/lab")
    assert results.to_csv(copied) == results.to_csv(entry)
    assert run("report", "--results", home, "--out", tmp_path / "out").exit_code == 0
    assert "cap (submitted: lab)" in (tmp_path / "out/tables/leaderboard_redd_held_out.csv").read_text()


def test_a_submission_waits_while_another_process_writes_results(entry, tmp_path):
    copying = Thread(target=write_submission, args=(tmp_path, "lab", entry, {}))
    with outputs.locked(tmp_path):
        copying.start()
        copying.join(0.5)
        assert copying.is_alive()
        assert not list(tmp_path.iterdir())
    copying.join(30.0)
    assert len(results.read(tmp_path / "submitted/lab")) == len(entry)


def test_figures_that_were_submitted_are_never_changed(entry, tmp_path):
    runs = read_submission(written(tmp_path / "theirs", entry)).runs
    for _ in range(2):
        write_submission(tmp_path, "lab", entry, runs)
    with pytest.raises(InputError, match="another name"):
        write_submission(tmp_path, "lab", entry.assign(value=entry["value"] + 1), runs)
    with pytest.raises(InputError, match="name is"):
        write_submission(tmp_path, "../lab", entry, runs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": float("inf")}, "finite"),
        ({"threat": "blind"}, "threat"),
        ({"spread": -1.0}, "spread"),
        ({"seeds": 0}, "seeds"),
        ({"low": 2.0, "high": 1.0}, "order"),
        ({"run": "unknown"}, "does not describe"),
    ],
)
def test_a_wrong_row_is_named(entry, tmp_path, change, words):
    figures = entry.reset_index(drop=True)
    folder = written(tmp_path, figures)
    figures.loc[0, list(change)] = list(change.values())
    (folder / "figures.csv").write_text(results.to_csv(figures))
    assert words in " ".join(what for _, what in read_submission(folder).problems)


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        ({"threat": "adaptive"}, "adaptive attackers"),
        ({"metric": "soc_neutral_cost"}, "battery figures"),
        ({"attacker": "prior"}, "prior f1"),
        ({"defence": "random_equal"}, "random_equal:3.95"),
    ],
)
def test_an_incomplete_entry_says_what_is_missing(entry, tmp_path, dropped, words):
    [(column, value)] = dropped.items()
    assert words in problems(tmp_path, entry[entry[column] != value])


def test_a_required_figure_may_be_empty_where_the_note_says_why(entry, tmp_path):
    costs = entry["metric"] == "soc_neutral_cost"
    empty = entry.assign(value=entry["value"].mask(costs))
    assert "soc_neutral_cost" in problems(tmp_path, empty)
    explained = empty.assign(note=empty["note"].mask(costs, "not measured: no tariff"))
    assert problems(tmp_path, explained) == ""


@pytest.mark.parametrize("commit", ["", "0123abc-dirty", "yesterday"])
def test_a_run_names_a_clean_commit(entry, tmp_path, commit):
    folder = written(tmp_path, entry)
    runs = [results.Run(key, {"training": "x"}, commit=commit) for key in entry["run"].unique()]
    (folder / results.RUNS).write_text(results.runs_text(runs))
    found = " ".join(what for _, what in read_submission(folder).problems)
    assert "clean git checkout" in found
    assert "settings lack test" in found


def test_an_incomplete_submission_writes_nothing(entry, tmp_path):
    folder = written(tmp_path / "theirs", entry[entry["threat"] != "fixed"])
    result = run("submit", folder, "--name", "lab", "--results", tmp_path)
    assert result.exit_code == 2
    assert "nothing was written" in printed(result)
    assert not (tmp_path / "submitted").exists()


def test_a_baseline_that_moves_too_little_does_not_count(entry, tmp_path):
    moved = entry["metric"].eq("throughput_kwh") & entry["defence"].eq("random_equal")
    assert "random baseline" not in problems(tmp_path, entry.assign(value=entry["value"].mask(moved, 3.6)))
    assert "random baseline" in problems(tmp_path, entry.assign(value=entry["value"].mask(moved, 3.5)))
