"""The shipped model can be made again: examples are what they say, and the same seed gives the same file."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from meterveil.audit.examples import MINUTES, draw, source_of
from meterveil.audit.features import CHANNELS
from meterveil.audit.learning import TARGETS, Recipe, decide, train
from meterveil.audit.network import Network, onnx_bytes
from meterveil.audit.train import app, without_paper_day
from meterveil.data.household import Household


@pytest.fixture(scope="module")
def source(home):
    return source_of(home, TARGETS)


def test_the_background_and_the_appliances_make_up_the_meter(home, source):
    total_w = source.rest_w + sum(source.targets_w.values())
    assert np.mean(np.abs(total_w - home.aggregate_w) < 30.0) > 0.95


def test_examples_have_their_shapes_and_every_label_counts_where_all_is_metered(source):
    batch = draw([source], TARGETS, 3, np.random.default_rng(0))
    assert batch.seen.shape == (3, CHANNELS, MINUTES)
    assert batch.on.shape == batch.weight.shape == (3, len(TARGETS), MINUTES)
    assert batch.weight.all()


def test_a_home_that_does_not_meter_an_appliance_teaches_nothing_about_its_absence(home, source):
    blind = source_of(home.select(["kettle"]), TARGETS)
    batch = draw([blind, source], TARGETS, 20, np.random.default_rng(0))
    washing = TARGETS.index("washing_machine")
    masked = ~batch.weight[:, washing].all(axis=-1)
    assert masked.any()
    left_out = batch.weight[masked, washing] == 0
    assert left_out.any()
    assert not batch.on[masked, washing][left_out].any()


BEFORE, AROUND = MINUTES + 120, 3 * MINUTES + 120
"""Minutes before the paper's day, and in all with that day and the next: few examples fit beside it."""


def around_the_papers_day(kettle_w):
    minutes = pd.date_range("2013-03-16 22:00", periods=AROUND, freq="min", tz="Europe/London")
    return Household("march", minutes, kettle_w + 100.0, {"kettle": kettle_w})


def test_nothing_of_the_papers_day_is_in_any_example():
    minute = np.arange(AROUND)
    only_then_w = np.where((minute >= BEFORE) & (minute < BEFORE + MINUTES), 2000.0, 0.0)
    source = source_of(without_paper_day(around_the_papers_day(only_then_w)), ["kettle"])
    assert not source.targets_w["kettle"].any()
    assert not draw([source], ["kettle"], 50, np.random.default_rng(0)).on.any()


def test_an_unknown_minute_is_never_labelled_off():
    always_on = without_paper_day(around_the_papers_day(np.full(AROUND, 2000.0)))
    batch = draw([source_of(always_on, ["kettle"])], ["kettle"], 50, np.random.default_rng(0))
    assert batch.on.all()


def test_the_same_seed_gives_the_same_file_and_another_seed_another(source):
    first, again, other = (
        onnx_bytes(train([source], Recipe(steps=2, batch=2, seed=seed))) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_the_file_computes_what_the_network_does():
    torch.manual_seed(0)
    network = Network(len(TARGETS)).eval()
    seen = np.random.default_rng(0).normal(size=(2, CHANNELS, 700)).astype(np.float32)
    session = onnxruntime.InferenceSession(onnx_bytes(network), providers=["CPUExecutionProvider"])
    with torch.inference_mode():
        expected = network(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(session.run(None, {"seen": seen})[0], expected, atol=1e-4)


def test_training_learns_and_decisions_follow(home, source):
    losses = []
    network = train([source], Recipe(steps=12, batch=2), lambda _, loss: losses.append(loss))
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    days = [home.select(TARGETS).day(day) for day in home.days()[:2]]
    decisions = decide(onnx_bytes(network), days, days[:1], np.random.default_rng(0))
    assert list(decisions) == list(TARGETS)


def test_without_the_data_the_command_says_what_to_give(monkeypatch, tmp_path):
    monkeypatch.delenv("METERVEIL_DATA", raising=False)
    result = CliRunner().invoke(app, ["--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "METERVEIL_DATA" in result.output
    assert not list(tmp_path.iterdir())
