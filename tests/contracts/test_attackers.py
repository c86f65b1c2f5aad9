"""Every attacker of the registry keeps the laws."""

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from small_networks import quickly, small

from meterveil.attackers.registry import ATTACKERS, FLOORS
from meterveil.contracts.attackers import ATTACKER_LAWS, AttackerCase
from meterveil.data.household import Household
from meterveil.errors import InputError

QUICK = {"epochs": 5, "averaging": 0.9, "windows": 270, "batch": 16, "learning_rate": 2e-3}
OTHERWISE = {
    "nilmformer": QUICK | {"epochs": 3},
    "informed": {"epochs": 25, "learning_rate": 1e-2, "averaging": 0.9},
    "seq2point": {"epochs": 6, "averaging": 0.9, "windows": 33},
}
"""Training of the networks within seconds; those with slower steps get fewer of them."""


@cache
def case(name):
    able = partial(small, name, **OTHERWISE.get(name, QUICK))
    return AttackerCase(partial(quickly, name), able, looks=name not in FLOORS)


def is_slow(name, law):
    return name in OTHERWISE and law is ATTACKER_LAWS[-1]  # the training on square waves


PAIRS = [
    pytest.param(name, law, id=f"{name}-{law.__name__}", marks=[pytest.mark.slow] * is_slow(name, law))
    for name in ATTACKERS
    for law in ATTACKER_LAWS
]


@pytest.mark.parametrize(("name", "law"), PAIRS)
def test_an_attacker_keeps_the_law_that(name, law):
    law(case(name))


@pytest.mark.parametrize("rate", ["s", "30min"])
def test_no_attacker_ever_sees_another_rate_than_minutes(rate):
    times = pd.date_range("2024-01-01", periods=2880, freq=rate, tz="Europe/London")
    with pytest.raises(InputError, match="put the readings on a full minute grid"):
        Household("fast or slow", times, np.zeros(2880), {"kettle": np.zeros(2880)})
