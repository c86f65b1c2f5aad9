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
from meterveil.errors import InputError

BEFORE, AROUND = MINUTES + 120, 3 * MINUTES + 120
"""Minutes before the paper's day, and in all with that day and the next."""


@pytest.fixture(scope="module")
def home():
    return household(np.random.default_rng(0), days=6)


@pytest.fixture(scope="module")
def source(home):
    return source_of(home, TARGETS)


def around_the_papers_day(kettle_w):
    minutes = pd.date_range("2013-03-16 22:00", periods=AROUND, freq="min", tz="Europe/London")
    return audit_training.without_paper_day(
        Household("march", minutes, kettle_w + 100.0, {"kettle": kettle_w})
    )


def test_examples_are_labelled_where_the_appliance_is_metered(home, source):
    total_w = source.rest_w + sum(source.targets_w.values())
    assert np.mean(np.abs(total_w - home.aggregate_w) < 30.0) > 0.95
    batch = draw([source], TARGETS, 3, np.random.default_rng(0))
    assert batch.seen.shape == (3, CHANNELS, MINUTES)
    assert batch.weight.all()
    unmetered = source_of(home.select(["kettle"]), TARGETS)
    mixed = draw([unmetered, source], TARGETS, 20, np.random.default_rng(0))
    washing = TARGETS.index("washing_machine")
    ignored = mixed.weight[:, washing] == 0
    assert ignored.any()
    assert not mixed.on[:, washing][ignored].any()


def test_examples_contain_nothing_of_the_papers_day_and_no_unknown_minute_as_off():
    minute = np.arange(AROUND)
    only_then_w = np.where((minute >= BEFORE) & (minute < BEFORE + MINUTES), 2000.0, 0.0)
    hidden = source_of(around_the_papers_day(only_then_w), ["kettle"])
    assert not draw([hidden], ["kettle"], 50, np.random.default_rng(0)).on.any()
    always_on = source_of(around_the_papers_day(np.full(AROUND, 2000.0)), ["kettle"])
    assert draw([always_on], ["kettle"], 50, np.random.default_rng(0)).on.all()


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


def test_a_curve_recovers_frequencies_and_stays_plain_without_cases():
    rng = np.random.default_rng(0)
    scores = rng.normal(0.0, 3.0, 20_000)
    fitted = fit_curve(scores, rng.random(20_000) < Curve(0.5, -1.0).probability(scores))
    assert fitted == pytest.approx((0.5, -1.0), abs=0.06)
    assert fit_curve(np.zeros(0), np.zeros(0, dtype=bool)) == Curve(1.0, 0.0)


def test_training_needs_data(monkeypatch, tmp_path):
    monkeypatch.delenv("METERVEIL_DATA", raising=False)
    with pytest.raises(InputError, match="METERVEIL_DATA"):
        audit_training.main(["--out", str(tmp_path)])


def test_the_presence_rule_is_measured_against_the_plans_of_synthetic_homes():
    shares = presence_check.measure([100, 101], 7, load_model()).shares()
    assert shares["called asleep, right"] > 0.9
    assert shares["nights called asleep or empty"] > 0.85
    up, night, asleep, empty, sure = np.array(
        [[0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]],
        dtype=bool,
    )
    by_hand = [1 / 2, 1 / 2, 2 / 3, 1.0, 0.0, 1.0, 1 / 2]
    assert list(presence_check.Minutes(up, night, asleep, empty, sure).shares().values()) == pytest.approx(
        by_hand
    )
