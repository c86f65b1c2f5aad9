"""Lets a manager act on the same days again and again, and writes every decision down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.decoys import Library
from meterveil.core.env import WINDOW, EnvParams, seen
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View, rollout
from meterveil.core.scenario import Scenario
from meterveil.defenders.manager.manager_policy import ManagerPolicy


class Decisions(NamedTuple):
    """One entry per decision, episode by episode, in the order of time."""

    episode: IntArray
    begins: IntArray  # minute in which it was taken
    ends: IntArray  # minute in which the next one is taken
    action: IntArray
    observation: npt.NDArray[np.float32]  # (decision, 6)
    allowed: BoolArray  # (decision, 2K+1) actions that could be chosen
    same: BoolArray  # (decision, 2K+1) those that would have done the same, the chosen one among them


class Rollouts(NamedTuple):
    """What the battery did in many episodes of few days."""

    days: Scenario
    """One row for each day."""
    day: IntArray  # (episode,) row of `days`
    play: IntArray  # (episode,) number of the pass over all days that it belongs to
    power_w: FloatArray  # (episode, minute)
    decisions: Decisions

    @property
    def moved(self) -> BoolArray:
        """Tell which decisions moved energy."""
        so_far = np.cumsum(np.pad(np.abs(self.power_w), ((0, 0), (1, 0))), axis=1)
        one = self.decisions
        moved: BoolArray = so_far[one.episode, one.ends] > so_far[one.episode, one.begins]
        return moved

    def hour_before(self, episode: IntArray, minute: IntArray) -> FloatArray:
        """Return the battery power of the hour that ends before each minute, (window, 60)."""
        columns = minute[:, None] - WINDOW + np.arange(WINDOW)
        return np.where(columns < 0, 0.0, self.power_w[episode[:, None], np.maximum(columns, 0)])


def act(policy: ManagerPolicy, params: EnvParams, days: Scenario, plays: int, seed: int) -> Rollouts:
    """Play all days so many times, each episode with dice of its own."""
    day, play = np.tile(np.arange(days.batch), plays), np.repeat(np.arange(plays), days.batch)
    noted = _Noted(policy)
    rngs = [np.random.default_rng([seed, number]) for number in range(len(day))]
    trace = rollout(noted, params.battery, params.library, days.rows(day), rngs, params.soc_start)
    return Rollouts(days, day, play, trace.power_w, noted.decisions(days.minutes[day]))


class _Noted:
    """Decide as the manager does and write down what it saw and chose: a trace does not tell."""

    def __init__(self, policy: ManagerPolicy) -> None:
        self.policy = policy
        self.minute = 0
        self.notes: list[tuple[npt.NDArray[np.generic], ...]] = []

    def initial(self, batch: int) -> None:
        """Remember nothing."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        waits = np.flatnonzero(view.waits)
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)[waits]
        moving = executor.feasible(view.battery, view.library, view.state, view.load_w)[waits]
        allowed = moving if self.policy.masked else np.ones_like(moving)
        chosen = self.policy.actions(observation, allowed, view.chance[waits, 0])
        same = _same(moving, view.library, chosen)
        self.notes.append((waits, np.full(len(waits), self.minute), chosen, observation, allowed, same))
        self.minute += 1
        action = np.zeros(len(view.load_w), dtype=np.int64)
        action[waits] = chosen
        return replay_signature(view.library, action), memory

    def decisions(self, minutes: IntArray) -> Decisions:
        """Put the notes in order; what was asked behind a short day's end does not count."""
        episode, begins, *rest = (np.concatenate(parts) for parts in zip(*self.notes, strict=True))
        order = np.lexsort((begins, episode))
        order = order[begins[order] < minutes[episode[order]]]
        episode, begins = episode[order], begins[order]
        is_last = np.append(episode[1:] != episode[:-1], True)
        ends = np.where(is_last, minutes[episode], np.append(begins[1:], 0))
        return Decisions(episode, begins, ends, *(part[order] for part in rest))


def _same(moving: BoolArray, library: Library, chosen: IntArray) -> BoolArray:
    """Tell which actions would have done what the chosen one did: all that are not feasible idle (D4)."""
    asks = np.append(0.0, np.tile(library.watts[: library.size, 0], 2)) != 0.0
    idles = ~moving & asks
    idles[:, 0] = True
    alone = np.eye(moving.shape[1], dtype=np.bool_)[chosen]
    return np.where(np.any(idles & alone, axis=1)[:, None], idles, alone)
