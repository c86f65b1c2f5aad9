"""Trained manager: its network and its decisions, with NumPy only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.core import env, executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import EnvParams, Reward, seen
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View
from meterveil.core.scenario import Scenario
from meterveil.defenders.training_settings import CHOICES, Choice
from meterveil.errors import InputError, unknown

Array = npt.NDArray[Any]
Float32Array = npt.NDArray[np.float32]
LAYERS = 3


@dataclass(frozen=True)
class Mlp:
    """Network with two hidden layers."""

    weights: tuple[Array, ...]  # (in, out) of each layer
    biases: tuple[Array, ...]  # (out,) of each layer
    activation: Literal["tanh", "relu"] = "tanh"

    @classmethod
    def of(cls, arrays: Mapping[str, Array], activation: Literal["tanh", "relu"] = "tanh") -> Mlp:
        """Build the network from named arrays."""
        try:
            layers = [(arrays[f"weight_{n}"], arrays[f"bias_{n}"]) for n in range(LAYERS)]
        except KeyError as error:
            raise InputError(f"the weights of the policy lack {error}; they need {LAYERS} layers") from error
        weights, biases = zip(*layers, strict=True)
        return cls(weights, biases, activation)

    def arrays(self) -> dict[str, Array]:
        """Return all layers as named arrays."""
        weights = {f"weight_{n}": part for n, part in enumerate(self.weights)}
        return weights | {f"bias_{n}": part for n, part in enumerate(self.biases)}

    def logits(self, observation: Array) -> Array:
        """Return one output per action, (batch, 6) to (batch, action)."""
        hidden = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = hidden @ weight + bias
            hidden = np.tanh(hidden) if self.activation == "tanh" else np.maximum(hidden, 0.0)
        answer: Array = hidden @ self.weights[-1] + self.biases[-1]
        return answer


@dataclass(frozen=True)
class ManagerPolicy:
    """Policy that chooses a signature whenever none is running."""

    network: Mlp
    n_actions: int
    masked: bool = False
    choice: Choice = "sampled"

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise unknown("choice", self.choice, CHOICES)

    def initial(self, batch: int) -> None:
        """Return no memory."""

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        """Choose for every household without a running signature; the others ignore commands."""
        if view.library.n_actions != self.n_actions:
            raise InputError(
                f"the policy was trained with {(self.n_actions - 1) // 2} signatures, the library has "
                f"{view.library.size}; use the library of the training"
            )
        action = np.zeros(len(view.load_w), dtype=np.int64)
        waits = np.flatnonzero(view.waits)
        if len(waits):
            observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)
            mask = self._mask(view)
            action[waits] = self.actions(observation[waits], mask[waits], view.chance[waits, 0])
        return replay_signature(view.library, action), memory

    def _mask(self, view: View) -> BoolArray:
        if self.masked:
            return executor.feasible(view.battery, view.library, view.state, view.load_w)
        return np.ones((len(view.load_w), self.n_actions), dtype=np.bool_)

    def actions(self, observation: Float32Array, mask: BoolArray, chance: FloatArray) -> IntArray:
        """Choose an action for each observation; `chance` is uniform in [0, 1)."""
        logits = self.network.logits(observation).astype(np.float64)
        if self.masked:
            logits = np.where(mask, logits, -np.inf)
        if self.choice == "greedy":
            likeliest: IntArray = np.argmax(logits, axis=1)
            return likeliest
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        reached = np.cumsum(odds, axis=1)
        drawn: IntArray = np.sum(reached <= chance[:, None] * reached[:, -1:], axis=1, dtype=np.int64)
        return drawn


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
