"""Golden digits: scores of every attacker on the embedded household, and of two of them with a defence.

Stored fits and results are keyed by VERSION numbers, so a change of arithmetic must raise one. Digits are
recorded for each VERSION. Never edit an entry: a new VERSION gets a new entry.
"""

import numpy as np
import pytest
from small_networks import quickly

from meterveil import defenders
from meterveil.attackers import informed
from meterveil.attackers.day_network import read
from meterveil.attackers.fitting import masked_copies
from meterveil.attackers.protocol import meter_of
from meterveil.attackers.registry import ATTACKERS, version_of
from meterveil.contracts.attackers import scores
from meterveil.data import synthetic
from meterveil.data.simulation import Setup, mask

TARGETS = ("fridge", "kettle")

GOLDEN = {
    ("co", 1): [83.52164290370092, 0.8246983676366217, 238.91528436700457, 0.6470588235294118],
    ("fhmm", 1): [48.90413144338229, 0.8708133971291866, 67.10534016698719, 0.9090909090909091],
    ("dae", 1): [82.84349655836242, 0.5978578383641675, 214.23881314279123, 0.0],
    ("seq2point", 1): [81.90058348766863, 0.5978578383641675, 214.09494649773126, 0.0],
    ("electricity", 1): [78.81001026722126, 0.5907752698724239, 214.13461381622182, 0.0],
    ("bert4nilm", 1): [86.82973895200784, 0.593245227606461, 214.45470146969936, 0.0],
    ("nilmformer", 1): [95.23424411515386, 0.6368831168831168, 215.008012237658, 0.0],
    ("informed", 1): [101.42091167302996, 0.1657142857142857, 214.60606368314583, 0.0],
    ("informed", 2): [81.78532478484505, 0.5978578383641675, 215.61456464798212, 0.0],
    ("informed", 3): [82.00139922376624, 0.5978578383641675, 215.90689862167977, 0.0],
    ("informed", 4): [82.00139922376624, 0.5978578383641675, 215.90688235724198, 0.0],
    ("informed", 5): [82.00139922376624, 0.5978578383641675, 216.384132860751, 0.0],
    ("informed", 6): [82.00139922376624, 0.5978578383641675, 215.18096124163176, 0.0],
    ("informed", 7): [82.00139922376624, 0.5978578383641675, 215.1809709587987, 0.0],
    ("informed", 8): [
        88.05897551500463,
        0.5492505353319058,
        216.48680629862335,
        0.0,
        -3.891629934310913,
        0.23443128168582916,
    ],
    ("informed", 9): [
        88.0589754436751,
        0.5492505353319058,
        216.48680640433082,
        0.0,
        -3.891629934310913,
        0.23443128168582916,
        0.773781721894212,
        0.4585797854371953,
        1008.2953905811715,
    ],
    ("mean", 1): [82.00139922376624, 0.5978578383641675, 214.00151181498723, 0.0],
    ("off", 1): [108.55959116233504, 0.0, 215.008012237658, 0.0],
    ("prior", 1): [82.00139922376624, 0.5978578383641675, 214.60606368314583, 0.0],
}
"""Attacker and its VERSION -> RMSE and F1 of the fridge, then of the kettle, on the held-out day.

Of the informed attacker also the mean log-odds and power of its network, from VERSION 8 on, and threshold, F1 and
cross-entropy of made-up validation days, from VERSION 9 on.
"""

WITH_DEFENCE = {
    ("flat", 1): [108.46854305895943, 0.03464566929133858, 215.008012237658, 0.0],
    ("random_equal", 1): [131.16320241083878, 0.5263157894736842, 618.9950374902047, 0.2268041237113402],
}
"""Defence and its VERSION -> the same scores of co on the masked day."""

ADAPTIVE = {
    ("flat", 1): [82.10512039089232, 0.5978578383641675, 214.00157610932922, 0.0],
    ("random_equal", 1): [75.96815613306666, 0.5978578383641675, 95.79475825139855, 0.9090909090909091],
}
"""Defence and its VERSION -> the same scores of fhmm fitted to two masked copies of the training days."""


@pytest.fixture(scope="module")
def home():
    return synthetic.household(np.random.default_rng(0), days=5).select(TARGETS)


@pytest.fixture(scope="module")
def taught(home):
    return home.between(home.days()[0], home.days()[-1])


@pytest.fixture(scope="module")
def held_out(home):
    return home.day(home.days()[-1])


def digits(name, households, day):
    fitted = quickly(name).fit(households, TARGETS, np.random.default_rng(0))
    found = [score for target in TARGETS for score in scores(fitted, [day], target)]
    if name == "informed":  # so little training is hardly trusted, and shows little in the scores
        found += [float(part.mean()) for part in read(fitted.networks[0], fitted._inputs(meter_of(day)))]
        found += chosen_digits()
    return found


def chosen_digits():
    """Threshold, F1 and cross-entropy of the informed attacker on made-up validation days."""
    rng = np.random.default_rng(0)
    logit = rng.normal(size=(6, 1440))
    truth = logit + rng.normal(size=logit.shape) > 2.0
    option = informed._option(1.0, logit, truth, np.ones(logit.shape, dtype=bool), np.arange(6))
    return [option.threshold, float(option.f1.mean()), float(option.loss.mean())]


def check(golden, name, version, found, rel=1e-9):
    how = (
        f"raise VERSION in the module that computes the figures of {name}, "
        "then record the new digits in a new entry beside the new VERSION"
    )
    assert (name, version) in golden, f"no digits are recorded for VERSION {version} of {name}: {found}"
    expected = golden[name, version]
    assert found == pytest.approx(expected, rel=rel), f"VERSION {version} had other figures; {how}"


@pytest.mark.parametrize("name", ATTACKERS)
def test_the_figures_of_an_attacker_change_only_with_its_version(name, taught, held_out):
    is_network = hasattr(quickly(name), "recipe")  # float32, whose sums differ between processors
    rel = 1e-3 if is_network else 1e-9
    check(GOLDEN, name, version_of(name), digits(name, [taught], held_out), rel)


@pytest.mark.parametrize("name", ["flat", "random_equal"])
def test_the_figures_with_a_defence_change_only_with_its_version(name, taught, held_out):
    setup, policy = Setup(synthetic.decoy_library()), defenders.defender(name)
    [day] = mask(policy, setup, held_out, [np.random.default_rng(0)]).households
    check(WITH_DEFENCE, name, defenders.version_of(name), digits("co", [taught], day))
    check(
        ADAPTIVE,
        name,
        defenders.version_of(name),
        digits("fhmm", masked_copies(policy, setup, [taught], 2, seed=0), day),
    )
