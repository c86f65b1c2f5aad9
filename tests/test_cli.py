"""The command line, as a user types it."""

import json
import os
import pty
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
from meterveil.cli import app, tables
from meterveil.cli.options import spoken
from meterveil.cli.tables import steps
from meterveil.defenders import DEFENDERS
from meterveil.errors import how_to_install, unknown

COMMAND = [sys.executable, "-m", "meterveil"]
VERBS = (
    [[verb] for verb in ("audit", "simulate", "demo", "train", "attack", "evaluate", "export")]
    + [[verb] for verb in ("reproduce", "report", "submit", "data", "signatures")]
    + [["data", "show"], ["signatures", "show"], []]
)


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def shell(*words, cwd, **options):
    """Run a command in a process of its own."""
    options = {"capture_output": True, "text": True, **options}
    return subprocess.run([*COMMAND, *map(str, words)], cwd=cwd, check=False, **options)


def own_table(path, days=2):
    minutes = pd.date_range("2024-04-15", periods=1440 * days, freq="min", tz="UTC")
    kettle_w = np.where(np.arange(len(minutes)) % 480 < 3, 2000.0, 0.0)
    table = pd.DataFrame({"when": minutes, "house_w": kettle_w + 200, "kettle_w": kettle_w})
    table.drop(index=range(300, 360)).to_csv(path, index=False)
    return path


def summary_of(folder):
    return json.loads((Path("out/simulate") / folder / "summary.json").read_text())


# Help, names and the shell


@pytest.mark.parametrize(("word", "loads_typer"), [("--version", False), ("--help", True)])
def test_quick_answers_load_nothing_heavy(word, loads_typer):
    code = (
        "import sys, atexit; sys.argv = ['meterveil', *sys.argv[1:]]\n"
        "atexit.register(lambda: print(*sys.modules))\n"
        "from meterveil.__main__ import main; main()"
    )
    command = [sys.executable, "-c", code, word]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert ("typer" in loaded) == loads_typer
    assert not loaded & {"numpy", "pandas", "pyarrow", "plotly", "pydantic", "torch", "jinja2"}


def test_the_version_takes_less_than_0_3_seconds_of_the_processor(tmp_path):
    """Processor time: the clock would also count what else the machine does."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert shell("--version", cwd=tmp_path, env=plain).stdout == f"meterveil {__version__}\n"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.3


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_has_a_short_help_without_types_of_flags(meterveil, verb):
    result = meterveil(*verb, "-h")
    assert result.exit_code == 0
    assert "Usage: " in result.output
    assert "bool" not in result.output
    assert set(re.findall(r"--no-[\w-]+", result.output)) <= {"--no-train"}


def test_help_lists_verbs_defences_and_shell_completion(meterveil):
    assert all(word in meterveil().output for word in ("data", "simulate", "demo", "--install-completion"))
    output = meterveil("simulate", "--help").output
    assert all(name in output for name in DEFENDERS)


def test_the_shell_completes_verbs_and_defences(tmp_path):
    for typed, expected in (("meterveil sim", "simulate"), ("meterveil simulate --defence rand", "random_equal")):
        words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
        env = {**os.environ, **words, "_METERVEIL_COMPLETE": "complete_bash"}
        assert expected in shell(cwd=tmp_path, env=env).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["simulat"], "simulate"),
        (["simulate", "--defenc", "flat"], "--defence"),
        (["simulate", "--defence", "falt"], "did you mean flat?"),
        (["evaluate", "flat", "--attackers", "seq2pont"], "did you mean seq2point?"),
        (["data", "show", "min.csv"], "did you mean mine.csv?"),
        (["data", "show", "synthetik"], "did you mean synthetic?"),
    ],
)
def test_a_mistyped_name_gets_the_nearest_ones(meterveil, tmp_path, words, expected):
    own_table(tmp_path / "mine.csv", days=1)
    result = meterveil(*words)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_an_unknown_name_lists_the_known_ones():
    assert str(unknown("house", 7, [1, 2])) == "there is no house 7; known are 1, 2"
    assert "did you mean flat? Known are none, flat and more" in str(
        unknown("defence", "flt", ["none", "flat"], " and more")
    )


@pytest.mark.parametrize(("colour", "is_red"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_errors_are_red_in_a_terminal_unless_no_color_is_set(tmp_path, colour, is_red):
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    reader, writer = pty.openpty()
    command = [*COMMAND, "simulate", "--capacity-kwh", "0"]
    subprocess.run(command, stderr=writer, cwd=tmp_path, env={**plain, **colour, "TERM": "xterm"}, check=False)
    os.close(writer)
    output = os.read(reader, 10_000).decode()
    assert "--capacity-kwh is 0" in output
    assert ("\x1b[31m" in output) == is_red


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["simulate"]], ids=" ".join)
def test_a_closed_pipe_ends_the_command_quietly(tmp_path, words):
    reader, writer = os.pipe()
    os.close(reader)
    done = shell(*words, cwd=tmp_path, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode != 0


# simulate


def test_simulate_writes_a_trace_a_summary_and_a_page(meterveil, tmp_path):
    result = meterveil("simulate", "--defence", "flat", "--days", "2", "--seed", "5", "--tariff", "flat:0.2")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "out" / "simulate" / "synthetic-flat"
    trace = pd.read_parquet(folder / "trace.parquet")
    assert list(trace.columns) == ["minute", "load_w", "battery_w", "meter_w", "soc", "price", "decoy"]
    assert len(trace) == 2880
    assert str(trace.minute.dt.tz) == "Europe/London"
    assert np.allclose(trace.meter_w, trace.load_w + trace.battery_w)
    assert set(trace.price) == {0.2}
    summary = json.loads((folder / "summary.json").read_text())
    moved_kwh = np.abs(trace.battery_w).sum() / 60_000
    assert summary["total"]["throughput_kwh"] == pytest.approx(moved_kwh)
    assert [row["day"] for row in summary["by_day"]] == ["2024-04-29", "2024-04-30"]
    assert summary["by_day"][1]["soc_end"] == summary["total"]["soc_end"] == trace.soc.iloc[-1]
    assert (summary["seed"], summary["defence"], summary["battery"]["import_limit_w"]) == (5, "flat", None)
    assert "2024-04-30" in result.output
    assert "What a reader finds without the battery (before) and with it (after)" in result.output
    assert "A reader who knows the defence can find more: docs/threat-model.md" in result.output
    kettle = summary["uses_found"]["kettle"]
    assert 0 == kettle["after"] == kettle["still"] < kettle["before"]
    assert "Uses that are only found after are mistakes" in (folder / "day.html").read_text()
    assert result.output.strip().splitlines()[-1] == f"page: {(folder / 'day.html').as_uri()}"
    assert "Times are local, Europe/London" in (folder / "day.html").read_text()


def test_without_a_reader_simulate_says_how_to_install_one(meterveil, monkeypatch):
    monkeypatch.setattr(sys.modules["meterveil.cli.simulate"], "find_spec", lambda name: None)
    result = meterveil("simulate", "--defence", "none")
    assert result.exit_code == 0, result.output
    assert "to see what a reader finds before and after, install one: .venv/bin/pip install" in result.output
    assert summary_of("synthetic-none")["uses_found"] is None


def test_simulate_says_which_defaults_it_used(meterveil):
    assert "Using --defence veil, --start 2024-04-29 (default)." in meterveil("simulate").output
    assert "(default)" not in meterveil("simulate", "--defence", "flat", "--start", "2024-04-16").output


def test_each_input_and_defence_has_a_folder_of_its_own(meterveil, tmp_path):
    for name in ("a", "b"):
        table = own_table(tmp_path / f"{name}.csv")
        for words in (["--defence", "none"], ["--defence", "flat", "--ration"]):
            assert meterveil("simulate", table, "--power", "house_w", *words).exit_code == 0
    assert sorted(path.name for path in Path("out/simulate").iterdir()) == [
        "a-flat-rationed",
        "a-none",
        "b-flat-rationed",
        "b-none",
    ]


def test_a_ration_spends_no_more_of_the_budget_than_of_the_day(meterveil):
    spent_kwh = []
    for words, folder in (([], "synthetic-nill"), (["--ration"], "synthetic-nill-rationed")):
        assert meterveil("simulate", "--defence", "nill", "--budget-kwh", "2", *words).exit_code == 0
        trace = pd.read_parquet(f"out/simulate/{folder}/trace.parquet")
        spent_kwh.append(np.abs(trace.battery_w).cumsum().to_numpy() / 60_000)
    given_kwh = 2.0 * np.arange(1, 1441) / 1440
    a_minute_kwh = 4000 / 60_000
    assert (spent_kwh[0] > given_kwh + a_minute_kwh).any()
    assert (spent_kwh[1] <= given_kwh + a_minute_kwh).all()
    assert summary_of("synthetic-nill-rationed")["defence"] == "nill, rationed"


def test_a_battery_that_did_not_move_is_noted(meterveil):
    words = ("simulate", "--defence", "random", "--seed", "4", "--start", "2024-04-15")  # no decoy falls on that day
    assert "the battery did not move" in meterveil(*words).output
    assert "did not move" not in meterveil("simulate", "--defence", "none", "--ration").output


def test_battery_options_and_file_reach_the_battery(meterveil, tmp_path):
    (tmp_path / "b.json").write_text('{"capacity_kwh": 5, "soc_min": 0.2}')
    words = ["--battery", "b.json", "--power-kw", "2.5", "--budget-kwh", "1", "--export-limit-w", "inf"]
    assert meterveil("simulate", "--defence", "flat", *words).exit_code == 0
    battery = summary_of("synthetic-flat")["battery"]
    assert (battery["capacity_kwh"], battery["soc_min"], battery["budget_kwh"]) == (5, 0.2, 1)
    assert (battery["charge_w"], battery["discharge_w"], battery["export_limit_w"]) == (2500, 2500, None)


def test_an_own_table_is_simulated_and_its_gap_left_alone(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    words = ["--timestamp", "when", "--power", "house_w", "--timezone", "UTC", "--defence", "random"]
    result = meterveil("simulate", table, *words, "--start", "2024-04-15", "--out", "here")
    assert result.exit_code == 0, result.output
    trace = pd.read_parquet("here/trace.parquet")
    assert trace.load_w.isna().sum() == 60
    assert np.all(trace.battery_w[trace.load_w.isna()] == 0)


def test_notes_on_the_data_are_printed_once_before_the_table(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    table.write_text(table.read_text().replace("+00:00", ""))
    result = meterveil("simulate", table, "--power", "house_w", "--days", "2")
    assert result.exit_code == 0, result.output
    assert result.output.count("time zone") == 1
    assert result.output.index("time zone") < result.output.index("moved")
    assert "warning" not in result.output


def test_a_day_with_few_readings_is_simulated_with_a_warning(meterveil, tmp_path):
    table = pd.read_csv(own_table(tmp_path / "mine.csv"))
    table.drop(index=range(700, 1200)).to_csv(tmp_path / "mine.csv", index=False)
    words = ["simulate", tmp_path / "mine.csv", "--power", "house_w", "--out", "here"]
    assert "warning" not in meterveil(*words).output
    result = meterveil(*words, "--start", "2024-04-15")
    assert result.exit_code == 0, result.output
    assert "warning: only 61.1% of the minutes of 2024-04-15" in result.output
    assert "Only 61.1% of the minutes of 2024-04-15" in Path("here/day.html").read_text()
    assert json.loads(Path("here/summary.json").read_text())["notes"][-1].startswith("only 61.1%")


@pytest.mark.parametrize("width", [100, 40])
def test_figures_are_whole_and_under_their_heads_at_every_width(meterveil, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = meterveil("simulate", "--days", "2", "--defence", "flat", "--start", "2024-04-15")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if not line.startswith("note:")]
    table = lines[1 : lines.index(next(line for line in lines if line.startswith("What a reader")))]
    assert max(map(len, table)) <= width
    assert all(line == line.rstrip() for line in lines)
    total = summary_of("synthetic-flat")["total"]
    shown = [cell for line in table if line.startswith("all") for cell in line.split()[1:]]
    names = ("throughput_kwh", "energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost")
    assert [shown[n] for n in (1, 3, 4, 5, 6)] == [f"{total[name]:.2f}" for name in names]
    assert len(shown) == 10
    assert "…" not in result.output


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (50, ["reader who    kWh   cost", "defence           reader    knows it  a day  a day"]),
        (49, ["reader  kWh  cost", "who    a     a", "defence           reader  knows it  day   day"]),
    ],
)
def test_heads_over_figures_have_two_lines_or_three_in_a_narrow_window(monkeypatch, capsys, width, heads):
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("defence", "reader", "reader who knows it", "kWh a day", "cost a day")
    tables.show_table([names, ("random_equal:8.0", "27", "42", "8.0", "0.51")])
    *shown, rule, _ = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in shown] == [line.strip() for line in heads]
    assert len(rule) <= width


# data


def test_show_tells_coverage_and_gaps_and_draws_the_day(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv")
    words = ["--power", "house_w", "--timestamp", "when", "--appliances", "kettle_w", "--day", "2024-04-16"]
    result = meterveil("data", "show", table, *words)
    assert result.exit_code == 0, result.output
    assert re.search(r"aggregate\s+97\.9%\s+W", result.output)
    assert re.search(r"all\s+2024-04-15 05:00\s+60", result.output)
    page = tmp_path / "out" / "data" / "mine-2024-04-16.html"
    assert result.output.strip().splitlines()[-1].endswith(page.as_uri())
    assert "kettle" in page.read_text()[-500_000:]


def test_a_record_without_a_whole_day_is_still_shown(meterveil, tmp_path):
    table = own_table(tmp_path / "mine.csv", days=1)
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:600]))
    result = meterveil("data", "show", table, "--power", "house_w")
    assert result.exit_code == 0, result.output
    assert "warning: no day is recorded" in result.output
    assert "15 April 2024 00:00 to 15 April 2024 10:58" in Path("out/data/mine-2024-04-15.html").read_text()


def test_notes_that_do_not_fit_beside_the_figures_stand_below(meterveil, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "40")
    table = pd.read_csv(own_table(tmp_path / "mine.csv"))
    table.drop(index=range(1000, 1002)).to_csv(tmp_path / "mine.csv", index=False)
    result = meterveil("data", "show", tmp_path / "mine.csv", "--power", "house_w")
    assert result.exit_code == 0, result.output
    assert re.search(r"aggregate +97\.9% +W +\d\.\d\d.kWh\n", result.output)
    assert re.search(r"channel +notes\n─+\naggregate +2 minutes in gaps", result.output)


def test_real_houses_are_listed_and_shown(meterveil, real_data):
    assert "--house 1" in meterveil("data", "show", real_data / "ukdale").output
    result = meterveil("data", "show", real_data / "redd", "--house", "2", "--day", "2011-04-29")
    assert result.exit_code == 0, result.output
    assert re.search(r"fridge\s+99\.\d%\s+VA", result.output)


# Errors

REFUSED = {
    "--capacity-kwh is 0; allowed is 0.001 to": ["simulate", "--capacity-kwh", "0"],
    "--power-kw is nan; allowed is 0 to": ["simulate", "--power-kw", "nan"],
    "--power-kw is -1, that is -1000 W; allowed is 0 to": ["simulate", "--power-kw", "-1"],
    "--budget-kwh is -1; allowed is 0 or more kWh": ["simulate", "--budget-kwh", "-1"],
    "--house does not apply to synthetic": ["simulate", "--house", "1"],
    "what applies is --timestamp, --power, --unit": ["data", "show", "own.csv", "--house", "1"],
    "--unit kW if these are kilowatts, --unit W if": ["simulate", "small.csv"],
    "--house 1": ["simulate", "homes"],
    "this battery can do nothing": ["simulate", "--power-kw", "0"],
    "folder 'magic'; known are none, random, flat": ["simulate", "--defence", "magic"],
    "whole days run from 2024-04-15 to": ["simulate", "--start", "2024-04-14"],
    "'soon' is not a day; write it as 2013-03-18": ["simulate", "--start", "soon"],
    "--days -2": ["simulate", "--days", "-2"],
    "invalid JSON": ["simulate", "--battery", "broken.json"],
    "cannot read none.json": ["simulate", "--battery", "none.json"],
    "broken.json: a signature library must be JSON": ["simulate", "--library", "broken.json"],
    "there is no tariff 'cheap'; allowed is paper": ["simulate", "--tariff", "cheap"],
    "broken.json is a file; give a folder": ["simulate", "--out", "broken.json"],
    "cannot write broken.json/out: Not a directory": ["data", "show", "synthetic", "--out", "broken.json/out"],
    "taken holds day.html that meterveil did not write": ["simulate", "--out", "taken"],
    "it records 2024-04-15 to 2024-04-28": ["data", "show", "synthetic", "--day", "2020-01-01"],
    "nowhere does not exist": ["data", "show", "nowhere"],
    "cannot be saved as day.gif": ["signatures", "show", "--out", "day.gif"],
}


@pytest.mark.parametrize(("words", "command"), REFUSED.items())
def test_rejected_input_is_explained_in_one_line_with_status_2(meterveil, tmp_path, words, command):
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


def test_a_missing_package_is_named_with_the_command_to_install_it(meterveil, monkeypatch, tmp_path):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    monkeypatch.setitem(sys.modules, "h5py", None)
    result = meterveil("data", "show", "a.h5")
    assert result.exit_code == 2
    assert ".venv/bin/pip install -c constraints.txt -e '.[hdf5]'" in result.stderr


def test_the_command_to_install_a_package_depends_on_where_meterveil_runs(tmp_path):
    assert how_to_install("audit", tmp_path) == "pip install 'meterveil[audit]'"
    assert "torch's CPU build" in how_to_install("train", tmp_path)
    (tmp_path / "constraints.txt").touch()
    assert how_to_install("audit", tmp_path) == ".venv/bin/pip install -c constraints.txt -e '.[audit]'"


@pytest.mark.parametrize(
    "words", [["--seed", "x"], ["--seed", "-1"], ["--days", "many"], ["--out", ""], ["--nonsense"]]
)
def test_an_option_of_the_wrong_type_is_named_with_status_2(meterveil, words):
    result = meterveil("simulate", *words)
    assert result.exit_code == 2
    assert words[0] in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ('name it: unit="kW" if', "name it: --unit kW if"),
        ("name it: power=...", "name it: --power ..."),
        ("such as house=1", "such as --house 1"),
        ("leave `choice` out", "leave --choice out"),
        ("leave kettle out of `appliances`", "leave kettle out of --appliances"),
        ("data/house=1/a.csv is empty", "data/house=1/a.csv is empty"),
    ],
)
def test_python_arguments_in_messages_become_options(python, typed):
    assert spoken(python) == typed


def test_a_second_run_replaces_its_own_files_and_leaves_others(meterveil, tmp_path):
    assert meterveil("simulate", "--out", "here", "--defence", "none").exit_code == 0
    (tmp_path / "here" / "notes.txt").write_text("mine")
    assert meterveil("simulate", "--out", "here", "--defence", "flat").exit_code == 0
    assert json.loads((tmp_path / "here" / "summary.json").read_text())["defence"] == "flat"
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == ["day.html", "notes.txt", "summary.json", "trace.parquet"]


def test_a_full_disk_leaves_the_earlier_result_as_it_was(meterveil, tmp_path):
    words = ["simulate", "--out", "here", "--defence"]
    assert meterveil(*words, "none").exit_code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()}
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))  # noqa: E731
    done = shell(*words, "flat", cwd=tmp_path, preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr.startswith("cannot write here/day.html: File too large")
    assert {path.name: path.read_bytes() for path in (tmp_path / "here").iterdir()} == before


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["data", "show", "synthetic"]])
def test_output_that_cannot_be_printed_ends_in_one_line(tmp_path, words):
    with Path("/dev/full").open("w") as full:
        done = shell(*words, cwd=tmp_path, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == "cannot print: No space left on device"


def test_signs_that_a_terminal_cannot_show_are_replaced(tmp_path):
    table = own_table(tmp_path / "Küche.csv", days=1)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = shell("data", "show", table, "--power", "house_w", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^K\?che: 2024-04-15", done.stdout)
    assert re.search(r"aggregate +95\.8% +W +\d\.\d\d kWh", done.stdout)


def test_an_interrupt_ends_a_long_run_with_130_and_a_short_line(tmp_path):
    """The child restores the default action of the signal, which a shell may have set to ignore."""
    begun = tmp_path / "begun"
    code = (
        "import signal, sys, pathlib; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import meterveil.bench.simulation as work; simulate = work.simulate\n"
        "def begin(*words): pathlib.Path('begun').touch(); return simulate(*words)\n"
        "work.simulate = begin\n"
        "from meterveil.__main__ import main; main()"
    )
    command = [sys.executable, "-c", code, "simulate", "--days", "60", "--out", "long"]
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


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    with steps(4, "fitting") as on_done:
        on_done("co")
    assert capsys.readouterr().err == ""

    monkeypatch.setattr(tables, "LINE_EVERY_S", 0.0)
    with steps(4, "fitting") as on_done:
        on_done("co")
        on_done("fhmm")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("25 %")
    assert first.endswith(": fitting, done: co")
    assert second.startswith("50 %")
    assert " left: " in second
