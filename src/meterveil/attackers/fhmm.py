"""FHMM: J. Z. Kolter and T. Jaakkola, "Approximate inference in additive factorial HMMs", AISTATS 2012.

Every appliance is a Markov chain of powers and the meter reads their sum. Original, as in NILMTK's exact FHMM
(`original_fhmm`): two states per appliance, nothing else in the home, a variance of 5 W² around every sum,
the likeliest path. The defaults here are those that read validation days better, on UK-DALE and REDD alike:

- three states (off and two levels), each with the variance that its training minutes have around it;
- one more chain for the rest of the home (the paper's robust component does this), learned from the training
  residual, and the floor of the readings taken away first where that helps on the last training days;
- the probability of every state given all readings instead of one best path: the mean power that it implies
  has the least squared error, and its on-probability the best decisions.

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

Decoder = Literal["marginals", "viterbi"]

REST = "rest"
METER_VARIANCE_W2 = 5.0
"""Of a reading around the sum of its parts; NILMTK's for every joint state."""

MAX_JOINT_STATES = 20_000
"""Up to here decoding is exact, beyond it by coordinate ascent."""

JOINT_STATES_AT_ONCE = 6 * 10**6
"""Minutes times joint states that are held in memory at a time (48 MB a table)."""


class Habit(NamedTuple):
    """A chain, and what its states say about the appliance being on."""

    chain: Chain
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
        reading_w = filled(meter.reading_w)
        base_w = floor_w(reading_w, self.floor_minutes)
        at_once = JOINT_STATES_AT_ONCE // self._table_states
        probabilities = in_stretches(self._probabilities, reading_w - base_w, at_once)
        watts, on = {}, {}
        for (name, habit), probability in zip(self.habits.items(), probabilities, strict=True):
            watts[name] = probability @ habit.chain.mean_w
            if name != REST:
                on[name] = recentred(np.minimum(probability @ habit.on_share, 1.0), habit.threshold)
        if AGGREGATE in self.targets:
            watts[AGGREGATE] = base_w + np.sum(list(watts.values()), axis=0)
        watts.pop(REST, None)
        return Prediction({name: np.maximum(power_w, 0.0) for name, power_w in watts.items()}, on)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return every chain with its decisions, and the floor."""
        found: dict[str, npt.NDArray[Any]] = {"floor_minutes": np.asarray(self.floor_minutes)}
        for name, (chain, on_share, threshold) in self.habits.items():
            parts = {**chain._asdict(), "on_share": on_share, "threshold": np.asarray(threshold)}
            found |= {f"{name}/{part}": values for part, values in parts.items()}
        return found

    def restored(self, targets: Sequence[str], arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the chains and the floor from `arrays`."""
        names = [name for name in (*targets, REST) if f"{name}/mean_w" in arrays]
        habits = {
            name: Habit(
                Chain(*(arrays[f"{name}/{part}"] for part in Chain._fields)),
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
            habits[REST] = Habit(chain, np.zeros_like(chain.mean_w), 0.5)
        return replace(self, habits=habits)

    def _decided(self, households: Sequence[Household]) -> Self:
        """Set the thresholds on what the training days themselves are read as."""
        said = [self.predict(meter_of(household)).on for household in households]
        habits = dict(self.habits)
        for name in said[0]:
            probability = np.concatenate([on[name][0] for on in said])
            power_w = np.concatenate([truth_w(household, name) for household in households])
            known = ~np.isnan(power_w)
            threshold, _ = best_threshold(probability[known], power_w[known] >= on_threshold_w(name))
            habits[name] = habits[name]._replace(threshold=threshold)
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
    return Habit(chain, on_share, 0.5)
