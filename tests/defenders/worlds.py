"""Loads given minute by minute, and a run of a defence on them."""

import numpy as np

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario

LIBRARY = Library.of([("kettle", [1500.0, 2500.0]), ("toaster", [900.0])], "test")


def world(load_w, begin=0):
    load_w = np.atleast_2d(np.asarray(load_w, dtype=float))
    clock = np.tile(begin + np.arange(load_w.shape[1]), (len(load_w), 1))
    minutes = np.full(len(load_w), load_w.shape[1])
    return Scenario(load_w, clock % 1440, clock // 1440, np.full(clock.shape, 0.2), minutes)


def play(policy, load_w, soc=0.5, begin=0, library=LIBRARY, **settings):
    scenario = world(load_w, begin)
    rngs = [np.random.default_rng(row) for row in range(scenario.batch)]
    return rollout(policy, Battery(**settings), library, scenario, rngs, soc)
