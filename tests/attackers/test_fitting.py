import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from meterveil.attackers import baselines, fitting
from meterveil.attackers.fitting import adaptive, fit
from meterveil.attackers.protocol import meter_of, truth_w
from meterveil.attackers.registry import attacker
from meterveil.data import synthetic
from meterveil.data.simulation import Setup, mask
from meterveil.defenders import defender
from meterveil.errors import InputError

TARGETS = ("kettle", "fridge")


@pytest.fixture(scope="module")
def home():
    return synthetic.household(np.random.default_rng(3), days=4).select([*TARGETS])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path))
    return tmp_path


def watts(fitted, home):
    return np.stack([fitted.predict(meter_of(home)).watts[target] for target in TARGETS])


def test_an_altered_missing_or_foreign_file_is_refused(home, tmp_path):
    fitted = attacker("co").fit([home], TARGETS, np.random.default_rng(0))
    folder = tmp_path / "co"
    fitting.save(folder, "co", TARGETS, fitted, {})
    weights = folder / fitting.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="is not the file that"):
        fitting.load(folder)
    weights.unlink()
    with pytest.raises(InputError, match="holds no fitted attacker"):
        fitting.load(folder)
    fitting.save(folder, "fhmm", TARGETS, fitted, {})
    with pytest.raises(InputError, match="saved by another version"):
        fitting.load(folder)
    (folder / fitting.CARD).write_text(json.dumps({"format": "other"}))
    with pytest.raises(InputError, match="is not a card"):
        fitting.load(folder)


def test_a_stored_fit_is_used_again_and_a_damaged_one_is_made_again(home, cache):
    done = []

    def fit():
        return fitting.fit(["co", "mean"], [home], TARGETS, 0, workers=1, on_done=done.append)

    first, again = fit(), fit()
    assert [job.name for job in done] == ["co", "mean"]
    next(cache.rglob(f"co-*/{fitting.WEIGHTS}")).write_bytes(b"nothing")
    repaired = fit()
    assert [job.name for job in done] == ["co", "mean", "co"]
    for name in first:
        np.testing.assert_array_equal(watts(first[name], home), watts(again[name], home))
        np.testing.assert_array_equal(watts(first[name], home), watts(repaired[name], home))


def test_other_data_another_seed_or_a_raised_version_make_another_fit(home, monkeypatch):
    job = fitting.Job("mean", TARGETS, (home,), 0)
    louder = replace(home, aggregate_w=home.aggregate_w + 1.0)
    hidden = replace(home, appliances_w=home.appliances_w | {"kettle": home.appliances_w["kettle"] + 1.0})
    abroad = replace(home, minutes=home.minutes.tz_convert("America/New_York"))
    others = [
        job._replace(seed=1),
        job._replace(epochs=3),
        job._replace(targets=TARGETS[:1]),
        *(job._replace(households=(other,)) for other in (louder, hidden, abroad)),
    ]
    keys = {job.key(), *(other.key() for other in others)}
    assert len(keys) == 7
    monkeypatch.setattr(baselines, "VERSION", baselines.VERSION + 1)
    assert job.key() not in keys


def test_the_classical_attackers_need_no_extra_but_attack(home, tmp_path):
    """Training libraries cannot be imported here; every attacker without a network still works."""
    code = (
        "import sys\n"
        "for name in ('torch', 'gymnasium', 'stable_baselines3', 'onnx', 'tensorboard'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from meterveil.attackers import fitting, registry\n"
        "from meterveil.data import synthetic\n"
        "home = synthetic.household(np.random.default_rng(3), days=2).select(['kettle'])\n"
        "names = [name for name in registry.ATTACKERS if name not in registry.NETWORKS]\n"
        "print(*fitting.fit(names, [home], ['kettle'], 0, workers=1))\n"
    )
    environment = os.environ | {"METERVEIL_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["co", "fhmm", "mean", "off", "prior"], done.stderr


def test_two_processes_fit_what_one_does(home, cache, tmp_path, monkeypatch):
    together = fitting.fit(["prior"], [home], TARGETS, 0, workers=2)["prior"]
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "other"))
    alone = fitting.fit(["prior"], [home], TARGETS, 0, workers=1)["prior"]
    np.testing.assert_array_equal(watts(together, home), watts(alone, home))


SETUP = Setup(synthetic.decoy_library())


def test_a_baseline_that_never_sees_the_meter_does_not_adapt(home, cache):
    clean = fit(["prior"], [home], TARGETS, 0)["prior"]
    adapted = adaptive(["prior"], [home], TARGETS, 0, defender("flat"), SETUP, copies=3)["prior"]
    np.testing.assert_array_equal(watts(clean, home), watts(adapted, home))


def test_an_adaptive_attacker_scores_better_on_a_masked_meter_than_a_fixed_one(home, cache):
    later = synthetic.household(np.random.default_rng(3), days=6).select([*TARGETS])
    later = later.between(later.days()[4], later.days()[5] + timedelta(days=1))
    seen = mask(defender("flat"), SETUP, later, [np.random.default_rng(99)]).households[0]
    naive = fit(["fhmm"], [home], TARGETS, 0)["fhmm"]
    knowing = adaptive(["fhmm"], [home], TARGETS, 0, defender("flat"), SETUP, copies=2)["fhmm"]
    naive_w, knowing_w = (
        np.sqrt(np.mean((one.predict(meter_of(seen)).watts["fridge"][0] - truth_w(seen, "fridge")) ** 2))
        for one in (naive, knowing)
    )
    assert knowing_w < 0.9 * naive_w
