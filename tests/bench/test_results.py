"""The table of results: what is written is read again, and every query is a comparison of labels."""

import subprocess
from pathlib import Path
from threading import Thread

import pytest

from meterveil.bench import results
from meterveil.bench.results import Figure, Run
from meterveil.core.battery import Battery
from meterveil.data import outputs
from meterveil.errors import InputError

RECORDED = Path(__file__).parents[2] / "results"


def figure(**changes):
    known = {"dataset": "redd", "house": 2, "days": "paper", "defence": "flat", "threat": "fixed"}
    return Figure(**{**known, "metric": "f1", "value": 0.123456789, "run": "a", **changes})


def test_a_written_figure_is_read_with_six_digits(tmp_path):
    results.write(tmp_path, [figure(low=0.1, note="dae")], [Run("a", {"seeds": 5}, commit="c")])
    row = results.read(tmp_path).iloc[0]
    assert (row["value"], row["low"], row["note"]) == (0.123457, 0.1, "dae")
    assert row["high"] != row["high"]
    assert results.read_runs(tmp_path)["a"] == Run("a", {"seeds": 5}, commit="c")


def test_writing_waits_while_another_process_writes_results(tmp_path):
    writing = Thread(target=results.write, args=(tmp_path, [figure()], [Run("a", {})]))
    with outputs.locked(tmp_path):
        writing.start()
        writing.join(0.5)
        assert writing.is_alive()
        assert not list(tmp_path.iterdir())
    writing.join(30.0)
    assert list(results.read_runs(tmp_path)) == ["a"]


def test_measuring_again_replaces_the_figure_and_forgets_its_run(tmp_path):
    results.write(tmp_path, [figure(), figure(attacker="co")], [Run("a", {})])
    results.write(tmp_path, [figure(value=1.0, run="b"), figure(value=2.0, attacker="co", run="b")], [Run("b", {})])
    assert sorted(results.read(tmp_path)["value"]) == [1.0, 2.0]
    assert list(results.read_runs(tmp_path)) == ["b"]


def test_a_run_stays_while_any_file_names_it(tmp_path):
    results.write(tmp_path, [figure(), figure(days="held_out")], [Run("a", {})])
    results.write(tmp_path, [figure(value=1.0, run="b")], [Run("b", {})])
    assert list(results.read_runs(tmp_path)) == ["a", "b"]


def test_the_order_of_rows_does_not_depend_on_when_they_were_written(tmp_path):
    pair = [figure(attacker="co"), figure(attacker="dae")]
    for folder, order in (("one", pair), ("other", pair[::-1])):
        for each in order:
            results.write(tmp_path / folder, [each], [Run("a", {})])
    one, other = ((tmp_path / name / "redd_paper.csv").read_text() for name in ("one", "other"))
    assert one == other


def test_conditions_select_rows_by_one_or_several_values():
    table = results.read(RECORDED)
    conditions = results.parse_where("defence=flat|none, house=1,metric=f1")
    chosen = results.where(table, **conditions)
    assert set(chosen["defence"]) == {"flat", "none"}
    assert set(chosen["house"]) == {1}


@pytest.mark.parametrize(("text", "words"), [("defence", "column=value"), ("colour=red", "no column 'colour'")])
def test_wrong_conditions_are_named(text, words):
    with pytest.raises(InputError, match=words):
        results.where(results.read(RECORDED), **results.parse_where(text))


def test_a_file_with_other_columns_is_refused(tmp_path):
    (tmp_path / "redd_paper.csv").write_text("dataset,value\nredd,1\n")
    with pytest.raises(InputError, match="redd_paper"):
        results.read(tmp_path)


def test_an_empty_folder_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="holds no results"):
        results.read(tmp_path)


BETTER = Run("a", {"library": "x", "attackers": ["co", "dae"]})


@pytest.mark.parametrize(
    ("seeds", "settings", "words"),
    [
        (3, {"library": "x", "attackers": ["co", "dae"]}, "5 seeds.* 3 seeds"),
        (5, {"library": "y", "attackers": ["co", "dae"]}, "library x.* library y"),
        (5, {"library": "x", "attackers": ["co"]}, "attackers co dae.* attackers co "),
    ],
)
def test_figures_are_not_replaced_by_ones_of_less_effort(tmp_path, seeds, settings, words):
    results.write(tmp_path, [figure(attacker="all", seeds=5)], [BETTER])
    before = (tmp_path / "redd_paper.csv").read_text()
    worse = figure(attacker="all", seeds=seeds, value=1.0, run="b")
    with pytest.raises(InputError, match=words + ".*another folder with `results`"):
        results.write(tmp_path, [worse], [Run("b", settings)])
    assert (tmp_path / "redd_paper.csv").read_text() == before
    results.write(tmp_path, [worse], [Run("b", settings)], replaced=["a"])
    assert results.read(tmp_path)["value"].tolist() == [1.0]


def test_figures_are_replaced_by_ones_of_equal_or_more_effort_and_by_their_own_run(tmp_path):
    results.write(tmp_path, [figure(attacker="all", seeds=5)], [BETTER])
    more = Run("b", {"library": "x", "attackers": ["co", "dae", "fhmm"]})
    for value, run in enumerate((BETTER, more, more)):
        results.write(tmp_path, [figure(attacker="all", seeds=5, value=value, run=run.key)], [run])
        assert results.read(tmp_path)["value"].tolist() == [value]


def test_a_battery_is_named_by_capacity_power_and_budget():
    assert results.battery_label(Battery()) == "8/4/8"
    assert results.battery_label(Battery(capacity_kwh=2.5, charge_w=1000.0, budget_kwh=6.0)) == "2.5/1+4/6"


def test_the_recorded_table_is_small_and_names_each_figure_once():
    files = [path for path in RECORDED.rglob("*") if path.is_file()]
    assert len(files) <= 40
    assert sum(path.stat().st_size for path in files) <= 6e6
    table = results.read(RECORDED)
    assert not table.duplicated(list(results.IDENTITY)).any()
    assert set(table["run"]) <= set(results.read_runs(RECORDED))
    assert (table[table["seeds"] == 0]["note"] != "").all()


@pytest.mark.parametrize("is_known", [True, False])
def test_the_commit_is_that_of_the_package_and_not_of_the_current_folder(tmp_path, monkeypatch, is_known):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    monkeypatch.setattr(results, "__file__", str(tmp_path / "results.py"))
    assert results.current_commit() == ""  # outside any checkout
    git("init", "-q")
    for name in ("results.py", "other.py"):
        (tmp_path / name).touch()
    git("add", "results.py" if is_known else "other.py")
    git("commit", "-q", "-m", "first")
    expected = git("describe", "--always", "--abbrev=7") if is_known else ""
    assert results.current_commit() == expected
