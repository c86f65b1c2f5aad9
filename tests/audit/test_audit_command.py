"""`meterveil audit` as a user types it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from command_line import run
from meterveil.cli import app


@pytest.fixture
def audit(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["audit", *map(str, words)])


def page_of(folder):
    return next(folder.rglob("audit.html")).read_text()


def document_of(folder):
    return json.loads(next(folder.rglob("audit.json")).read_text())


def test_a_month_of_minutes_is_audited_on_one_page_that_prints_its_time_zone(audit, tmp_path, home):
    watts = np.tile(home.aggregate_w, 3)[: 30 * 1440]
    minutes = pd.date_range("2024-06-01", periods=len(watts), freq="min", tz="Europe/London")
    table = pd.DataFrame({"time": minutes.tz_convert("UTC"), "power_w": watts.round(1)})
    table.to_csv(tmp_path / "mine.csv", index=False)
    result = audit(tmp_path / "mine.csv", "--timezone", "Europe/London")
    assert result.exit_code == 0, result.output
    assert all(word in result.output for word in ("kettle", "probably asleep", "audit.html"))
    page = page_of(tmp_path)
    assert all(head in page for head in ("Appliances", "Every day", "Habits", "How it was read"))
    assert "Europe/London" in page
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?://', page)


def test_chosen_days_are_half_open_and_written_as_json(audit, tmp_path):
    days = ("--from", "2024-04-16", "--to", "2024-04-18", "--day", "2024-04-17")
    result = audit("synthetic", "--no-train", *days)
    assert result.exit_code == 0, result.output
    assert "Wednesday 17 April 2024" in page_of(tmp_path)
    document = document_of(tmp_path)
    assert document["days"] == ["2024-04-16", "2024-04-17"]
    assert document["interval_minutes"] == 1
    assert {use["appliance"] for use in document["uses"]} >= {"kettle", "fridge"}
    assert all(0 <= use["probability"] <= 1 for use in document["uses"])
    assert {part["state"] for part in document["quiet"]} <= {"asleep", "empty"}


def test_half_hourly_readings_show_sleep_but_no_appliances(audit, tmp_path, home):
    energy_kwh = home.aggregate_w.reshape(-1, 30).mean(axis=1) / 2000.0
    stamps = pd.date_range("2024-06-01", periods=len(energy_kwh), freq="30min", tz="UTC")
    table = pd.DataFrame({"start": stamps, "consumption_kwh": energy_kwh.round(3)})
    table.to_csv(tmp_path / "half.csv", index=False)
    result = audit(tmp_path / "half.csv")
    assert result.exit_code == 0, result.output
    assert all(words in result.output for words in ("30 minutes apart", "too coarse", "probably asleep"))
    assert "Too coarse" in page_of(tmp_path)
    assert document_of(tmp_path)["uses"] == []


@pytest.mark.parametrize(
    "words",
    [
        ["nowhere.csv"],
        ["synthetic", "--from", "2020-01-01"],
        ["synthetic", "--no-train", "--day", "2020-01-01"],
        ["synthetic", "--unit", "kW"],
    ],
    ids=lambda words: words[-1],
)
def test_bad_input_is_named_in_one_line_and_writes_nothing(audit, tmp_path, words):
    result = audit(*words)
    assert result.exit_code == 2
    assert words[-1].removesuffix("kW") in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("audit.*"))


@pytest.mark.slow
def test_a_household_with_sub_meters_is_scored(audit, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # also shows the progress bar
    result = audit("synthetic", "--to", "2024-04-20")
    assert result.exit_code == 0, result.output
    assert "done: fhmm" in result.stderr
    assert {score["attacker"] for score in document_of(tmp_path)["scores"]} == {"fhmm", "shipped"}


def test_without_the_training_libraries_the_audit_states_how_to_install_them(audit, monkeypatch):
    monkeypatch.setattr("meterveil.audit.submeters.find_spec", lambda name: None)
    result = audit("synthetic")
    assert result.exit_code == 0, result.output
    assert "pip install" in " ".join(result.output.split())


def test_the_trace_of_a_simulation_is_read_with_the_battery_and_compared_with_the_load(tmp_path):
    assert run("simulate", "--defence", "flat", "--out", tmp_path).exit_code == 0
    result = run("audit", tmp_path / "trace.parquet", "--out", tmp_path / "audit")
    assert result.exit_code == 0, result.output
    assert "a trace of meterveil simulate: read as its meter shows it" in result.output
    assert re.search(r"kettle +[1-9]\.0 +0\.0 +0 of [1-9]", result.output)
    load = run("audit", tmp_path / "trace.parquet", "--power", "load_w", "--out", tmp_path / "audit")
    assert "(before)" not in load.output
    assert re.search(r"kettle +[1-9]", load.output)
