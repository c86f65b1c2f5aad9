"""FHMM: J. Z. Kolter and T. Jaakkola, "Approximate inference in additive factorial HMMs", AISTATS 2012.

Every appliance is a Markov chain of powers and the meter reads their sum. Original, as in NILMTK's exact FHMM
(`original_fhmm`): two states per appliance, nothing else in the home, a variance of 5 W² around every sum,
the likeliest path. The defaults here are those that read validation days better, on UK-DALE and REDD alike:

- three states (off and two levels), each with the variance that its training minutes have around it;
- one more chain for the rest of the home (the paper's robust component does this), learned from the training
  residual, and the floor of the readings taken away first where that helps on the last training days;
- the probability of every state given all readings instead of one best path, and from it the power of least
  squared error and the decision of best F1 on the training days.

States are clusters of the training minutes and transitions are counted: expectation-maximisation from there
reads validation days no better. One-minute data need no change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from meterveil.attackers.ascent import TOGETHER, ascend, block_marginals
from meterveil.attackers.counting import count_appliance, count_rest
from meterveil.attackers.decisions import best_threshold, recentred
from meterveil.attackers.factorial import Chain, Observation, marginals, viterbi
from meterveil.attackers.protocol import (
    AGGREGATE,
    FloatArray,
    Meter,
    Prediction,
    check_targets,
    filled,
    meter_of,
    truth_w,
)
from meterveil.attackers.residual import best_on_last_days, floor_w, rest_w
from meterveil.attackers.stretches import in_stretches
from meterveil.data.household import Household
from meterveil.data.protocols import on_threshold_w

VERSION = 1
"""Part of the key of a stored fit; raise it when a change alters the figures of this attacker."""

Decoder = Literal["marginals", "viterbi"]

REST = "rest"
METER_VARIANCE_W2 = 5.0
"""Of a reading around the sum of its parts; NILMTK's for every joint state."""

MAX_JOINT_STATES = 20_000
"""Up to here decoding is exact, beyond it by coordinate ascent."""

TRUST_MINUTES = 5.0
"""Minutes of evidence that it takes to outweigh a state's own mean in what is said for it."""

JOINT_STATES_AT_ONCE = 6 * 10**6
"""Minutes times joint states that are held in memory at a time (48 MB a table)."""


class Habit(NamedTuple):
    """A chain, and what its states say about the appliance."""

    chain: Chain
    said_w: FloatArray  # (state,) power to say, weighted by the states' probabilities
    on_share: FloatArray  # (state,) of a state's training minutes, those that were on
    threshold: float
    """On-probability from which saying "on" scores the best F1 on the training days."""


@dataclass(frozen=True)
class FHMM:
    """Attack with a factorial hidden Markov model."""

    states: int = 3
    rest_states: int = 16
    """States of the chain for the rest of the home; 0 leaves it out."""
    floors: tuple[int, ...] = (0, 61, 121)
    """Minutes of the floors to choose from; odd, or 0 for none."""
    variance_w2: float | None = None
    """Variance around every sum; None adds up the states' own."""
    decoder: Decoder = "marginals"
    targets: tuple[str, ...] = ()
    habits: Mapping[str, Habit] = field(default_factory=dict)
    floor_minutes: int = 0

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        """Count each chain and find the best floor; nothing is random, so `rng` is left alone."""
        check_targets(households, targets)
        asked = replace(self, targets=tuple(targets))
        candidates = [replace(asked, floor_minutes=floor) for floor in self.floors]
        chosen = best_on_last_days(candidates, households, lambda one, known: one._learned(known), targets)
        return chosen._decided(households)

    def predict(self, meter: Meter) -> Prediction:
        """Decode all chains and say what their states draw."""
        base_w, probabilities = self._decoded(meter)
        watts, on = {}, {}
        for name, habit in self.habits.items():
            if name != REST:
                watts[name] = np.maximum(probabilities[name] @ habit.said_w, 0.0)
                probability = np.minimum(probabilities[name] @ habit.on_share, 1.0)
                on[name] = recentred(probability, habit.threshold)
        if AGGREGATE in self.targets:
            drawn_w = [probabilities[name] @ habit.chain.mean_w for name, habit in self.habits.items()]
            watts[AGGREGATE] = np.maximum(base_w + np.sum(drawn_w, axis=0), 0.0)
        return Prediction(watts, on)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every chain with its decisions, and the floor."""
        found: dict[str, npt.NDArray[Any]] = {"floor_minutes": np.asarray(self.floor_minutes)}
        for name, habit in self.habits.items():
            parts = {**habit.chain._asdict(), **habit._asdict(), "threshold": np.asarray(habit.threshold)}
            del parts["chain"]
            found |= {f"{name}/{part}": values for part, values in parts.items()}
        return found

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the chains and the floor from `arrays`."""
        names = [name for name in targets if name != AGGREGATE]
        names += [REST] if f"{REST}/mean_w" in arrays else []
        habits = {
            name: Habit(
                Chain(*(arrays[f"{name}/{part}"] for part in Chain._fields)),
                arrays[f"{name}/said_w"],
                arrays[f"{name}/on_share"],
                float(arrays[f"{name}/threshold"]),
            )
            for name in names
        }
        floor_minutes = int(arrays["floor_minutes"])
        return replace(self, targets=tuple(targets), habits=habits, floor_minutes=floor_minutes)

    @property
    def _chains(self) -> list[Chain]:
        chains = [habit.chain for habit in self.habits.values()]
        if self.variance_w2 is None:
            return chains
        return [chain._replace(variance_w2=np.zeros_like(chain.variance_w2)) for chain in chains]

    @property
    def _is_exact(self) -> bool:
        return math.prod(len(chain.mean_w) for chain in self._chains) <= MAX_JOINT_STATES

    @property
    def _table_states(self) -> int:
        sizes = [len(chain.mean_w) for chain in self._chains]
        return math.prod(sizes) if self._is_exact else max(sizes[:-1]) ** TOGETHER * sizes[-1]

    def _decoded(self, meter: Meter) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the floor and, by chain, the states' probabilities, (batch, minute, state)."""
        reading_w = filled(meter.reading_w)
        base_w = floor_w(reading_w, self.floor_minutes)
        at_once = JOINT_STATES_AT_ONCE // self._table_states
        tables = in_stretches(self._probabilities, reading_w - base_w, at_once)
        return base_w, dict(zip(self.habits, tables, strict=True))

    def _probabilities(self, reading_w: FloatArray) -> list[FloatArray]:
        chains, variance_w2 = self._chains, self.variance_w2 or METER_VARIANCE_W2
        seen = Observation(reading_w, np.full_like(reading_w, variance_w2))
        if self.decoder == "marginals":
            return marginals(chains, seen) if self._is_exact else block_marginals(chains, seen)
        path = viterbi(chains, seen) if self._is_exact else ascend(chains, seen)
        return [np.eye(len(chain.mean_w))[states] for chain, states in zip(chains, path, strict=True)]

    def _learned(self, households: Sequence[Household]) -> Self:
        appliances = [target for target in self.targets if target != AGGREGATE]
        habits = {name: _habit(households, name, self.states) for name in appliances}
        if self.rest_states:
            rest = [rest_w(household, appliances, self.floor_minutes) for household in households]
            chain, _ = count_rest(rest, self.rest_states)
            habits[REST] = Habit(chain, chain.mean_w, np.zeros_like(chain.mean_w), 0.5)
        return replace(self, habits=habits)

    def _decided(self, households: Sequence[Household]) -> Self:
        """Learn what to say from how the training days themselves are read.

        The chains are never quite right, so a state that is probable is not always there: least squares finds
        the power to say for it, and the F1-best threshold the decision.
        """
        read = [self._decoded(meter_of(household))[1] for household in households]
        reading_w = np.concatenate([household.aggregate_w for household in households])
        habits = dict(self.habits)
        for name in habits.keys() - {REST}:
            power_w = np.concatenate([truth_w(household, name) for household in households])
            known = ~np.isnan(power_w) & ~np.isnan(reading_w)
            probability = np.concatenate([tables[name][0] for tables in read])[known]
            habits[name] = _decided(habits[name], probability, power_w[known], on_threshold_w(name))
            if self.decoder == "viterbi":
                habits[name] = habits[name]._replace(said_w=self.habits[name].said_w)
        return replace(self, habits=habits)


def original_fhmm() -> FHMM:
    """Build the attacker with NILMTK's settings."""
    return FHMM(states=2, rest_states=0, floors=(0,), variance_w2=METER_VARIANCE_W2, decoder="viterbi")


def _habit(households: Sequence[Household], name: str, states: int) -> Habit:
    series_w = [truth_w(household, name) for household in households]
    chain, states_of = count_appliance(series_w, states)
    state, power_w = np.concatenate(states_of), np.concatenate(series_w)
    on = power_w >= on_threshold_w(name)
    used = np.bincount(state[state >= 0], minlength=len(chain.mean_w))
    on_share = np.bincount(state[on], minlength=len(chain.mean_w)) / np.maximum(used, 1)
    return Habit(chain, chain.mean_w, on_share, 0.5)


def _decided(habit: Habit, probability: FloatArray, power_w: FloatArray, threshold_w: float) -> Habit:
    mean_w = habit.chain.mean_w
    gram = probability.T @ probability + TRUST_MINUTES * np.eye(len(mean_w))
    said_w = np.asarray(np.linalg.solve(gram, probability.T @ power_w + TRUST_MINUTES * mean_w), np.float64)
    threshold, _ = best_threshold(np.minimum(probability @ habit.on_share, 1.0), power_w >= threshold_w)
    return habit._replace(said_w=said_w, threshold=threshold)
