"""What is deployed decides as what was trained, needs little, and is believed only as it was written."""

import json
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
from small import LIBRARY, TINY, scenario

import meterveil
from meterveil.core.battery import Battery
from meterveil.core.rollout import rollout
from meterveil.core.tariff import PAPER_TARIFF, PriceSeries
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders import bundle
from meterveil.defenders.bundle_export import export
from meterveil.defenders.manager.run import Options, learn, load_run
from meterveil.errors import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = synthetic.household(np.random.default_rng(0), days=2)
    folder = tmp_path_factory.mktemp("run")
    battery = Battery(capacity_kwh=6.0, budget_kwh=float("inf"))
    setup = Setup(LIBRARY, battery, seed=3)
    learn(home, home.days(), setup, Options(TINY, "identity"), folder, {"commit": "abc"})
    return folder


@pytest.fixture
def exported(run, tmp_path):
    return export(run, tmp_path / "bundle")


def test_a_bundle_decides_ten_thousand_times_as_the_trained_policy(run, exported):
    trained, deployed = load_run(run).policy, meterveil.load_bundle(exported).policy
    rng = np.random.default_rng(0)
    observation = rng.normal(size=(10_000, 6)).astype(np.float32)
    mask = rng.random((10_000, 7)) < 0.6
    mask[:, 0] = True
    chance = rng.random(10_000)
    for choice in ("sampled", "greedy"):
        theirs, ours = (
            type(policy)(policy.network, 7, policy.masked, choice).actions(observation, mask, chance)
            for policy in (trained, deployed)
        )
        np.testing.assert_array_equal(ours, theirs)
    assert len(np.unique(ours)) > 3


def test_a_bundle_acts_for_days_as_the_run_does(run, exported):
    loaded, deployed = load_run(run), meterveil.load_bundle(exported)
    world = scenario(days=3, seed=8, gaps=True)
    traces = [
        rollout(
            policy, deployed.battery, deployed.library, world, [np.random.default_rng(n) for n in range(3)]
        )
        for policy in (loaded.policy, deployed.policy)
    ]
    np.testing.assert_array_equal(traces[0].power_w, traces[1].power_w)
    assert np.abs(traces[0].power_w).max() > 0.0


def test_a_bundle_brings_its_battery_tariff_library_and_card(exported):
    deployed = meterveil.load_bundle(exported)
    assert deployed.battery == Battery(capacity_kwh=6.0, budget_kwh=float("inf"))
    assert deployed.tariff == PAPER_TARIFF
    assert deployed.library.digest() == LIBRARY.digest()
    card = deployed.card
    assert card["household"] == "synthetic"
    assert (card["seed"], card["commit"], len(card["days"])) == (3, "abc", 2)
    assert card["figures"]["training_days_moved_kwh"] > 0.0
    assert card["options"]["preset"]["loss"] == "rmse"
    assert "curve" not in card


def test_a_bundle_may_be_exported_again_but_not_over_somebody_else_s_files(run, exported, tmp_path):
    assert export(run, exported) == exported
    for name in ("settings.json", "policy.onnx"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text('{"mine": 1}')
        with pytest.raises(InputError, match=f"holds {name} that meterveil did not write"):
            export(run, folder)
        assert [path.name for path in folder.iterdir()] == [name]


def test_every_kind_of_tariff_survives():
    series = PriceSeries(np.array([0, 30]), np.array([0.1, 0.2]), 30)
    back = bundle.tariff_from(json.loads(json.dumps(bundle.tariff_document(series))))
    np.testing.assert_array_equal(back.price(np.array([5]), np.array([35])), [0.2])
    with pytest.raises(InputError, match="a tariff of kind object cannot be written down"):
        bundle.tariff_document(object())


@pytest.mark.parametrize("name", bundle.FILES)
def test_a_missing_or_altered_file_is_refused(exported, name):
    content = (exported / name).read_bytes()
    (exported / name).write_bytes(content + b" ")
    with pytest.raises(InputError, match=f"{name} was altered since its export"):
        meterveil.load_bundle(exported)
    (exported / name).unlink()
    with pytest.raises(InputError, match=f"lacks {name}; export it again"):
        meterveil.load_bundle(exported)


def test_what_is_no_bundle_is_refused(tmp_path, exported):
    with pytest.raises(InputError, match=r"holds no bundle \(bundle.json\); write one with meterveil export"):
        meterveil.load_bundle(tmp_path)
    (exported / "bundle.json").write_text('{"format": "else"}')
    with pytest.raises(InputError, match="is not of"):
        meterveil.load_bundle(exported)


def test_acting_needs_neither_torch_nor_pandas(exported):
    code = f"""
import sys, numpy as np, meterveil
bundle = meterveil.load_bundle({str(exported)!r})
bundle.policy.actions(np.zeros((1, 6), np.float32), np.ones((1, 7), bool), np.zeros(1))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "onnxruntime" in loaded
    assert not loaded & {
        "torch",
        "pandas",
        "pyarrow",
        "gymnasium",
        "stable_baselines3",
        "onnx",
        "safetensors",
    }


def test_an_altered_or_unfinished_run_is_not_exported(run, tmp_path):
    with pytest.raises(InputError, match=r"holds no training \(run.json\)"):
        export(tmp_path, tmp_path / "bundle")
    for name in ("run.json", "library.json", "policy.safetensors"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    weights = (run / "policy.safetensors").read_bytes()
    (tmp_path / "policy.safetensors").write_bytes(weights[:-4] + b"abcd")
    with pytest.raises(InputError, match="was altered since the training"):
        export(tmp_path, tmp_path / "bundle")
    document = json.loads((run / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**document, "status": "unfinished"}))
    with pytest.raises(InputError, match="is not finished; go on with meterveil train --resume"):
        export(tmp_path, tmp_path / "bundle")


def test_a_household_shorter_than_a_day_is_refused(tmp_path):
    home = synthetic.household(np.random.default_rng(0), days=1)
    morning = home._slice(slice(0, 600))
    with pytest.raises(InputError, match="records no civil day from midnight to midnight"):
        learn(morning, morning.days(), Setup(LIBRARY), Options(TINY, "identity"), tmp_path / "run")
    tomorrow = home.days()[0] + timedelta(days=1)
    with pytest.raises(InputError, match="is not wholly recorded"):
        learn(home, [tomorrow], Setup(LIBRARY), Options(TINY, "identity"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
