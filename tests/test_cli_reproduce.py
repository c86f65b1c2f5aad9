"""`meterveil reproduce` from the outside."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from meterveil.cli import app

CELLS = ("--quick", "--dataset", "synthetic", "--table", "baseline_comparison", "--threat", "fixed")


def run(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)], env={"METERVEIL_DATA": ""})


def said(result):
    return " ".join(result.output.split())


def test_the_tables_and_their_rows_are_listed_without_any_data():
    result = run("--list", "--table", "lambda_sweep")
    assert result.exit_code == 0, result.output
    assert "lambda 0.75" in said(result)
    assert "many_days" not in said(result)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--table", "magic"), "no table 'magic'; known are overall_transfer; baseline_comparison"),
        (("--row", "magic"), "no row 'magic'; known are ours; none; random"),
        (("--threat", "clean"), "no threat model 'clean'; known are fixed; adaptive"),
        (("--engine", "dask"), "no engine 'dask'; known are local and ray"),
        (("--address", "10.0.0.1:6379"), "--address 10.0.0.1:6379 is that of a cluster; add --engine ray"),
        (("--table", "many_days"), "no folder of data sets is named; pass --data or set METERVEIL_DATA"),
        ((*CELLS, "--library", "none.json"), "cannot read"),
        ((*CELLS, "--picture", "time.png"), "--picture time.png is one of the profile; add --profile"),
        ((*CELLS, "--profile", "--picture", "time.gif"), "a picture cannot be saved as time.gif; use a name"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(arguments, words, tmp_path):
    result = run(*arguments, "--results", tmp_path / "results")
    assert result.exit_code == 2
    assert words in said(result)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_hold_results_is_refused_before_any_work(tmp_path):
    (tmp_path / "results").write_text("mine")
    result = run(*CELLS, "--results", tmp_path / "results")
    assert result.exit_code == 2
    assert "is a file; give a folder" in said(result)


@pytest.mark.parametrize("name", ["results", "cache"])
def test_a_folder_below_a_file_is_refused_before_any_work(tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("mine")
    places = {"results": tmp_path / "results", "cache": tmp_path / "cache", name: tmp_path / "file" / name}
    monkeypatch.setenv("METERVEIL_CACHE", str(places["cache"]))
    result = run(*CELLS, "--results", places["results"])
    advice = {"results": "with --results", "cache": "by setting METERVEIL_CACHE"}[name]
    assert result.exit_code == 2
    assert f"{name}: Not a directory; choose another place {advice}" in said(result)
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"broken', "library.json: a signature library must be JSON"),
        ('{"format": "other"}', 'must be a JSON object with "format": "meterveil-signatures-1"'),
    ],
)
def test_a_broken_library_is_refused_before_any_work(tmp_path, text, words):
    (tmp_path / "library.json").write_text(text)
    result = run(*CELLS, "--library", tmp_path / "library.json", "--results", tmp_path / "results")
    assert result.exit_code == 2
    assert words in said(result)
    assert {path.name for path in tmp_path.iterdir()} == {"library.json"}


def test_data_without_the_source_of_signatures_are_refused_before_any_work(tmp_path):
    (tmp_path / "data" / "redd").mkdir(parents=True)
    asked = ("--dataset", "redd", "--results", tmp_path / "results", "--data", tmp_path / "data")
    result = run(*asked)
    assert result.exit_code == 2
    assert "has no folder ukdale, from which signatures are built; add it, or give --library" in said(result)
    assert not (tmp_path / "results").exists()


def test_the_status_counts_what_is_finished_and_what_is_left(tmp_path):
    asked = (*CELLS, "--row", "none", "--row", "flat", "--results", tmp_path / "results", "--workers", 1)
    before = run(*asked, "--status")
    assert "baseline_comparison synthetic fixed 2 0" in said(before)
    assert "2 x measure" in said(before)
    assert not (tmp_path / "results").exists()
    done = run(*asked)
    assert done.exit_code == 0, done.output
    assert "baseline_comparison synthetic fixed 2 2" in said(done)
    assert "left:" not in said(done)
    otherwise = run(*asked, "--seeds", 4, "--status")
    assert "baseline_comparison synthetic fixed 2 0 2" in said(otherwise)
    assert "outdated: recorded, but" in said(otherwise)
    picture = tmp_path / "time.html"
    shown = run(*asked, "--profile", "--picture", picture)
    assert shown.exit_code == 0, shown.output
    assert "measure: one day, fixed 2 2" in said(shown)
    assert "of one core:" in said(shown)
    assert "measure: one day" in picture.read_text()
    [path] = (tmp_path / "results/reproduction_time/synthetic").glob("*measure*.json")
    figures = {card["column"]: card["measured"] for card in json.loads(path.read_text())}
    assert figures["tasks"] == figures["recorded"] == 2
    assert 0 < figures["core_minutes"] == figures["measured_core_minutes"]


def test_a_profile_of_what_never_ran_is_refused_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))
    result = run(*CELLS, "--row", "flat", "--results", tmp_path / "results", "--profile")
    assert result.exit_code == 2
    assert "has left a record of its time; run meterveil reproduce with them first" in said(result)
    assert not (tmp_path / "results").exists()


def start(folder, *rows):
    """Begin the command in a process of its own."""
    asked = [part for row in rows for part in ("--row", row)]
    words = ["-m", "meterveil", "reproduce", *CELLS, *asked, "--results", str(folder / "results")]
    cache = {"METERVEIL_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, *words],  # a shell's background jobs do not hear it
        env={**os.environ, **cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def headlines(folder):
    found = folder.rglob("headline*.json")
    return {path.name: (path.stat().st_mtime_ns, json.loads(path.read_text())) for path in found}


def test_an_interrupted_command_goes_on_where_it_was_stopped(tmp_path):
    rows = ("none", "flat", "rule_based", "random", "flat_decoys")
    first = start(tmp_path, *rows)
    end = time.monotonic() + 120
    while not headlines(tmp_path):
        assert time.monotonic() < end, first.poll()
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    _, errors = first.communicate(timeout=60)
    kept = headlines(tmp_path)
    assert first.returncode == 130
    assert "stopped; what is finished is kept, and the same command goes on" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert 0 < len(kept) < len(rows)
    second = start(tmp_path, *rows)
    _, errors = second.communicate(timeout=240)
    assert second.returncode == 0, errors
    after = headlines(tmp_path)
    assert len(after) == len(rows)
    assert {name: after[name] for name in kept} == kept  # not measured again
