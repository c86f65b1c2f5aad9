"""Training of the audit model: examples, reproducible files, calibration; and the presence check."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

from experiments import audit_training, presence_check
from experiments.audit_examples import MINUTES, draw, source_of
from experiments.audit_training import TARGETS, Network, Recipe, decide, fit_curve, onnx_bytes, train
from meterveil.audit.model import CHANNELS, Curve, load_model
from meterveil.data.household import Household
from meterveil.data.synthetic import household

AROUND = 3 * MINUTES + 120
"""Minutes from two hours before the day before the paper's test day to the end of the day after it."""


@pytest.fixture(scope="module")
def home():
    return household(np.random.default_rng(0), days=6)


@pytest.fixture(scope="module")
def source(home):
    return source_of(home, TARGETS)


def test_examples_are_labelled_where_the_appliance_is_metered(home, source):
    total_w = source.rest_w + sum(source.targets_w.values())
    assert np.mean(np.abs(total_w - home.aggregate_w) < 30.0) > 0.95
    batch = draw([source], TARGETS, 3, np.random.default_rng(0))
    assert batch.seen.shape == (3, CHANNELS, MINUTES)
    assert batch.weight.all()
    mixed = draw([source_of(home.select(["kettle"]), TARGETS), source], TARGETS, 20, np.random.default_rng(0))
    ignored = mixed.weight == 0
    assert ignored[:, TARGETS.index("washing_machine")].any()
    assert not mixed.on[ignored].any()


def test_examples_contain_nothing_of_the_papers_day():
    minute = np.arange(AROUND)
    kettle_w = np.where((minute >= MINUTES + 120) & (minute < 2 * MINUTES + 120), 2000.0, 0.0)
    minutes = pd.date_range("2013-03-16 22:00", periods=AROUND, freq="min", tz="Europe/London")
    march = Household("march", minutes, kettle_w + 100.0, {"kettle": kettle_w})
    hidden = source_of(audit_training.without_paper_day(march), ["kettle"])
    assert not draw([hidden], ["kettle"], 50, np.random.default_rng(0)).on.any()


def test_the_onnx_file_computes_what_the_network_computes():
    torch.manual_seed(0)
    network = Network(len(TARGETS)).eval()
    seen = np.random.default_rng(0).normal(size=(2, CHANNELS, 700)).astype(np.float32)
    session = onnxruntime.InferenceSession(onnx_bytes(network), providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = network(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(session.run(None, {"seen": seen})[0], expected, atol=1e-4)


def test_training_is_reproducible_and_learns(home, source):
    files = [onnx_bytes(train([source], Recipe(steps=2, batch=2, seed=seed))) for seed in (0, 0, 1)]
    assert files[0] == files[1] != files[2]
    losses = []
    network = train([source], Recipe(steps=12, batch=2), lambda _, loss: losses.append(loss))
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    days = [home.select(TARGETS).day(day) for day in home.days()[:2]]
    decisions = decide(onnx_bytes(network), days, days[:1], np.random.default_rng(0))
    assert list(decisions) == list(TARGETS)


def test_a_calibration_curve_recovers_frequencies():
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 3.0, 20_000)
    fitted = fit_curve(scores, rng.random(20_000) < Curve(0.5, -1.0).probability(scores))
    assert fitted == pytest.approx((0.5, -1.0), abs=0.06)


def test_the_presence_rule_is_measured_against_the_plans_of_synthetic_homes():
    shares = presence_check.measure([100, 101], 7, load_model()).shares()
    assert shares["called asleep, right"] > 0.9
    assert shares["nights called asleep or empty"] > 0.85
