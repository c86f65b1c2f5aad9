"""`meterveil reproduce` on the command line."""

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


def words_of(result):
    return " ".join(result.output.split())


def test_tables_and_rows_are_listed_without_data():
    result = run("--list", "--table", "lambda_sweep")
    assert result.exit_code == 0, result.output
    assert "lambda 0.75" in words_of(result)
    assert "many_days" not in words_of(result)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--table", "magic"), "no table 'magic'"),
        (("--row", "magic"), "no row 'magic'"),
        (("--attackers", "co,magic"), "no attacker 'magic'"),
        (("--threat", "clean"), "no threat model 'clean'"),
        (("--engine", "dask"), "no engine 'dask'"),
        (("--address", "10.0.0.1:6379"), "--engine ray"),
        (("--table", "many_days"), "METERVEIL_DATA"),
        ((*CELLS, "--library", "none.json"), "none.json"),
    ],
)
def test_wrong_options_are_refused_before_any_work(arguments, words, tmp_path):
    result = run(*arguments, "--results", tmp_path / "results")
    assert result.exit_code == 2
    assert words in words_of(result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "advice"), [("results", "--results"), ("cache", "METERVEIL_CACHE")])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch, name, advice):
    (tmp_path / "file").write_text("mine")
    places = {"results": tmp_path / "results", "cache": tmp_path / "cache", name: tmp_path / "file" / name}
    monkeypatch.setenv("METERVEIL_CACHE", str(places["cache"]))
    result = run(*CELLS, "--results", places["results"])
    assert result.exit_code == 2
    assert "Not a directory" in words_of(result)
    assert advice in words_of(result)
    assert {path.name for path in tmp_path.iterdir()} == {"file"}


def test_data_without_ukdale_need_a_library(tmp_path):
    (tmp_path / "data" / "redd").mkdir(parents=True)
    result = run("--dataset", "redd", "--results", tmp_path / "results", "--data", tmp_path / "data")
    assert result.exit_code == 2
    assert "no folder ukdale" in words_of(result)
    assert not (tmp_path / "results").exists()


def test_the_status_counts_finished_outdated_and_missing_cells(tmp_path):
    options = (*CELLS, "--row", "none", "--row", "flat", "--results", tmp_path / "results", "--workers", 1)
    before = run(*options, "--status")
    assert "finished outdated missing" in words_of(before)
    assert "baseline_comparison synthetic fixed 2 2" in words_of(before)
    assert "2 x measure" in words_of(before)
    assert not (tmp_path / "results").exists()
    done = run(*options)
    assert done.exit_code == 0, done.output
    assert "baseline_comparison synthetic fixed 2 2 results" in words_of(done)
    assert "tasks left" not in words_of(done)
    assert len(json.loads((tmp_path / "results/runs.json").read_text())) == 2
    other_seeds = run(*options, "--seeds", 4, "--status")
    assert "outdated: recorded with other settings" in words_of(other_seeds)
    assert run(*options, "--table", "remedies", "--status").exit_code == 0


def start(folder, *rows):
    """Start the command in a process of its own."""
    named = [part for row in rows for part in ("--row", row)]
    command = ["-m", "meterveil", "reproduce", *CELLS, *named, "--results", str(folder / "results")]
    cache = {"METERVEIL_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, *command],  # background jobs ignore it otherwise
        env={**os.environ, **cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def runs_in(folder):
    path = folder / "results" / "runs.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.slow
def test_an_interrupted_command_continues_where_it_stopped(tmp_path):
    rows = ("none", "flat", "rule_based", "random", "flat_decoys")
    first = start(tmp_path, *rows)
    end = time.monotonic() + 120
    while not runs_in(tmp_path):
        assert time.monotonic() < end, first.poll()
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to the command and its workers
    _, errors = first.communicate(timeout=60)
    kept = runs_in(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache/reproduce").rglob("*.json")}
    assert first.returncode == 130
    assert "repeat the command to continue" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert 0 < len(kept) < len(rows)
    second = start(tmp_path, *rows)
    _, errors = second.communicate(timeout=240)
    assert second.returncode == 0, errors
    assert len(runs_in(tmp_path)) == len(rows)
    assert all(runs_in(tmp_path)[key] == run for key, run in kept.items())
    assert all(path.stat().st_mtime_ns == changed for path, changed in times.items())
