"""Every attacker of the registry keeps the laws."""

from functools import cache, partial

import pytest
from small_networks import quickly, small

from meterveil.attackers.registry import ATTACKERS, FLOORS
from meterveil.contracts.attackers import ATTACKER_LAWS, AttackerCase

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
