"""FHMM: J. Z. Kolter and T. Jaakkola, "Approximate inference in additive factorial HMMs", AISTATS 2012.

Every appliance is a Markov chain of powers, and the meter reads their sum. NILMTK's exact FHMM has two states
per appliance, nothing else in the home, a variance of 5 W² around every sum, and decodes the likeliest path.
This one differs where validation days of both UK-DALE and REDD improve:

- three states (off and two levels), each with the variance of its training minutes;
- one more chain for the rest of the home, learned from the training residual (as the paper's robust
  component), and the floor of the readings subtracted first if that helps on the last training days;
- state probabilities given all readings instead of one best path; from them the power of least squared error
  and the on/off decision of best F1 on the training days.

States are clusters of the training minutes and transitions are counted; expectation-maximisation from there
does not improve validation days. One-minute data need no change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from meterveil.attackers import classical, protocol
from meterveil.attackers.classical import best_threshold, floor_w, nearest
from meterveil.attackers.fhmm import decoding
from meterveil.attackers.fhmm.decoding import Chain, Observation
from meterveil.attackers.protocol import Arrays, Meter, Prediction, filled, truth_w
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.data.household import AGGREGATE, Household
from meterveil.data.protocols import on_threshold_w

VERSION = 1  # raise it when a change alters the figures of this attacker

REST = "rest"
METER_VARIANCE_W2 = 5.0
"""Variance of a reading around the sum of its parts, NILMTK's value."""

MAX_JOINT_STATES = 20_000
"""Most joint states that are decoded exactly; beyond it coordinate ascent is used."""

TRUST_MINUTES = 5.0
"""Weight of a state's own mean in the least-squares power, in minutes of evidence."""

JOINT_STATES_AT_ONCE = 6 * 10**6
"""Minutes times joint states held in memory at a time (48 MB a table)."""

PSEUDOCOUNT = 1.0
"""Transitions assumed from each state into each, in proportion to how often the states occur."""

REST_RESOLUTION = 20.0
"""Steps per square root of a watt at which the rest of the home is clustered."""


class Component(NamedTuple):
    """Chain of an appliance and how its state probabilities become a prediction."""

    chain: Chain
    power_w: FloatArray  # (state,) power to predict, weighted by the states' probabilities
    on_share: FloatArray  # (state,) share of a state's training minutes in which the appliance was on
    threshold: float
    """On-probability from which predicting "on" gives the best F1 on the training days."""


@dataclass(frozen=True)
class FHMM:
    """Attacker with a factorial hidden Markov model."""

    states: int = 3
    rest_states: int = 16
    """States of the chain for the rest of the home."""
    floors: tuple[int, ...] = (0, 61, 121)
    """Candidate widths of the floor in minutes; odd, or 0 for none."""
    targets: tuple[str, ...] = ()
    components: Mapping[str, Component] = field(default_factory=dict)
    floor_minutes: int = 0

    def fit(self, households: Sequence[Household], targets: Sequence[str], rng: np.random.Generator) -> Self:
        protocol.check_targets(households, targets)
        candidates = [replace(self, targets=tuple(targets), floor_minutes=floor) for floor in self.floors]
        return classical.best_on_last_days(candidates, households, FHMM._counted, targets)._calibrated(households)

    def predict(self, meter: Meter) -> Prediction:
        base_w, probabilities = self._decoded(meter)
        watts, on = {}, {}
        for name, component in self.components.items():
            if name != REST:
                watts[name] = np.maximum(probabilities[name] @ component.power_w, 0.0)
                probability = np.minimum(probabilities[name] @ component.on_share, 1.0)
                on[name] = classical.recentred(probability, component.threshold)
        if AGGREGATE in self.targets:
            drawn_w = [probabilities[name] @ part.chain.mean_w for name, part in self.components.items()]
            watts[AGGREGATE] = np.maximum(base_w + np.sum(drawn_w, axis=0), 0.0)
        return Prediction(watts, on)

    def arrays(self) -> Arrays:
        arrays: dict[str, npt.NDArray[Any]] = {"floor_minutes": np.asarray(self.floor_minutes)}
        for name, (chain, *rest) in self.components.items():
            parts = chain._asdict() | dict(zip(Component._fields[1:], rest, strict=True))
            arrays |= {f"{name}/{part}": np.asarray(values) for part, values in parts.items()}
        return arrays

    def restored(self, targets: Sequence[str], arrays: Arrays) -> Self:
        components = {}
        for name in [*(name for name in targets if name != AGGREGATE), REST]:
            parts = dict(protocol.below(arrays, f"{name}/"))
            threshold, chain = (float(parts.pop("threshold")), Chain(*(parts.pop(key) for key in Chain._fields)))
            components[name] = Component(chain, threshold=threshold, **parts)
        floor_minutes = int(arrays["floor_minutes"])
        return replace(self, targets=tuple(targets), components=components, floor_minutes=floor_minutes)

    def _decoded(self, meter: Meter) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return the floor and, by chain, the states' probabilities, (batch, minute, state)."""
        reading_w = filled(meter.reading_w)
        base_w = floor_w(reading_w, self.floor_minutes)
        chains = [component.chain for component in self.components.values()]
        sizes = [len(chain.mean_w) for chain in chains]
        joint_states, decode = math.prod(sizes), decoding.marginals
        if joint_states > MAX_JOINT_STATES:
            joint_states = max(sizes[:-1]) ** decoding.TOGETHER * sizes[-1]
            decode = decoding.block_marginals

        def probabilities(rows_w: FloatArray) -> list[FloatArray]:
            return decode(chains, Observation(rows_w, np.full_like(rows_w, METER_VARIANCE_W2)))

        at_once = JOINT_STATES_AT_ONCE // joint_states
        tables = decoding.in_stretches(probabilities, reading_w - base_w, at_once)
        return base_w, dict(zip(self.components, tables, strict=True))

    def _counted(self, households: Sequence[Household]) -> Self:
        appliances = [target for target in self.targets if target != AGGREGATE]
        components = {name: _appliance(households, name, self.states) for name in appliances}
        rest_w = []
        for household in households:
            base_w = floor_w(filled(household.aggregate_w[None]), self.floor_minutes)[0]
            drawn_w = [base_w, *(truth_w(household, name) for name in appliances)]
            rest_w.append(reduce(np.subtract, drawn_w, household.aggregate_w))
        chain, _ = count_rest(rest_w, self.rest_states)
        components[REST] = Component(chain, chain.mean_w, np.zeros_like(chain.mean_w), 0.5)
        return replace(self, components=components)

    def _calibrated(self, households: Sequence[Household]) -> Self:
        """Correct the power of each state by least squares on decoded training days; choose thresholds."""
        decoded = [self._decoded(protocol.meter_of(household))[1] for household in households]
        reading_w = np.concatenate([household.aggregate_w for household in households])
        components = dict(self.components)
        for name in components.keys() - {REST}:
            power_w = np.concatenate([truth_w(household, name) for household in households])
            known = ~np.isnan(power_w) & ~np.isnan(reading_w)
            power_w = power_w[known]
            states = np.concatenate([tables[name][0] for tables in decoded])[known]
            mean_w = components[name].chain.mean_w
            gram = states.T @ states + TRUST_MINUTES * np.eye(len(mean_w))
            best_w = np.asarray(np.linalg.solve(gram, states.T @ power_w + TRUST_MINUTES * mean_w), np.float64)
            on = np.minimum(states @ components[name].on_share, 1.0)
            threshold, _ = best_threshold(on, power_w >= on_threshold_w(name))
            components[name] = components[name]._replace(power_w=best_w, threshold=threshold)
        return replace(self, components=components)


def count_appliance(series_w: Sequence[FloatArray], states: int) -> tuple[Chain, list[IntArray]]:
    """Return an appliance's chain and the state of every minute; -1 where its power is unknown."""
    known_w = _known(series_w)
    idle_w = known_w[known_w <= classical.RUNNING_W]
    levels_w = classical.running_levels_w(known_w, states - 1)
    if len(levels_w) == 0:
        levels_w = np.array([known_w.mean()])
    elif len(idle_w):
        levels_w = np.append(np.median(idle_w), levels_w)
    return _count(series_w, [nearest(power_w, levels_w) for power_w in series_w], len(levels_w))


def count_rest(series_w: Sequence[FloatArray], states: int) -> tuple[Chain, list[IntArray]]:
    """Return the chain of the rest of the home, with finer states at small powers.

    Square roots are clustered: steps of 50 W matter for a fridge near the base load, not beside an oven.
    """
    scaled = [np.sign(power_w) * np.sqrt(np.abs(power_w)) * REST_RESOLUTION for power_w in series_w]
    levels = classical.cluster_means(_known(scaled), states)
    return _count(series_w, [nearest(values, levels) for values in scaled], len(levels))


def _count(series_w: Sequence[FloatArray], labels: Sequence[IntArray], states: int) -> tuple[Chain, list[IntArray]]:
    pairs = zip(series_w, labels, strict=True)
    states_of = [np.where(np.isnan(power_w), -1, label) for power_w, label in pairs]
    known_w, state = _known(series_w), np.concatenate(states_of)
    state = state[state >= 0]
    used = np.bincount(state, minlength=states)
    share = (used + PSEUDOCOUNT) / (used + PSEUDOCOUNT).sum()
    counts = np.tile(PSEUDOCOUNT * states * share, (states, 1))
    for row in states_of:
        both = (row[:-1] >= 0) & (row[1:] >= 0)
        np.add.at(counts, (row[:-1][both], row[1:][both]), 1.0)
    mean_w = np.bincount(state, known_w, states) / np.maximum(used, 1)
    variance_w2 = np.bincount(state, (known_w - mean_w[state]) ** 2, states) / np.maximum(used, 1)
    transition = counts / counts.sum(axis=1, keepdims=True)
    return Chain(mean_w, variance_w2, share, transition), states_of


def _known(series: Sequence[FloatArray]) -> FloatArray:
    together = np.concatenate(series)
    return together[~np.isnan(together)]


def _appliance(households: Sequence[Household], name: str, states: int) -> Component:
    series_w = [truth_w(household, name) for household in households]
    chain, states_of = count_appliance(series_w, states)
    state, power_w = np.concatenate(states_of), np.concatenate(series_w)
    on = power_w >= on_threshold_w(name)
    used = np.bincount(state[state >= 0], minlength=len(chain.mean_w))
    on_share = np.bincount(state[on], minlength=len(chain.mean_w)) / np.maximum(used, 1)
    return Component(chain, chain.mean_w, on_share, 0.5)
