"""Behaviour and training observations on a synthetic household, and the tables of studies."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import torch

from experiments import battery_chart, battery_hours, study, training_observations, untrained_defences
from experiments.decisions import Played
from experiments.training_observations import House, by_length, curve_of, hourly_error_w, probe_errors
from meterveil.bench.results import read_runs
from meterveil.core.battery import Battery
from meterveil.core.executor import add_power
from meterveil.data import outputs, synthetic
from meterveil.data.protocols import REDD_HOUSE2
from meterveil.data.simulation import Setup, episodes
from meterveil.data.splits import Scaler
from meterveil.defenders.defence import Defence, find_defence
from meterveil.defenders.manager.manager_training import Update
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.training_days import Trained
from meterveil.errors import InputError

SETUP = Setup(synthetic.decoy_library())

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def house():
    home = synthetic.household(np.random.default_rng(0), days=3)
    learning, validation = (episodes(home, days, SETUP.tariff) for days in (home.days()[:2], home.days()[2:]))
    chosen = replace(REDD_HOUSE2, training=tuple(home.days()))
    return House("redd", chosen, home, SETUP, learning, validation.rows([0] * training_observations.PLAYS))


class Charging:
    """Policy that always charges with 800 W."""

    def initial(self, batch):
        return None

    def decide(self, view, memory):
        return add_power(view.library, np.full(len(view.load_w), 800.0)), memory


def test_a_table_replaces_the_figures_of_the_same_row_and_keeps_its_run(tmp_path):
    for value in (1.0, 2.0 / 3.0):
        figures = [{"dataset": "redd", "row": "flat", "metric": "net_kwh", "value": value, "n_days": 2}]
        study.record(tmp_path, "battery_hours", "battery_hours_redd_flat", figures, {"plays": 5})
    study.record(tmp_path, "battery_hours", "b", [{**figures[0], "row": "none"}], {})
    table = study.read(tmp_path, "battery_hours")
    assert table["row"].tolist() == ["flat", "none"]
    assert table["value"].tolist() == [0.666667, 0.666667]
    assert read_runs(tmp_path)["battery_hours_redd_flat"].settings == {"plays": 5}
    with pytest.raises(InputError, match="run the study"):
        study.read(tmp_path, "alignment")


def test_a_study_waits_while_another_process_writes_results(tmp_path):
    figures = [{"dataset": "redd", "row": "flat", "metric": "f1", "value": 1.0}]
    recording = Thread(target=study.record, args=(tmp_path, "crossing", "run", figures, {}))
    with outputs.locked(tmp_path):
        recording.start()
        recording.join(0.5)
        assert recording.is_alive()
        assert not study.is_recorded(tmp_path, "crossing")
    recording.join(30.0)
    assert study.read(tmp_path, "crossing")["row"].tolist() == ["flat"]


def test_a_battery_that_only_charges_fills_up_and_spends_its_budget(house):
    hours = battery_hours.hours_of(Defence("charging", (Charging(),)), SETUP, house.learning)
    assert hours.soc[0] == pytest.approx(0.55, abs=0.01)
    np.testing.assert_allclose(hours.soc[5:], 0.9)
    np.testing.assert_allclose(hours.rms_w[:4], 800.0)
    assert hours.net_kwh == pytest.approx(0.4 * 8.0)
    assert hours.spent_hour == 24.0
    small = replace(SETUP, battery=Battery(budget_kwh=1.6))
    spent = battery_hours.hours_of(Defence("charging", (Charging(),)), small, house.learning)
    assert spent.spent_hour == pytest.approx(1.5 / 0.8, abs=1 / 60)


def test_battery_hours_are_recorded_and_drawn(house, tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(battery_hours, "save", lambda figure, path, width: saved.append(figure))
    chance = Defence("chance", (house.random_manager,))
    delivery = battery_hours.delivery_of(chance, SETUP, house.learning)
    assert 0.0 < delivery.discharged < delivery.charged < 1.0
    assert battery_hours.delivery_of(find_defence("flat"), SETUP, house.learning) is None
    hours = battery_hours.hours_of(chance, SETUP, house.learning)
    study.record(tmp_path, "battery_hours", "b", battery_hours.figures_of("redd", "chance", hours, delivery, 2), {})
    battery_hours.main(["--on", "redd", "--picture", "--results", str(tmp_path)])
    assert [trace.name for trace in saved[0].data] == ["chance"] * 3
    with pytest.raises(InputError, match="ukdale"):
        battery_hours.main(["--on", "ukdale", "--picture", "--results", str(tmp_path)])


def test_a_probe_that_copies_the_meter_has_the_error_of_the_battery_power(house):
    errors = probe_errors(house, Probe("cnn", Scaler(300.0, 400.0), torch.nn.Identity()))
    np.testing.assert_allclose(errors.error_w, errors.rms_w, rtol=1e-5)
    assert errors.correlation == pytest.approx(1.0)
    assert hourly_error_w(house, house.random_manager) > 100.0


def test_rewards_by_length_and_smoothed_curves():
    zeros = np.zeros(3)
    played = Played(zeros, zeros, zeros, np.array([5, 5, 10]), zeros, np.array([1.0, 3.0, 4.0]), np.zeros((3, 60)))
    assert list(by_length(played)) == [(5, 2.0), (10, 4.0)]
    updates = [Update(n, n * 10, 0.0, 10.0, None if n < 2 else float(n), 1.0) for n in range(10)]
    run = Trained(None, tuple(updates), 1.0)
    assert curve_of(run, smoothing=2) == [(n, n - 0.5) for n in range(3, 10)]


@pytest.mark.slow
def test_the_observations_are_recorded_and_drawn(house, tmp_path, monkeypatch):
    quality = {"rmse_w": 1.0, "explained": 1.0}
    monkeypatch.setattr(
        training_observations,
        "train_probe",
        lambda kind, *_: Probe(kind, Scaler(300.0, 400.0), torch.nn.Identity(), quality),
    )
    tiny = {"budget_days": 16, "horizon": 128, "slots": 8, "minibatch": 64, "epochs": 1}
    curves = {name: replace(part, **tiny) for name, part in training_observations.CURVES.items()}
    figures = training_observations.observe(house, curves)
    study.record(tmp_path, "training_observations", "t", figures, {})
    saved = []
    monkeypatch.setattr(training_observations, "save", lambda figure, path, width: saved.append(path.name))
    training_observations.main(["--picture", "--results", str(tmp_path)])
    assert saved == ["training-probes.png", "training-lengths.png", "training-rates.png"]


def test_untrained_defences_are_tabulated(house):
    figures = {name: untrained_defences.measure(name, house.learning) for name in ("none", "flat")}
    assert figures["none"].kwh.max() == 0.0 < figures["flat"].kwh.min()
    table = untrained_defences.long_table("two days", figures)
    assert study.put("<!-- x -->old<!-- end of x -->", "x", table).count("`flat`") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["informed_attack", "paper_pictures"])
def test_a_long_study_describes_its_options(name):
    command = [sys.executable, "-m", f"experiments.{name}", "-h"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "--data" in printed


def test_the_smallest_battery_that_is_enough_is_marked_in_the_chart():
    followed = {"8/4/8": 0.999, "4/3/8": 0.996, "4/2/8": 0.99, "2/2/16": 1.0, "12/1/8": 0.9}
    house = pd.DataFrame({"followed": followed, "bits": 9.0, "missed_minutes": 1.0})
    marks = {(cell.capacity_kwh, cell.power_kw): cell.mark for cell in battery_chart.cells(house)}
    assert marks == {(8, 4): "", (4, 3): "enough", (4, 2): "", (12, 1): ""}
