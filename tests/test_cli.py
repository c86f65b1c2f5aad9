"""The command line, as a user types it."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from meterveil import __version__
from meterveil.cli import app
from meterveil.defenders import DEFENDERS

COMMAND = [sys.executable, "-m", "meterveil"]


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def own_table(path, days=2):
    minutes = pd.date_range("2024-04-15", periods=1440 * days, freq="min", tz="UTC")
    kettle_w = np.where(np.arange(len(minutes)) % 480 < 3, 2000.0, 0.0)
    columns = {"when": minutes, "house_w": kettle_w + 200, "kettle_w": kettle_w}
    table = pd.DataFrame(columns)
    table = table.drop(index=range(300, 360))
    table.to_csv(path, index=False)
    return path


def loaded_modules(*words):
    """Names of the packages that a command loads."""
    code = (
        "import sys, atexit; sys.argv = ['meterveil', *sys.argv[1:]]\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from meterveil.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=30
    )
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(("word", "loads_typer"), [("--version", False), ("--help", True)])
def test_quick_answers_load_nothing_heavy(word, loads_typer):
    loaded = loaded_modules(word)
    assert ("typer" in loaded) == loads_typer
    assert not loaded & {"numpy", "pandas", "pyarrow", "plotly", "pydantic", "torch"}


def test_the_version_takes_less_than_0_3_seconds_of_the_processor():
    """Processor time, which alone is the command's own: the clock also counts what else the machine does."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True, env=plain)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stdout == f"meterveil {__version__}\n"
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


def test_without_a_verb_the_verbs_are_listed(meterveil):
    output = meterveil().output
    assert all(verb in output for verb in ("data", "simulate", "demo"))


def test_the_help_of_simulate_names_every_defence(meterveil):
    output = meterveil("simulate", "--help").output
    assert all(name in output for name in DEFENDERS)


def test_the_demo_ends_with_a_table_and_the_address_of_a_report(meterveil, tmp_path):
    result = meterveil("demo")
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in ("none", "random", "flat"))
    report = tmp_path / "out" / "demo" / "report.html"
    assert result.output.strip().splitlines()[-1] == f"report: {report.as_uri()}"
    text = report.read_text()
    assert text.count("Plotly.newPlot") >= 4


def test_the_demo_saves_its_picture_where_asked(meterveil, tmp_path):
    result = meterveil("demo", "--picture", "img/day.html")
    assert result.exit_code == 0, result.output
    assert "decoy" in (tmp_path / "img" / "day.html").read_text()[-2_000_000:]


def test_simulate_writes_a_trace_a_summary_and_a_picture(meterveil, tmp_path):
    result = meterveil("simulate", "--defence", "flat", "--days", "2", "--seed", "5", "--tariff", "flat:0.2")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "out" / "simulate"
    trace = pd.read_parquet(folder / "trace.parquet")
    assert list(trace.columns) == ["minute", "load_w", "battery_w", "meter_w", "soc", "price", "decoy"]
    assert len(trace) == 2880
    assert str(trace.minute.dt.tz) == "Europe/London"
    assert np.allclose(trace.meter_w, trace.load_w + trace.battery_w)
    assert set(trace.price) == {0.2}
    summary = json.loads((folder / "summary.json").read_text())
    moved_kwh = np.abs(trace.battery_w).sum() / 60_000
    assert summary["total"]["throughput_kwh"] == pytest.approx(moved_kwh)
    assert [row["day"] for row in summary["by_day"]] == ["2024-04-15", "2024-04-16"]
    assert summary["by_day"][1]["soc_end"] == summary["total"]["soc_end"] == trace.soc.iloc[-1]
    assert (summary["seed"], summary["defence"], summary["battery"]["import_limit_w"]) == (5, "flat", None)
    assert "2024-04-16" in result.output
    assert result.output.strip().splitlines()[-1] == f"picture: {(folder / 'day.html').as_uri()}"


def test_battery_options_and_file_reach_the_battery(meterveil, tmp_path):
    (tmp_path / "b.json").write_text('{"capacity_kwh": 5, "soc_min": 0.2}')
    words = ["--battery", "b.json", "--power-kw", "2.5", "--budget-kwh", "1", "--export-limit-w", "inf"]
    assert meterveil("simulate", *words).exit_code == 0
    battery = json.loads(Path("out/simulate/summary.json").read_text())["battery"]
    assert (battery["capacity_kwh"], battery["soc_min"], battery["budget_kwh"]) == (5, 0.2, 1)
    assert (battery["charge_w"], battery["discharge_w"], battery["export_limit_w"]) == (2500, 2500, None)


def test_a_table_of_ones_own_is_simulated_and_its_gap_left_alone(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    words = ["--timestamp", "when", "--power", "house_w", "--timezone", "UTC", "--defence", "random"]
    result = meterveil("simulate", table, *words)
    assert result.exit_code == 0, result.output
    trace = pd.read_parquet("out/simulate/trace.parquet")
    assert trace.load_w.isna().sum() == 60
    assert np.all(trace.battery_w[trace.load_w.isna()] == 0)


def test_show_tells_coverage_and_gaps_and_draws_the_day(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    words = ["--power", "house_w", "--timestamp", "when", "--appliances", "kettle_w", "--day", "2024-04-16"]
    result = meterveil("data", "show", table, *words)
    assert result.exit_code == 0, result.output
    assert re.search(r"aggregate\s+97\.9%\s+W", result.output)
    assert re.search(r"all\s+2024-04-15 05:00\s+60", result.output)
    page = tmp_path / "out" / "data" / "mine-2024-04-16.html"
    assert result.output.strip().splitlines()[-1] == f"picture: {page.as_uri()}"
    assert "kettle" in page.read_text()[-2_000_000:]


def test_compare_prints_a_markdown_table(meterveil, tmp_path):
    result = meterveil("data", "compare", "synthetic", own_table(tmp_path / "mine.csv"))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("| statistic | synthetic | mine |")


def test_a_data_set_of_several_houses_lists_them(meterveil, real_data):
    result = meterveil("data", "show", real_data / "ukdale")
    assert result.exit_code == 0, result.output
    assert "kettle" in result.output
    assert "--house 1" in result.output


def test_real_houses_are_shown_and_compared(meterveil, real_data):
    result = meterveil("data", "show", real_data / "redd", "--house", "2", "--day", "2011-04-29")
    assert result.exit_code == 0, result.output
    assert re.search(r"fridge\s+99\.\d%\s+VA", result.output)
    result = meterveil("data", "compare", "synthetic", f"{real_data / 'redd'}:2")
    assert "| synthetic | REDD house_2 |" in result.output


REFUSED = {
    "battery capacity_kwh is 0": ["simulate", "--capacity-kwh", "0"],
    "this battery can do nothing: its power is 0 W": ["simulate", "--power-kw", "0"],
    "there is no defence 'magic'; known are none, random, flat": ["simulate", "--defence", "magic"],
    "whole days run from 2024-04-15 to": ["simulate", "--start", "2024-04-14"],
    "'soon' is no day; write it as 2013-03-18": ["simulate", "--start", "soon"],
    "-2 days are none to simulate": ["simulate", "--days", "-2"],
    "is not JSON": ["simulate", "--battery", "broken.json"],
    "cannot read none.json: No such file": ["simulate", "--battery", "none.json"],
    "broken.json: a signature library must be JSON": ["simulate", "--library", "broken.json"],
    "there is no tariff 'cheap'; allowed is paper": ["simulate", "--tariff", "cheap"],
    "broken.json is a file; give --out a folder": ["simulate", "--out", "broken.json"],
    "cannot write broken.json/out: Not a directory": ["demo", "--out", "broken.json/out"],
    "taken holds day.html that meterveil did not write": ["simulate", "--out", "taken"],
    "it records 2024-04-15 to 2024-04-28": ["data", "show", "synthetic", "--day", "2020-01-01"],
    "nowhere does not exist": ["data", "show", "nowhere"],
    "cannot be saved as day.gif": ["demo", "--picture", "day.gif"],
}


@pytest.mark.parametrize(("words", "command"), REFUSED.items())
def test_what_a_user_can_mend_is_said_in_one_line_with_status_2(meterveil, tmp_path, words, command):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "day.html").write_text("my holiday")
    result = meterveil(*command)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "taken" / "day.html").read_text() == "my holiday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.json", "taken"]


@pytest.mark.parametrize("words", [["--seed", "x"], ["--seed", "-1"], ["--days", "many"], ["--nonsense"]])
def test_an_option_of_the_wrong_type_is_named_with_status_2(meterveil, words):
    result = meterveil("simulate", *words)
    assert result.exit_code == 2
    assert words[0] in result.stderr
    assert "Traceback" not in result.stderr


def test_a_second_run_replaces_its_own_files_and_leaves_others(meterveil, tmp_path):
    assert meterveil("simulate", "--out", "here", "--defence", "none").exit_code == 0
    (tmp_path / "here" / "notes.txt").write_text("mine")
    assert meterveil("simulate", "--out", "here", "--defence", "flat").exit_code == 0
    assert json.loads((tmp_path / "here" / "summary.json").read_text())["defence"] == "flat"
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == ["day.html", "notes.txt", "summary.json", "trace.parquet"]


def test_a_real_process_prints_no_traceback_and_exits_with_2(tmp_path):
    command = [*COMMAND, "simulate", "--capacity-kwh", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == "battery capacity_kwh is 0.0; allowed is 0.001 to 1,000,000 kWh\n"


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["data", "show", "synthetic"], ["data", "compare", "synthetic"]]
)
def test_output_that_cannot_be_printed_ends_in_one_line(tmp_path, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "cannot print: No space left on device\n"


def test_an_interrupt_ends_a_long_run_with_130_and_a_short_line(tmp_path):
    """The signal is set to its default in the child: behind nohup or `&` it would be ignored."""
    begun = tmp_path / "begun"
    code = (
        "import signal, sys, pathlib; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import meterveil.simulate as work; simulate = work.simulate\n"
        "def begin(*words): pathlib.Path('begun').touch(); return simulate(*words)\n"
        "work.simulate = begin\n"
        "from meterveil.__main__ import main; main()"
    )
    command = [sys.executable, "-c", code, "simulate", "--days", "366", "--out", "long"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.strip().splitlines()[-1].endswith("stopped")
    assert not (tmp_path / "long").exists()
