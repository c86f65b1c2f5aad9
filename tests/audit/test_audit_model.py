"""Shipped model: what it reads in unseen homes, and which files it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest

from meterveil.audit.model import (
    CARD,
    SHAPES,
    SHIPPED,
    STRETCH_MINUTES,
    WEIGHTS,
    bridged,
    features,
    load_model,
    minutes_of,
)
from meterveil.audit.submeters import score
from meterveil.data.releases import read_refit
from meterveil.errors import InputError


def use_f1(model, home, name):
    uses = [(use.start, use.end) for use in model.read(home.aggregate_w).uses if use.appliance == name]
    on = minutes_of(uses, len(home.minutes)).astype(float)
    return score(name, home.appliances_w[name], on).use_f1


@pytest.mark.parametrize(("name", "least"), [("kettle", 0.75), ("fridge", 0.75), ("dishwasher", 0.5)])
def test_a_synthetic_home_is_read(model, home, name, least):
    assert use_f1(model, home, name) > least


@pytest.mark.parametrize(("name", "least"), [("kettle", 0.7), ("dishwasher", 0.7)])
def test_a_real_unseen_home_is_read(model, real_data, name, least):
    assert use_f1(model, read_refit(real_data / "refit", 2), name) > least


def test_the_card_states_origin_accuracy_and_every_appliance(model):
    assert "CC BY 4.0" in model.card["attribution"]
    assert list(model.decisions) == list(SHAPES)
    for home in ("refit_house_2", "synthetic"):
        assert model.card["accuracy"][home]["kettle"]["likely_right"] > 0.75


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (WEIGHTS, b"altered", "is not the file"),
        (CARD, json.dumps({"format": "other"}).encode(), "meterveil-audit-1"),
        (CARD, None, "holds no audit model"),
    ],
)
def test_altered_foreign_and_missing_files_are_refused(tmp_path, name, content, message):
    for file in (CARD, WEIGHTS):
        (tmp_path / file).write_bytes((SHIPPED / file).read_bytes())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_reading_needs_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from meterveil.audit.model import load_model\n"
        "load_model().read(np.random.default_rng(0).uniform(0, 3000, 1440))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
