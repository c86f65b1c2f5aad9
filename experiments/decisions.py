"""Decisions of a manager in a scenario, one by one, for studies of its behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from meterveil.core import env
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import EnvParams, Reward
from meterveil.core.scenario import Scenario
from meterveil.defenders.trained_policies import ManagerPolicy


class Played(NamedTuple):
    """Decisions of a manager in all rows, one entry per decision."""

    row: IntArray
    action: IntArray
    begins: IntArray  # minute of the row in which it was taken
    minutes: IntArray  # how long it took
    moved_kwh: FloatArray
    reward: FloatArray
    past_w: FloatArray  # (decision, 60) battery power of the hour that ends with it

    @property
    def moved(self) -> Played:
        """Decisions that moved energy."""
        return self.where(self.moved_kwh > 0.0)

    def where(self, kept: BoolArray) -> Played:
        """Select some of the decisions."""
        parts: Iterator[Any] = (part[kept] for part in self)
        return Played(*parts)


def play_decisions(
    policy: ManagerPolicy, params: EnvParams, scenario: Scenario, reward: Reward, rng: np.random.Generator
) -> Played:
    """Let a manager act in every row of a scenario, and record each decision and its reward."""
    state, steps = env.initial(params, scenario), []
    running = ~env.terminal(scenario, state)
    while running.any():
        observation = env.observe(params, scenario, state)
        mask = env.action_mask(params, scenario, state)
        action = policy.actions(observation, mask, rng.random(scenario.batch))
        after = env.transition(params, scenario, state, action)
        paid = reward(scenario, state, action, after)
        took = after.minute - state.minute
        step = Played(after.row, action, state.minute, took, after.moved_kwh, paid, after.past_w)
        steps.append(step.where(running))
        state, running = after, ~env.terminal(scenario, after)
    return Played(*(np.concatenate(parts) for parts in zip(*steps, strict=True)))
