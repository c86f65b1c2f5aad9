"""The shipped model reads homes that it never saw, and refuses files that are not what they were."""

import json
import subprocess
import sys

import numpy as np
import pytest

from meterveil.audit.features import features, lowest
from meterveil.audit.model import CARD, SHIPPED, STRETCH_MINUTES, WEIGHTS, bridged, load_model
from meterveil.audit.scoring import score
from meterveil.data.refit import read_refit
from meterveil.errors import InputError


@pytest.fixture
def copy(tmp_path):
    for name in (CARD, WEIGHTS):
        (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    return tmp_path


def use_f1(model, home, name):
    said = np.isin(
        np.arange(len(home.minutes)),
        [
            minute
            for use in model.read(home.aggregate_w).uses
            if use.appliance == name
            for minute in range(use.start, use.end)
        ],
    )
    return score(name, home.appliances_w[name], said.astype(float)).use_f1


@pytest.mark.parametrize(("name", "least"), [("kettle", 0.75), ("fridge", 0.75), ("dishwasher", 0.5)])
def test_a_home_that_it_never_saw_is_read(model, home, name, least):
    assert use_f1(model, home, name) > least


@pytest.mark.parametrize(("name", "least"), [("kettle", 0.7), ("dishwasher", 0.7)])
def test_a_real_home_that_it_never_saw_is_read(model, real_data, name, least):
    assert use_f1(model, read_refit(real_data / "refit", 2), name) > least


def test_uses_called_likely_are_mostly_right(model):
    for home in ("refit_house_2", "synthetic"):
        assert model.card["accuracy"][home]["kettle"]["likely_right"] > 0.75


def test_a_base_load_changes_nothing(model, home):
    one_day = home.aggregate_w[:1440]
    plain, raised = (model.read(watts).uses for watts in (one_day, one_day + 500.0))
    assert [use[:3] for use in plain] == [use[:3] for use in raised]


def test_a_long_record_is_read_in_pieces_that_fit_together(model, home):
    long_w = np.tile(home.aggregate_w, 4)
    whole = model.answer(features(long_w[None]))[0]
    pieces = np.stack(list(model.logits(long_w).values()))
    seam = slice(STRETCH_MINUTES - 300, STRETCH_MINUTES + 300)
    np.testing.assert_allclose(pieces[:, seam], whole[:, seam], atol=1e-2)


def test_a_gap_is_unknown_and_starts_no_use(model, home):
    watts = home.aggregate_w[:2880].copy()
    watts[600:700] = np.nan
    reading = model.read(watts)
    assert all(np.isnan(part[600:700]).all() for part in reading.probability.values())
    assert not [use for use in reading.uses if 600 <= use.start < 700]
    assert bridged(np.array([1.0, np.nan, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_the_lowest_reading_around_each_minute_is_found():
    rng = np.random.default_rng(0)
    watts = rng.uniform(0, 100, (2, 200))
    padded = np.pad(watts, ((0, 0), (15, 15)), mode="edge")
    expected = np.lib.stride_tricks.sliding_window_view(padded, 31, axis=-1).min(axis=-1)
    np.testing.assert_array_equal(lowest(watts, 31), expected)


def test_an_altered_model_is_refused(copy):
    (copy / WEIGHTS).write_bytes((copy / WEIGHTS).read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="is not the file that"):
        load_model(copy)


def test_a_foreign_card_is_refused(copy):
    (copy / CARD).write_text(json.dumps({"format": "other"}))
    with pytest.raises(InputError, match="meterveil-audit-1"):
        load_model(copy)


def test_a_missing_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"python -m meterveil\.audit\.train"):
        load_model(tmp_path)


def test_the_model_is_small_and_says_where_it_comes_from(model):
    assert len(model.weights) < 3_000_000
    assert "CC BY 4.0" in model.card["attribution"]


def test_reading_needs_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from meterveil.audit.model import load_model\n"
        "load_model().read(np.random.default_rng(0).uniform(0, 3000, 1440))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
