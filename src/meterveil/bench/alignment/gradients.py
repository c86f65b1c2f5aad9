"""Policy gradients of any risk, one for each pass over the days, from decisions that were noted (REINFORCE).

A decision's score, the gradient of its log-probability, is weighed by what was lost from it on, less what
was to be expected there. What is expected is learned from the other half of the plays: a baseline that has
not seen the play leaves the gradient without bias.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meterveil.bench.alignment.risks import Risk
from meterveil.bench.alignment.rollouts import Decisions, Rollouts
from meterveil.core.arrays import FloatArray
from meterveil.core.env import OBSERVATION, WINDOW
from meterveil.defenders.manager.manager_policy import Mlp

REACH = 128
"""Minutes back up to which a decision changes what an attacker says: the longest window of any."""

_HOURS = 24
_HOURS_BACK = (0, 60, 120, 180)
_RIDGE = 1.0
_APART = 10_000
"""Minutes that lie between the clocks of two episodes where all share one: more than any day has."""

_SOC, _BUDGET = OBSERVATION.index("soc"), OBSERVATION.index("budget_left")


class Scores(NamedTuple):
    """Gradients of log-probabilities in factors: a layer's is the product of what goes in and `back`."""

    inputs: tuple[FloatArray, ...]  # (decision, in) of each layer
    back: tuple[FloatArray, ...]  # (decision, out) of each layer


def scores(network: Mlp, decisions: Decisions) -> Scores:
    """Differentiate the log-probability of what every decision did, backwards through the layers.

    Actions that would have done the same are one: which of them the dice chose is noise that nobody can see.
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


def gradients(rollouts: Rollouts, found: Scores, weight: FloatArray) -> FloatArray:
    """Sum weighed scores over each play, (play, parameter); a day counts by its share of the days."""
    play = rollouts.play[rollouts.decisions.episode]
    bounds = np.searchsorted(play, np.arange(rollouts.play[-1] + 2))
    rows = []
    for begin, end in pairwise(bounds):
        parts = []
        for inputs, back in zip(found.inputs, found.back, strict=True):
            weighed = back[begin:end] * weight[begin:end, None]
            parts += [(inputs[begin:end].T @ weighed).ravel(), weighed.sum(axis=0)]
        rows.append(np.concatenate(parts) / rollouts.days.batch)
    return np.array(rows)


def paid_to_go(rollouts: Rollouts, risk: Risk, gamma: float, reach: int) -> FloatArray:
    """Add up what is paid from each decision on, discounted by decisions (D6), as the training does.

    A decision changes what is said with hindsight up to `reach` minutes back: that counts too.
    """
    one, found = rollouts.decisions, np.empty_like(risk.paid)
    follows = 0.0
    for number in range(len(found) - 1, -1, -1):
        is_last = number + 1 == len(found) or one.episode[number + 1] != one.episode[number]
        follows = risk.paid[number] + (0.0 if is_last else gamma * follows)
        found[number] = follows
    return found + _recent(one, risk.paid, reach) if reach else found


def hours_to_go(rollouts: Rollouts, risk: Risk, reach: int) -> FloatArray:
    """Average over the day the hours that end behind each decision's beginning, less `reach` minutes."""
    left = np.cumsum(risk.hours[:, ::-1], axis=1)[:, ::-1] / risk.hours.shape[1]
    one = rollouts.decisions
    first = np.maximum(one.begins - reach, 0) // WINDOW
    known: FloatArray = np.pad(left, ((0, 0), (0, 1)))[one.episode, first]
    return known


def advantage(rollouts: Rollouts, to_go: FloatArray) -> FloatArray:
    """Take away what was to be expected of each decision's hour, day, SoC, budget and battery so far.

    `to_go` may be of several risks, (decision, risk).
    """
    seen = _features(rollouts)
    half = rollouts.play[rollouts.decisions.episode] % 2
    left = np.empty_like(to_go)
    for own in (0, 1):
        mine, other = half == own, half != own
        gram = seen[other].T @ seen[other] + _RIDGE * np.eye(seen.shape[1])
        left[mine] = to_go[mine] - seen[mine] @ np.linalg.solve(gram, seen[other].T @ to_go[other])
    return left


def _features(rollouts: Rollouts) -> FloatArray:
    one = rollouts.decisions
    hour = np.eye(_HOURS + 1)[one.begins // WINDOW]
    soc, budget = one.observation[:, _SOC].astype(np.float64), one.observation[:, _BUDGET].astype(np.float64)
    spent = (budget <= 0.0).astype(np.float64)
    days = np.eye(rollouts.days.batch)[rollouts.day[one.episode]]
    known = (*days.T, soc, budget, spent, *_battery_so_far(rollouts))
    return np.concatenate([hour * part[:, None] for part in known], axis=1)


def _battery_so_far(rollouts: Rollouts) -> tuple[FloatArray, ...]:
    """Return what the battery has done to what still counts, in kW: it is known, and no choice is left."""
    one = rollouts.decisions
    rms_kw = np.sqrt(np.mean((rollouts.hour_before(one.episode, one.ends) / 1000.0) ** 2, axis=1))
    so_far = np.cumsum(np.pad((rollouts.power_w / 1000.0) ** 2, ((0, 0), (1, 0))), axis=1)
    clock = one.begins // WINDOW * WINDOW
    hours = [(np.maximum(clock - back, 0), np.maximum(clock - back + WINDOW, 0)) for back in _HOURS_BACK]
    hours = [(begin, np.minimum(end, one.begins)) for begin, end in hours]
    squares = [so_far[one.episode, end] - so_far[one.episode, begin] for begin, end in hours]
    past_kw = rollouts.hour_before(one.episode, one.begins) / 1000.0
    return (
        *(np.sqrt(np.maximum(square, 0.0) / WINDOW) for square in squares),
        np.sqrt(np.mean(past_kw**2, axis=1)),
        past_kw.mean(axis=1),
        _recent(one, rms_kw * rollouts.moved, REACH),
    )


def _recent(decisions: Decisions, values: FloatArray, reach: int) -> FloatArray:
    """Sum over the decisions that ended less than `reach` minutes before each one began."""
    so_far = np.concatenate([[0.0], np.cumsum(values)])
    episode, number = decisions.episode, np.arange(len(values))
    ends, since = (episode * _APART + at for at in (decisions.ends, np.maximum(decisions.begins - reach, 0)))
    first = np.minimum(np.searchsorted(ends, since, side="right"), number)
    return np.asarray(so_far[number] - so_far[first])
