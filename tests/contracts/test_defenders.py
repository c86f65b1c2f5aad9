"""Every defence of the registry, and small instances of the trained ones, keep the laws."""

from functools import cache, partial

import numpy as np
import pytest

from meterveil.contracts.defences import DEFENCE_LAWS, DefenceCase, world
from meterveil.data.simulation import Setup
from meterveil.data.synthetic import decoy_library
from meterveil.defenders import DEFENDERS, defender
from meterveil.defenders.ddql.ddql_training import train
from meterveil.defenders.rationed import Rationed
from meterveil.defenders.trained_policies import Mlp
from meterveil.defenders.training_settings import settings_for
from meterveil.defenders.veil.learned import Learned
from meterveil.defenders.veil.policy import Veil
from meterveil.errors import InputError

STEADY = {"none"}
"""Defences that move nothing."""

TINY = {"epochs": 2, "slots": 8, "updates": 4, "buffer": 4000, "h_hidden": 8, "h_passes": 1}


@cache
def tiny_ddql(method):
    """Train a defence just enough that its network has an effect."""
    return train(settings_for(method, **TINY), Setup(decoy_library()), world()).policy


def learned_veil():
    """Build a veil with a manager that has learned nothing in particular."""
    rng, shapes = np.random.default_rng(0), ((47, 8), (8, 8), (8, 9))
    network = Mlp(tuple(rng.normal(size=shape) for shape in shapes), tuple(np.zeros(shape[1]) for shape in shapes))
    return Veil(decider=Learned(network))


BUILT = {
    "veil_manager": learned_veil,
    **{name: partial(defender, name) for name in DEFENDERS},
    **{method: partial(tiny_ddql, method) for method in ("ddql_flat", "ddql_mi")},
    **{f"{name}, rationed": partial(Rationed, defender(name)) for name in ("flat", "random_equal", "nill")},
}
"""Name -> factory of the defence."""


@cache
def case(name):
    return DefenceCase(BUILT[name], moves=name not in STEADY)


@pytest.mark.parametrize("law", DEFENCE_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", sorted(BUILT))
def test_a_defence_keeps_the_law_that(name, law):
    law(case(name))


def test_an_unknown_defence_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=rf"no defence 'cloak'; known are {', '.join(DEFENDERS)}$"):
        defender("cloak")
