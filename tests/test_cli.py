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
from meterveil.cli.options import spoken
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
    assert "docs/formats.md" in output


def test_the_demo_ends_with_a_table_and_the_address_of_a_report(meterveil, tmp_path):
    result = meterveil("demo", "--quick")
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in ("none", "random", "flat"))
    report = tmp_path / "out" / "demo" / "report.html"
    assert result.output.strip().splitlines()[-1] == f"report: {report.as_uri()}"
    text = report.read_text()
    assert text.count("Plotly.newPlot") >= 4


def test_the_demo_saves_its_picture_where_asked(meterveil, tmp_path):
    result = meterveil("demo", "--quick", "--picture", "img/day.html")
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


def test_a_ration_spends_no_more_of_the_budget_than_of_the_day(meterveil, tmp_path):
    spent_kwh = []
    for words in ([], ["--ration"]):
        assert meterveil("simulate", "--defence", "nill", "--budget-kwh", "2", *words).exit_code == 0
        trace = pd.read_parquet("out/simulate/trace.parquet")
        spent_kwh.append(np.abs(trace.battery_w).cumsum().to_numpy() / 60_000)
    given_kwh = 2.0 * np.arange(1, 1441) / 1440
    a_minute_kwh = 4000 / 60_000
    assert (spent_kwh[0] > given_kwh + a_minute_kwh).any()
    assert (spent_kwh[1] <= given_kwh + a_minute_kwh).all()
    assert json.loads(Path("out/simulate/summary.json").read_text())["defence"] == "nill, rationed"


def test_a_battery_that_moved_nothing_is_said_to_have_moved_nothing(meterveil, tmp_path):
    words = ("simulate", "--defence", "random", "--seed", "4")  # no decoy falls on that day
    assert "note: the battery moved nothing: random saw no occasion" in meterveil(*words).output
    assert "moved nothing" not in meterveil("simulate", "--defence", "none", "--ration").output


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
    assert result.stdout.startswith("| statistic | synthetic | mine |")


def test_compare_reads_a_table_of_ones_own_as_it_is_told(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    columns = ["--timestamp", "when", "--power", "kettle_w", "--timezone", "Europe/Paris"]
    result = meterveil("data", "compare", "synthetic", table, *columns, "--unit", "kW")
    assert result.exit_code == 2
    assert "kettle_w reaches 2,000 kW" in result.stderr
    result = meterveil("data", "compare", "synthetic", table, *columns, "--unit", "W")
    assert result.exit_code == 0, result.output
    assert re.search(r"\| peak \(W\) \| [\d,]+ \| 2,000 \|", result.stdout)


def test_compare_says_on_standard_error_what_was_assumed(meterveil, tmp_path):
    minutes = pd.date_range("2024-04-15", periods=3000, freq="min")
    pd.DataFrame({"time": minutes, "house_w": 200.0}).to_parquet(tmp_path / "mine.parquet")
    result = meterveil("data", "compare", tmp_path / "mine.parquet")
    assert result.exit_code == 0, result.output
    assert "note: mine: time zone: " in result.stderr
    assert result.stdout.startswith("| statistic | mine |")


def test_simulate_says_each_note_of_the_reader_once_before_the_table(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    table.write_text(table.read_text().replace("+00:00", ""))
    result = meterveil("simulate", table, "--power", "house_w", "--days", "2")
    assert result.exit_code == 0, result.output
    assert result.output.count("note: time zone: ") == 1
    assert result.output.index("note: stamps") < result.output.index("moved")
    assert "warning" not in result.output


def test_a_day_of_which_little_is_known_is_simulated_with_a_warning(meterveil, tmp_path):
    table = pd.read_csv(own_table(tmp_path / "mine.csv"))
    table.drop(index=range(700, 1200)).to_csv(tmp_path / "mine.csv", index=False)
    words = ["--power", "house_w", "--start", "2024-04-15"]
    assert "warning" not in meterveil("simulate", tmp_path / "mine.csv", "--power", "house_w").output
    result = meterveil("simulate", tmp_path / "mine.csv", *words)
    assert result.exit_code == 0, result.output
    assert "warning: only 61.1% of the minutes of 2024-04-15 are known" in result.output
    page = Path("out/simulate/day.html").read_text()
    assert "Only 61.1% of the minutes of 2024-04-15 are known" in page
    notes = json.loads(Path("out/simulate/summary.json").read_text())["notes"]
    assert notes[-1].startswith("only 61.1% of the minutes")


def test_a_record_without_a_whole_day_is_still_shown(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv", days=1)
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:600]))
    result = meterveil("data", "show", table, "--power", "house_w")
    assert result.exit_code == 0, result.output
    assert "warning: no day is whole" in result.output
    assert "15 April 2024 00:00 to 15 April 2024 10:58" in Path("out/data/mine-2024-04-15.html").read_text()


@pytest.mark.parametrize("width", [100, 60, 40])
def test_figures_are_whole_and_under_their_heads_at_every_width(meterveil, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = meterveil("simulate", "--days", "2", "--defence", "flat")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if not line.startswith("note:")]
    table = lines[: lines.index(next(line for line in lines if line.startswith("picture:")))]
    assert max(map(len, table)) <= width
    assert all(line == line.rstrip() for line in lines)
    total = json.loads(Path("out/simulate/summary.json").read_text())["total"]
    shown = [cell for line in table if line.startswith("all") for cell in line.split()[1:]]
    names = ("throughput_kwh", "energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost")
    assert [shown[n] for n in (1, 3, 4, 5, 6)] == [f"{total[name]:.2f}" for name in names]
    assert len(shown) == 9
    assert "…" not in result.output


def test_notes_that_find_no_room_beside_the_figures_stand_below(meterveil, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "40")
    table = pd.read_csv(own_table(tmp_path / "mine.csv"))
    table.drop(index=range(1000, 1002)).to_csv(tmp_path / "mine.csv", index=False)
    result = meterveil("data", "show", tmp_path / "mine.csv", "--power", "house_w")
    assert result.exit_code == 0, result.output
    assert re.search(r"aggregate +97\.9% +W +\d\.\d\d.kWh\n", result.output)
    assert re.search(r"channel +notes\n─+\naggregate +2 minutes in gaps", result.output)


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
    result = meterveil("data", "compare", f"{real_data / 'ukdale'}:1")
    assert re.search(r"boiler, .*: known for less than 20% of the record, left out", result.stderr)


REFUSED = {
    "--capacity-kwh is 0; allowed is 0.001 to": ["simulate", "--capacity-kwh", "0"],
    "--power-kw is nan; allowed is 0 to": ["simulate", "--power-kw", "nan"],
    "--budget-kwh is -1; allowed is 0 or more kWh": ["simulate", "--budget-kwh", "-1"],
    "--house does not apply to synthetic (read as synthetic); leave": ["simulate", "--house", "1"],
    "what applies is --timestamp, --power, --unit": ["data", "show", "own.csv", "--house", "1"],
    "--unit kW if these are kilowatts, --unit W if": ["simulate", "small.csv"],
    "homes has the houses 1, 2; choose one, such as homes:1": ["data", "compare", "homes"],
    "synthetic is one household without a number; leave :3 out": ["data", "compare", "synthetic:3"],
    "--unit is for a table of your own": ["data", "compare", "synthetic", "--unit", "kW"],
    "this battery can do nothing: its power is 0 W": ["simulate", "--power-kw", "0"],
    "there is no defence 'magic'; known are none, random, flat": ["simulate", "--defence", "magic"],
    "whole days run from 2024-04-15 to": ["simulate", "--start", "2024-04-14"],
    "'soon' is no day; write it as 2013-03-18": ["simulate", "--start", "soon"],
    "-2 days are none to simulate": ["simulate", "--days", "-2"],
    "invalid JSON": ["simulate", "--battery", "broken.json"],
    "cannot read none.json: No such file": ["simulate", "--battery", "none.json"],
    "broken.json: a signature library must be JSON": ["simulate", "--library", "broken.json"],
    "there is no tariff 'cheap'; allowed is paper": ["simulate", "--tariff", "cheap"],
    "broken.json is a file; give a folder": ["simulate", "--out", "broken.json"],
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
    own_table(tmp_path / "own.csv", days=1)
    (tmp_path / "small.csv").write_text("time,power\n2024-01-01 00:00,1\n2024-01-01 00:01,2\n")
    for house in (1, 2):
        (tmp_path / "homes" / f"house_{house}").mkdir(parents=True)
        (tmp_path / "homes" / f"house_{house}" / "labels.dat").write_text("1 aggregate\n2 kettle\n")
    (tmp_path / "taken" / "day.html").write_text("my holiday")
    files = set(tmp_path.rglob("*"))
    result = meterveil(*command)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "taken" / "day.html").read_text() == "my holiday"
    assert set(tmp_path.rglob("*")) == files


def test_a_missing_part_is_said_with_the_way_to_get_it_also_in_a_clone(meterveil, monkeypatch, tmp_path):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, "h5py", None)
    result = meterveil("data", "show", "a.h5")
    assert result.exit_code == 2
    assert ".venv/bin/pip install -c constraints.txt -e '.[hdf5]'" in result.stderr


@pytest.mark.parametrize(
    "words", [["--seed", "x"], ["--seed", "-1"], ["--days", "many"], ["--out", ""], ["--nonsense"]]
)
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


def test_a_disk_that_runs_full_leaves_the_earlier_result_as_it_was(tmp_path):
    command = [*COMMAND, "simulate", "--out", "here", "--defence"]
    subprocess.run([*command, "none"], capture_output=True, cwd=tmp_path, check=True)
    before = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    done = subprocess.run(
        [*command, "flat"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert done.returncode == 2
    assert done.stderr == "cannot write here/day.html: File too large; choose another place with --out\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()} == before


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ('name it: unit="kW" if', "name it: --unit kW if"),
        ("name it: power=...", "name it: --power ..."),
        ("such as house=1", "such as --house 1"),
        ("data/house=1/a.csv is empty", "data/house=1/a.csv is empty"),
    ],
)
def test_what_a_reader_says_in_python_is_said_in_options(python, typed):
    assert spoken(python) == typed


def test_a_real_process_prints_no_traceback_and_exits_with_2(tmp_path):
    command = [*COMMAND, "simulate", "--capacity-kwh", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == "--capacity-kwh is 0; allowed is 0.001 to 1,000,000 kWh\n"


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["data", "show", "synthetic"], ["data", "compare", "synthetic"]]
)
def test_output_that_cannot_be_printed_ends_in_one_line(tmp_path, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == "cannot print: No space left on device"


def test_signs_that_a_terminal_cannot_show_are_replaced(tmp_path):
    table = own_table(tmp_path / "Küche.csv", days=1)
    done = subprocess.run(
        [*COMMAND, "data", "show", table, "--power", "house_w"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^K\?che: 2024-04-15", done.stdout)
    assert re.search(r"aggregate +95\.8% +W +\d\.\d\d kWh", done.stdout)


def test_an_interrupt_ends_a_long_run_with_130_and_a_short_line(tmp_path):
    """The signal is set to its default in the child: behind nohup or `&` it would be ignored."""
    begun = tmp_path / "begun"
    code = (
        "import signal, sys, pathlib; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import meterveil.bench.simulation as work; simulate = work.simulate\n"
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
