"""The demo ends with an attack, on nothing but what the package itself needs."""

import subprocess
import sys

import pytest

from meterveil.data.load import load
from meterveil.demo import TARGETS, adapted, attack, attack_rows, attack_section
from meterveil.simulate import demo_runs


@pytest.fixture(scope="module")
def found():
    return attack(load("synthetic"), demo_runs())


def test_the_bare_meter_tells_far_more_than_habits_do(found):
    assert found.f1["fhmm", "none"] > found.f1["prior", "none"] + 0.3
    assert found.rmse_w["fhmm", "none"] < found.rmse_w["prior", "none"]


def test_a_flat_meter_leaves_an_adapted_attacker_little(found):
    assert found.f1[adapted("fhmm"), "flat"] < found.f1["prior", "flat"] + 0.1
    assert found.f1["fhmm", "flat"] < 0.5 * found.f1["fhmm", "none"]


def test_what_never_looks_is_not_moved_by_a_defence(found):
    assert found.f1["prior", "none"] == found.f1["prior", "flat"]


def test_there_is_nothing_to_adapt_to_without_a_defence(found):
    rows = {row[0]: row for row in attack_rows(found)}
    assert rows["FHMM, adapted"][1] == ""
    assert rows["FHMM"][1] == f"{found.f1['fhmm', 'none']:.2f}"


def test_the_picture_has_a_row_for_each_defence_and_a_column_for_each_appliance(found):
    figure = attack_section(found).figure
    assert len(figure.data) == 2 * len(found.said_w) * len(TARGETS)


def test_it_needs_no_extra():
    code = (
        "import sys\n"
        "for name in ('torch', 'joblib', 'safetensors', 'scipy', 'onnxruntime'): sys.modules[name] = None\n"
        "import meterveil.demo\n"
        "from meterveil.attackers.registry import attacker\n"
        "for name in meterveil.demo.FIXED: attacker(name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
