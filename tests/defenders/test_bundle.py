"""Bundles: any defence acts as before, with NumPy only, and altered files are refused."""

import json
import subprocess
import sys
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from ddql_small import lesson as ddql_lesson
from small import LIBRARY, SMALLER, TINY, scenario

import meterveil
from meterveil.core.battery import Battery
from meterveil.core.rollout import rollout
from meterveil.core.tariff import PAPER_TARIFF, PriceSeries, flat
from meterveil.data import synthetic
from meterveil.data.simulation import Setup
from meterveil.defenders import DEFENDERS, bundle, defender
from meterveil.defenders.bundle import tariff_document, tariff_from
from meterveil.defenders.bundle_export import card_of, export_bundle
from meterveil.defenders.ddql.ddql_training import train as train_ddql
from meterveil.defenders.defence import common_setup, find_defence
from meterveil.defenders.flat import Flat
from meterveil.defenders.manager.manager_training import learn
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.run_folder import load_trained
from meterveil.errors import InputError

BATTERY = Battery(capacity_kwh=6.0, budget_kwh=float("inf"))
SETUP = Setup(LIBRARY, BATTERY, seed=3)
UNTRAINED = {**{name: defender(name) for name in DEFENDERS}, "rationed": Rationed(defender("flat_decoys"))}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = synthetic.household(np.random.default_rng(0), days=2)
    folder = tmp_path_factory.mktemp("run")
    learn(home, home.days(), SETUP, TINY, folder, {"commit": "abc"})
    return folder


def export(run, folder):
    trained = load_trained(run)
    return export_bundle(trained.policy, SETUP, card_of("manager", trained.document), folder)


@pytest.fixture
def exported(run, tmp_path):
    return export(run, tmp_path / "bundle")


@cache
def ddql():
    return train_ddql(*ddql_lesson(epochs=1)).policy


def acts(policy, setup=SETUP):
    rngs = [np.random.default_rng(n) for n in range(3)]
    return rollout(policy, setup.battery, setup.library, scenario(days=3, seed=8, gaps=True), rngs).power_w


@pytest.mark.parametrize("name", [*UNTRAINED, "ddql"])
def test_every_defence_acts_from_its_bundle_as_before(name, tmp_path):
    policy = ddql() if name == "ddql" else UNTRAINED[name]
    loaded = meterveil.load_bundle(export_bundle(policy, SETUP, card_of(name), tmp_path))
    np.testing.assert_array_equal(acts(loaded.policy), acts(policy))
    assert loaded.card["defence"] == name
    defence = find_defence(str(tmp_path))
    assert (defence.method, defence.trainings, common_setup([defence]).battery) == (name, (), BATTERY)
    assert defence.settings["method"] == name


def test_settings_without_a_limit_are_plain_json(tmp_path):
    veil = defender("veil")
    export_bundle(veil, SETUP, card_of("veil"), tmp_path)
    json.loads((tmp_path / bundle.SETTINGS).read_text(), parse_constant=pytest.fail)
    assert meterveil.load_bundle(tmp_path).policy.dice == veil.dice


def test_a_manager_acts_from_its_bundle_as_from_its_run(run, exported):
    trained, deployed = load_trained(run), meterveil.load_bundle(exported)
    assert np.abs(acts(trained.policy)).max() > 0.0
    np.testing.assert_array_equal(acts(deployed.policy), acts(trained.policy))


def test_the_onnx_network_decides_as_the_trained_policy(run, exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession((exported / bundle.ONNX).read_bytes())
    observation = np.random.default_rng(0).normal(size=(10_000, 6)).astype(np.float32)
    (logits,) = session.run(None, {"observation": observation})
    expected = load_trained(run).policy.network.logits(observation)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_array_equal(logits.argmax(axis=1), expected.argmax(axis=1))


def test_a_bundle_has_battery_tariff_library_and_card(exported):
    deployed = meterveil.load_bundle(exported)
    assert (deployed.battery, deployed.tariff) == (BATTERY, PAPER_TARIFF)
    assert deployed.library.digest() == LIBRARY.digest()
    card = deployed.card
    assert (card["household"], card["seed"], card["commit"], len(card["days"])) == ("synthetic", 3, "abc", 2)
    assert card["figures"]["training_days_moved_kwh"] > 0.0
    assert card["options"]["loss"] == "rmse"
    assert "curve" not in card
    [training] = find_defence(str(exported)).trainings
    assert training.library.digest() == LIBRARY.digest()
    assert training.seen("synthetic", synthetic.household(np.random.default_rng(0), days=2).days())


def test_bundles_with_another_battery_tariff_or_library_are_not_mixed(exported, tmp_path):
    setups = {
        "battery": Setup(LIBRARY, Battery()),
        "tariff": Setup(LIBRARY, BATTERY, flat(0.2)),
        "signatures": Setup(SMALLER, BATTERY),
    }
    for what, setup in setups.items():
        other = find_defence(str(export_bundle(Flat(), setup, card_of("flat"), tmp_path / what)))
        with pytest.raises(InputError, match=what):
            common_setup([find_defence(str(exported)), other])


def test_a_bundle_may_be_exported_again_but_not_over_other_files(run, exported, tmp_path):
    assert export(run, exported) == exported
    for name in ("settings.json", "policy.onnx"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text('{"mine": 1}')
        with pytest.raises(InputError, match=name):
            export(run, folder)
        assert [path.name for path in folder.iterdir()] == [name]


def test_a_policy_of_another_package_is_not_exported(tmp_path):
    class Flat:  # same name as one of ours
        def decide(self, view, memory): ...

    with pytest.raises(InputError, match="type Flat is not part of meterveil"):
        export_bundle(Flat(), SETUP, card_of("flat"), tmp_path)


def test_every_kind_of_tariff_survives():
    series = PriceSeries(np.array([0, 30]), np.array([0.1, 0.2]), 30)
    back = tariff_from(json.loads(json.dumps(tariff_document(series))))
    np.testing.assert_array_equal(back.price(np.array([5]), np.array([35])), [0.2])
    with pytest.raises(InputError, match="type object cannot be stored"):
        tariff_document(object())


def test_missing_altered_and_foreign_files_are_refused(exported, tmp_path):
    for name in (bundle.SETTINGS, bundle.LIBRARY, bundle.CARD, bundle.WEIGHTS, bundle.ONNX):
        content = (exported / name).read_bytes()
        (exported / name).write_bytes(content + b" ")
        with pytest.raises(InputError, match=f"{name} was altered"):
            meterveil.load_bundle(exported)
        (exported / name).unlink()
        with pytest.raises(InputError, match=f"lacks {name}"):
            meterveil.load_bundle(exported)
        (exported / name).write_bytes(content)
    with pytest.raises(InputError, match=r"holds no bundle \(bundle.json\)"):
        meterveil.load_bundle(tmp_path)
    (exported / "bundle.json").write_text('{"format": "else"}')
    with pytest.raises(InputError, match="is not of"):
        meterveil.load_bundle(exported)


def test_acting_needs_neither_torch_nor_onnxruntime(exported):
    code = f"""
import sys, numpy as np, meterveil
bundle = meterveil.load_bundle({str(exported)!r})
bundle.policy.actions(np.zeros((1, 6), np.float32), np.ones((1, 7), bool), np.zeros(1))
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "gymnasium", "stable_baselines3", "onnx", "onnxruntime", "safetensors"}
    assert not loaded & {"pandas", "pyarrow"}


def test_a_run_with_another_library_is_refused(run, tmp_path):
    for name in ("run.json", "library.json", "policy.safetensors"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    other = SMALLER.to_json()
    (tmp_path / "library.json").write_text(other)
    with pytest.raises(InputError, match=r"library.json .* was altered"):
        load_trained(tmp_path)


def test_a_day_that_is_not_recorded_is_refused(tmp_path):
    home = synthetic.household(np.random.default_rng(0), days=1)
    tomorrow = home.days()[0] + timedelta(days=1)
    with pytest.raises(InputError, match="is not wholly recorded"):
        learn(home, [tomorrow], Setup(LIBRARY), TINY, tmp_path / "run")
    assert not (tmp_path / "run").exists()
