"""`meterveil audit` as a user types it."""

import json
import re
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from meterveil.cli import app


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def own_table(tmp_path, home):
    """A month of one's own minutes, without sub-meters."""
    watts = np.tile(home.aggregate_w, 3)[: 30 * 1440]
    minutes = pd.date_range("2024-06-01", periods=len(watts), freq="min", tz="Europe/London")
    path = tmp_path / "mine.csv"
    pd.DataFrame({"time": minutes.tz_convert("UTC"), "power_w": watts.round(1)}).to_csv(path, index=False)
    return path


@pytest.fixture
def half_hourly(tmp_path, home):
    """What a supplier sends: energy of every half-hour."""
    energy_kwh = home.aggregate_w.reshape(-1, 30).mean(axis=1) / 2000.0
    stamps = pd.date_range("2024-06-01", periods=len(energy_kwh), freq="30min", tz="UTC")
    path = tmp_path / "half.csv"
    pd.DataFrame({"start": stamps, "consumption_kwh": energy_kwh.round(3)}).to_csv(path, index=False)
    return path


def page_of(folder):
    return (folder / "out/audit/audit.html").read_text()


def test_a_month_of_minutes_is_audited_within_thirty_seconds(meterveil, own_table, tmp_path):
    begun = time.monotonic()
    result = meterveil("audit", own_table)
    assert time.monotonic() - begun < 30
    assert result.exit_code == 0, result.output
    assert all(word in result.output for word in ("kettle", "probably asleep", "audit.html"))
    page = page_of(tmp_path)
    assert all(
        f"<h2>{head}</h2>" in page for head in ("Appliances", "Every day", "Habits", "How it was read")
    )
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?://', page)


def test_the_findings_are_written_for_machines_too(meterveil, tmp_path):
    assert meterveil("audit", "synthetic", "--no-train").exit_code == 0
    found = json.loads((tmp_path / "out/audit/audit.json").read_text())
    assert found["interval_minutes"] == 1
    assert {use["appliance"] for use in found["uses"]} >= {"kettle", "fridge"}
    assert all(0 <= use["probability"] <= 1 for use in found["uses"])
    assert {part["state"] for part in found["quiet"]} == {"asleep", "empty"}


def test_half_hourly_readings_are_too_coarse_and_still_tell_something(meterveil, half_hourly, tmp_path):
    result = meterveil("audit", half_hourly)
    assert result.exit_code == 0, result.output
    assert "30 minutes apart" in result.output
    assert "too coarse to read appliances" in result.output
    assert "probably asleep" in result.output
    assert "Too coarse for appliances" in page_of(tmp_path)
    assert json.loads((tmp_path / "out/audit/audit.json").read_text())["uses"] == []


def test_chosen_days_are_half_open_and_a_day_can_be_shown(meterveil, tmp_path):
    result = meterveil(
        "audit",
        "synthetic",
        "--no-train",
        "--from",
        "2024-04-16",
        "--to",
        "2024-04-18",
        "--day",
        "2024-04-17",
    )
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out/audit/audit.json").read_text())["days"] == ["2024-04-16", "2024-04-17"]
    assert "Wednesday 17 April 2024" in page_of(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "nowhere.csv"),
        (["synthetic", "--from", "yesterday"], "--from 'yesterday' is no day"),
        (["synthetic", "--from", "2020-01-01"], "is not recorded"),
        (["synthetic", "--no-train", "--day", "2020-01-01"], "does not record 2020-01-01"),
        (["synthetic", "--unit", "kW"], "--unit does not apply to synthetic"),
        (["synthetic", "--from", "2024-04-20", "--to", "2024-04-18"], "end must be after start"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(meterveil, tmp_path, words, message):
    result = meterveil("audit", *words)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("audit.*"))


def test_a_household_with_sub_meters_is_scored_within_a_minute(meterveil, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # shows the bar, too
    begun = time.monotonic()
    result = meterveil("audit", "synthetic", "--to", "2024-04-20")
    assert time.monotonic() - begun < 60
    assert result.exit_code == 0, result.output
    assert "1/1" in result.stderr  # attackers, whatever the number of appliances
    assert "fhmm, learned here" in result.output
    scores = json.loads((tmp_path / "out/audit/audit.json").read_text())["scores"]
    assert {score["attacker"] for score in scores} == {"fhmm", "shipped"}


def test_what_the_reader_assumed_is_said(meterveil, own_table):
    result = meterveil("audit", own_table)
    assert "note: " in result.output


def test_without_the_extra_the_audit_says_how_to_get_it(meterveil, monkeypatch):
    monkeypatch.setattr("meterveil.audit.trained.find_spec", lambda name: None)
    result = meterveil("audit", "synthetic")
    assert result.exit_code == 0, result.output
    assert "pip install -c constraints.txt -e '.[train]'" in " ".join(result.output.split())


def test_a_constant_meter_is_refused(meterveil, tmp_path):
    minutes = pd.date_range("2024-06-01", periods=1440, freq="min", tz="UTC")
    pd.DataFrame({"time": minutes, "power_w": 230.0}).to_csv(tmp_path / "flat.csv", index=False)
    result = meterveil("audit", tmp_path / "flat.csv")
    assert result.exit_code == 2
    assert "230 W in every minute" in result.output


def test_seconds_are_averaged_and_a_day_with_gaps_is_read(meterveil, tmp_path, home):
    watts = np.repeat(home.aggregate_w[:1440], 6)
    stamps = pd.date_range("2024-06-01", periods=len(watts), freq="10s", tz="UTC")
    table = pd.DataFrame({"time": stamps, "power_w": watts}).drop(index=range(3000, 3600))
    table.to_csv(tmp_path / "seconds.csv", index=False)
    result = meterveil("audit", tmp_path / "seconds.csv", "--timezone", "Europe/London")
    assert result.exit_code == 0, result.output
    assert "kettle" in result.output
