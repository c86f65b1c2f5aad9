"""Policy gradients of any risk, estimated by REINFORCE from recorded decisions, and their alignment.

The score of a decision (gradient of its log-probability) is weighted by the risk from that decision on, minus
a baseline. The baseline is fitted on the other half of the plays, so it adds no bias. Used by
`experiments.alignment`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from meterveil.core import executor
from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.decoys import Library
from meterveil.core.env import OBSERVATION, WINDOW, seen
from meterveil.core.executor import Command, replay_signature
from meterveil.core.rollout import View, rollout
from meterveil.core.scenario import Scenario
from meterveil.data.simulation import Setup
from meterveil.defenders.trained_policies import ManagerPolicy, Mlp
from meterveil.errors import InputError

REACH = 128
"""Minutes by which a decision can change an attacker's earlier predictions: the longest window of any."""
LEAST_PLAYS = 16
RESAMPLES = 2000
CONFIDENCE_PERCENT = 95.0

_HOURS_BACK = (0, 60, 120, 180)
_RIDGE = 1.0
_APART = 10_000
"""Distance in minutes between two episodes on a common clock: more than any day has."""
_SOC, _BUDGET = OBSERVATION.index("soc"), OBSERVATION.index("budget_left")


class Decisions(NamedTuple):
    """Decisions, episode by episode, in order of time."""

    episode: IntArray
    begins: IntArray  # minute of the decision
    ends: IntArray  # minute of the next decision
    action: IntArray
    observation: npt.NDArray[np.float32]  # (decision, 6)
    allowed: BoolArray  # (decision, 2K+1) actions that could be chosen
    same: BoolArray  # (decision, 2K+1) actions with the same effect as the chosen one


class Rollouts(NamedTuple):
    """Many simulations of a few days."""

    days: Scenario
    """One row for each day."""
    day: IntArray  # (episode,) row of `days`
    play: IntArray  # (episode,) number of the pass over all days
    power_w: FloatArray  # (episode, minute)
    decisions: Decisions

    @property
    def moved(self) -> BoolArray:
        """Whether each decision moved energy."""
        so_far = np.cumsum(np.pad(np.abs(self.power_w), ((0, 0), (1, 0))), axis=1)
        made = self.decisions
        return np.asarray(so_far[made.episode, made.ends] > so_far[made.episode, made.begins])

    def hour_before(self, episode: IntArray, minute: IntArray) -> FloatArray:
        """Return the battery power of the hour before each minute, (window, 60)."""
        columns = minute[:, None] - WINDOW + np.arange(WINDOW)
        return np.where(columns < 0, 0.0, self.power_w[episode[:, None], np.maximum(columns, 0)])


class Interval(NamedTuple):
    """Figure with its confidence interval over plays."""

    value: float
    low: float
    high: float


class Alignment(NamedTuple):
    """Comparison of an attacker's gradient with the probe's."""

    inner_product: Interval
    cosine: Interval
    gamma: Interval
    """Inner product divided by the probe's squared norm: the largest gamma of Condition A1 with epsilon 0."""


class _Recorder:
    """Policy that decides as a manager does and records observations and choices."""

    def __init__(self, policy: ManagerPolicy) -> None:
        self.policy = policy
        self.minute = 0
        self.notes: list[tuple[npt.NDArray[np.generic], ...]] = []

    def initial(self, batch: int) -> None:
        return None

    def decide(self, view: View, memory: None) -> tuple[Command, None]:
        waits = np.flatnonzero(view.waits)
        observation = seen(view.battery, view.state, view.load_w, view.minute_of_day, view.price)[waits]
        moving = executor.feasible(view.battery, view.library, view.state, view.load_w)[waits]
        allowed = moving if self.policy.masked else np.ones_like(moving)
        chosen = self.policy.actions(observation, allowed, view.chance[waits, 0])
        same = _same_effect(moving, view.library, chosen)
        self.notes.append((waits, np.full(len(waits), self.minute), chosen, observation, allowed, same))
        self.minute += 1
        action = np.zeros(len(view.load_w), dtype=np.int64)
        action[waits] = chosen
        return replay_signature(view.library, action), memory

    def decisions(self, minutes: IntArray) -> Decisions:
        """Sort the recorded decisions; leave out those after the end of a short day."""
        episode, begins, *rest = (np.concatenate(parts) for parts in zip(*self.notes, strict=True))
        order = np.lexsort((begins, episode))
        order = order[begins[order] < minutes[episode[order]]]
        episode, begins = episode[order], begins[order]
        is_last = np.append(episode[1:] != episode[:-1], True)
        ends = np.where(is_last, minutes[episode], np.append(begins[1:], 0))
        return Decisions(episode, begins, ends, *(part[order] for part in rest))


def _same_effect(moving: BoolArray, library: Library, chosen: IntArray) -> BoolArray:
    """Mark the actions with the same effect as the chosen one: all infeasible ones idle (D4)."""
    has_power = np.append(0.0, np.tile(library.watts[: library.size, 0], 2)) != 0.0
    idles = ~moving & has_power
    idles[:, 0] = True
    alone = np.eye(moving.shape[1], dtype=np.bool_)[chosen]
    return np.where(np.any(idles & alone, axis=1)[:, None], idles, alone)


def act(policy: ManagerPolicy, setup: Setup, days: Scenario, plays: int, seed: int) -> Rollouts:
    """Simulate all days `plays` times, each episode with its own random numbers."""
    day, play = np.tile(np.arange(days.batch), plays), np.repeat(np.arange(plays), days.batch)
    recorder = _Recorder(policy)
    rngs = [np.random.default_rng([seed, number]) for number in range(len(day))]
    trace = rollout(recorder, setup.battery, setup.library, days.rows(day), rngs)
    return Rollouts(days, day, play, trace.power_w, recorder.decisions(days.minutes[day]))


class Scores(NamedTuple):
    """Gradients of log-probabilities in factors: that of a layer is the product of `inputs` and `back`."""

    inputs: tuple[FloatArray, ...]  # (decision, in) of each layer
    back: tuple[FloatArray, ...]  # (decision, out) of each layer


def scores(network: Mlp, decisions: Decisions) -> Scores:
    """Differentiate the log-probability of every decision by backpropagation.

    Actions with the same effect are joined: the gradient is the same, with less noise.
    """
    inputs = [decisions.observation.astype(np.float64)]
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        inputs.append(np.tanh(inputs[-1] @ weight + bias))
    logits = inputs[-1] @ network.weights[-1] + network.biases[-1]
    odds = np.exp(logits - logits.max(axis=1, keepdims=True)) * decisions.allowed
    done = odds * decisions.same
    back = [done / done.sum(axis=1, keepdims=True) - odds / odds.sum(axis=1, keepdims=True)]
    for weight, hidden in zip(network.weights[:0:-1], inputs[:0:-1], strict=True):
        back.insert(0, back[0] @ weight.T * (1.0 - hidden**2))
    return Scores(tuple(inputs), tuple(back))


def gradients(rollouts: Rollouts, factors: Scores, weight: FloatArray) -> FloatArray:
    """Sum weighted scores over each play, (play, parameter), as the mean over days."""
    play = rollouts.play[rollouts.decisions.episode]
    bounds = np.searchsorted(play, np.arange(rollouts.play[-1] + 2))
    rows = []
    for begin, end in pairwise(bounds):
        parts = []
        for inputs, back in zip(factors.inputs, factors.back, strict=True):
            weighted = back[begin:end] * weight[begin:end, None]
            parts += [(inputs[begin:end].T @ weighted).ravel(), weighted.sum(axis=0)]
        rows.append(np.concatenate(parts) / rollouts.days.batch)
    return np.array(rows)


def paid_to_go(rollouts: Rollouts, paid: FloatArray, gamma: float, reach: int) -> FloatArray:
    """Sum the reward from `reach` minutes before each decision on, discounted per decision (D6)."""
    made, to_go = rollouts.decisions, np.empty_like(paid)
    follows = 0.0
    for number in range(len(paid) - 1, -1, -1):
        is_last = number + 1 == len(paid) or made.episode[number + 1] != made.episode[number]
        follows = paid[number] + (0.0 if is_last else gamma * follows)
        to_go[number] = follows
    return to_go + _recent(made, paid, reach) if reach else to_go


def hours_to_go(rollouts: Rollouts, hours: FloatArray, reach: int) -> FloatArray:
    """Sum the hourly risk from `reach` minutes before each decision to the end, as a mean over the day."""
    left = np.cumsum(hours[:, ::-1], axis=1)[:, ::-1] / hours.shape[1]
    made = rollouts.decisions
    first = np.maximum(made.begins - reach, 0) // WINDOW
    return np.asarray(np.pad(left, ((0, 0), (0, 1)))[made.episode, first])


def advantage(rollouts: Rollouts, to_go: FloatArray) -> FloatArray:
    """Subtract a linear baseline of hour, day, SoC, budget and battery so far; `to_go` is (decision, ...)."""
    features = _features(rollouts)
    half = rollouts.play[rollouts.decisions.episode] % 2
    left = np.empty_like(to_go)
    for own in (0, 1):
        mine, other = half == own, half != own
        gram = features[other].T @ features[other] + _RIDGE * np.eye(features.shape[1])
        left[mine] = to_go[mine] - features[mine] @ np.linalg.solve(gram, features[other].T @ to_go[other])
    return left


def _features(rollouts: Rollouts) -> FloatArray:
    made = rollouts.decisions
    hour = np.eye(25)[made.begins // WINDOW]
    soc, budget = (made.observation[:, column].astype(np.float64) for column in (_SOC, _BUDGET))
    spent = (budget <= 0.0).astype(np.float64)
    days = np.eye(rollouts.days.batch)[rollouts.day[made.episode]]
    known = (*days.T, soc, budget, spent, *_battery_so_far(rollouts))
    return np.concatenate([hour * part[:, None] for part in known], axis=1)


def _battery_so_far(rollouts: Rollouts) -> tuple[FloatArray, ...]:
    """Return battery power before each decision, in kW: RMS of recent hours, mean, and recent replays."""
    made = rollouts.decisions
    rms_kw = np.sqrt(np.mean((rollouts.hour_before(made.episode, made.ends) / 1000.0) ** 2, axis=1))
    so_far = np.cumsum(np.pad((rollouts.power_w / 1000.0) ** 2, ((0, 0), (1, 0))), axis=1)
    clock = made.begins // WINDOW * WINDOW
    hours = [(np.maximum(clock - back, 0), np.maximum(clock - back + WINDOW, 0)) for back in _HOURS_BACK]
    hours = [(begin, np.minimum(end, made.begins)) for begin, end in hours]
    squares = [so_far[made.episode, end] - so_far[made.episode, begin] for begin, end in hours]
    past_kw = rollouts.hour_before(made.episode, made.begins) / 1000.0
    return (
        *(np.sqrt(np.maximum(square, 0.0) / WINDOW) for square in squares),
        np.sqrt(np.mean(past_kw**2, axis=1)),
        past_kw.mean(axis=1),
        _recent(made, rms_kw * rollouts.moved, REACH),
    )


def _recent(decisions: Decisions, values: FloatArray, reach: int) -> FloatArray:
    """Sum over the decisions that ended less than `reach` minutes before each one began."""
    so_far = np.concatenate([[0.0], np.cumsum(values)])
    episode, number = decisions.episode, np.arange(len(values))
    ends, since = (episode * _APART + at for at in (decisions.ends, np.maximum(decisions.begins - reach, 0)))
    first = np.minimum(np.searchsorted(ends, since, side="right"), number)
    return np.asarray(so_far[number] - so_far[first])


def align(probe: FloatArray, attack: FloatArray, seed: int = 0) -> Alignment:
    """Compare two gradients, (play, parameter) each, with bootstrap intervals over plays.

    Products are taken between different plays only: the noise of one play is in both gradients and would
    count as agreement.
    """
    plays = len(probe)
    if plays < LEAST_PLAYS:
        raise InputError(f"plays is {plays}; an interval needs {LEAST_PLAYS} or more")
    rng = np.random.default_rng([seed, plays])
    drawn = rng.multinomial(plays, np.full(plays, 1.0 / plays), RESAMPLES).astype(np.float64)
    weights = np.concatenate([np.ones((1, plays)), drawn])
    inner, own, other = (
        _pairs(first @ second.T, weights) for first, second in ((probe, attack), (probe, probe), (attack, attack))
    )
    # Where noise leaves a gradient no norm, only the sign is known, and gamma is unbounded.
    square = np.where((own > 0.0) & (other > 0.0), own * other, 0.0)
    cosine, gamma = np.sign(inner), np.sign(inner) * np.inf
    np.divide(inner, np.sqrt(square), out=cosine, where=square > 0.0)
    np.divide(inner, own, out=gamma, where=own > 0.0)
    return Alignment(_interval(inner), _interval(np.clip(cosine, -1.0, 1.0)), _interval(gamma))


def mean_of(by_play: FloatArray) -> Interval:
    """Average over plays, with the interval of a normal distribution."""
    value, off = float(by_play.mean()), 1.96 * float(by_play.std(ddof=1)) / np.sqrt(len(by_play))
    return Interval(value, value - off, value + off)


def _pairs(products: FloatArray, weights: FloatArray) -> FloatArray:
    """Average the products of different plays under each draw's weights, (draw,)."""
    apart = products - np.diag(np.diag(products))
    total = np.einsum("di,di->d", weights @ apart, weights)
    count = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return np.asarray(total / count)


def _interval(draws: FloatArray) -> Interval:
    """Take the figure of all plays, and percentiles of the resampled ones."""
    tail = (100.0 - CONFIDENCE_PERCENT) / 2
    low, high = np.percentile(draws[1:], [tail, 100.0 - tail], method="closest_observation")
    return Interval(float(draws[0]), float(low), float(high))
