"""What the battery's power costs whoever reads the meter, in the windows that the manager's reward looks at.

A risk is a loss on the masked hour less the loss on the same clean hour (`eq:privacy_reward`). The probe is
asked by the reward itself. An attacker reads the whole day and the hour before it, and the errors of all its
targets are taken in the unit of the probe's, spreads of the household's load, so that the two compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from meterveil.attackers.protocol import Attacker, Meter
from meterveil.bench.alignment.rollouts import Rollouts
from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.env import WINDOW
from meterveil.core.scenario import Scenario
from meterveil.defenders.manager.probe_reward import LOSSES, ProbeReward

Truth = Mapping[str, FloatArray]
"""Appliance -> (day, lead + minute) what it really drew; NaN where that is unknown."""

WindowLoss = Callable[[IntArray, IntArray], FloatArray]
"""From episodes and minutes to what the hours that end before them lost, one number each."""

_AT_ONCE = 128
"""Windows that the probe is asked about in one go: more of them leave the processor's cache."""

_THURSDAY = 3
"""Weekday of day 0 of a scenario's count, 1 January 1970."""


class Risk(NamedTuple):
    """What one reader of the meter lost."""

    paid: FloatArray  # (decision,) by the hour that ends with it; 0 where it moved nothing (D5)
    hours: FloatArray  # (episode, hour) by every hour of the day


def probe_risk(rollouts: Rollouts, reward: ProbeReward) -> Risk:
    """Ask the probe, as the manager's training does."""

    def loss(episode: IntArray, minute: IntArray) -> FloatArray:
        parts = [np.arange(at, min(at + _AT_ONCE, len(minute))) for at in range(0, len(minute), _AT_ONCE)]
        return np.concatenate([some(episode[part], minute[part]) for part in parts])

    def some(episode: IntArray, minute: IntArray) -> FloatArray:
        past_w = rollouts.hour_before(episode, minute)
        return reward.privacy(rollouts.day[episode], minute, past_w, np.ones(len(minute), dtype=np.bool_))

    return _risk(rollouts, loss)


def attacker_risk(rollouts: Rollouts, reward: ProbeReward, attacker: Attacker, truth: Truth) -> Risk:
    """Let an attacker read every episode, and take its errors where the probe's are taken."""
    days, std_w = rollouts.days, reward.probe.scaler.std
    padded_w = np.pad(rollouts.power_w, ((0, 0), (days.lead, 0)))
    masked = attacker.predict(_meter(days.rows(rollouts.day), padded_w)).watts
    clean = attacker.predict(_meter(days, np.zeros_like(days.load_w))).watts
    first = days.lead - WINDOW

    def loss(episode: IntArray, minute: IntArray) -> FloatArray:
        day, columns = rollouts.day[episode], first + minute[:, None] + np.arange(WINDOW)
        lost = np.zeros(len(episode))
        for target, true_w in truth.items():
            said = masked[target][episode[:, None], columns], clean[target][day[:, None], columns]
            errors = (np.nan_to_num((one - true_w[day[:, None], columns]) / std_w) for one in said)
            behind, bare = (LOSSES[reward.loss](error.astype(np.float32), std_w) for error in errors)
            lost += (behind - bare) / len(truth)
        return np.where(reward.complete[day, minute], lost, 0.0)

    return _risk(rollouts, loss)


def mean_risk(risks: list[Risk]) -> Risk:
    """Expect a risk over attackers that are all as likely (mu of `eq:app_avg_risk`)."""
    return Risk(*(np.mean(parts, axis=0) for parts in zip(*risks, strict=True)))


def _risk(rollouts: Rollouts, loss: WindowLoss) -> Risk:
    one, moved = rollouts.decisions, rollouts.moved
    paid = np.zeros(len(moved))
    paid[moved] = loss(one.episode[moved], one.ends[moved])
    episodes, minutes = rollouts.power_w.shape
    ends = np.arange(WINDOW, minutes + 1, WINDOW)
    episode, end = (part.ravel() for part in np.meshgrid(np.arange(episodes), ends, indexing="ij"))
    return Risk(paid, loss(episode, end).reshape(episodes, len(ends)))


def _meter(days: Scenario, power_w: FloatArray) -> Meter:
    return Meter(days.load_w + power_w, days.minute_of_day, (days.day + _THURSDAY) % 7)
