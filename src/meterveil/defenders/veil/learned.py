"""Learned manager: a small network that corrects the planner's scores, from charge, budget and the usual coming block.

It acts with NumPy only; `manager_learning` trains it on the household's own earlier days.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from meterveil.core.arrays import FloatArray, IntArray
from meterveil.core.certificate import DAY_MINUTES, SLOT_MINUTES, Rules
from meterveil.defenders.trained_policies import Mlp
from meterveil.defenders.veil.planner import Planner
from meterveil.defenders.veil.situation import SLOTS, Situation

_HOURS = SLOT_MINUTES / 60.0
_HIGH = 85.0
"""Percentile of recent days that counts as a heavy day."""
_TRUST = 40.0
"""Logits for each unit of money that a choice costs more than the best one, according to the plan."""
WORST = -6.0
"""Least logit of the plan; an open mode, which it does not rate, has it too."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Decider whose scores are a plan's plus those of a trained network; equal to itself alone."""

    network: Mlp
    plan: Planner = field(default_factory=Planner)

    def scores(self, situation: Situation) -> FloatArray:
        """Rate each level and, if it was trained with them, each open mode."""
        battery = situation.battery
        usable_kwh = (np.asarray(battery.soc_max) - battery.soc_min) * battery.capacity_kwh
        stored_kwh = (situation.soc - battery.soc_min) * battery.capacity_kwh
        course = usual_course(situation.recent, situation.minute_of_day // SLOT_MINUTES, situation.rules)
        seen = observation(
            course,
            situation.minute_of_day // SLOT_MINUTES,
            stored_kwh,
            situation.budget_left_kwh,
            usable_kwh,
            np.asarray(battery.budget_kwh),
            situation.price,
        )
        planned = plan_logits(self.plan.scores(situation), situation.rules.choices)
        return planned + self.network.logits(np.concatenate([seen, planned / WORST], axis=1))


def plan_logits(scores: FloatArray, choices: int) -> FloatArray:
    """Turn a plan's scores of the levels into logits of all choices, (batch, M) -> (batch, choices)."""
    logits = np.maximum(_TRUST * (scores - scores.max(axis=1, keepdims=True)), WORST)
    return np.pad(logits, ((0, 0), (0, choices - scores.shape[1])), constant_values=WORST)


def usual_course(recent: FloatArray, slot: IntArray, rules: Rules) -> FloatArray:
    """Describe what usually comes after a half hour of the day, (batch, day, half hour, 1 + M) -> (batch, 5 + 3 M) kWh.

    Mean and high energy of the block up to the next decision and of the rest of the day, the least that the battery
    moves in that rest; then for each level the mean net charge, the mean and the high energy moved in the block.
    """
    times = np.array([*rules.choice_minutes, DAY_MINUTES]) // SLOT_MINUTES
    following = np.min(np.where(times > slot[:, None], times, SLOTS), axis=1)
    slots = np.arange(SLOTS)
    veiled = rules.protected(slots * SLOT_MINUTES)
    now = (slots >= slot[:, None]) & (slots < following[:, None]) & veiled  # (batch, half hour)
    rest = (slots >= following[:, None]) & veiled
    load_kwh = recent[..., 0] * (_HOURS / 1000.0)  # (batch, day, half hour)
    block_kwh, rest_kwh = (np.sum(load_kwh * part[:, None], axis=2) for part in (now, rest))
    moved_kwh = np.sum(recent[..., 1:] * now[:, None, :, None], axis=2)  # (batch, day, M)
    least_kwh = np.sum(np.min(recent[..., 1:].mean(axis=1), axis=2) * rest, axis=1)
    levels_kwh = np.asarray(rules.menu_w) * (_HOURS / 1000.0) * now.sum(axis=1)[:, None]
    parts = [
        *(part.mean(axis=1)[:, None] for part in (block_kwh, rest_kwh)),
        *(np.percentile(part, _HIGH, axis=1)[:, None] for part in (block_kwh, rest_kwh)),
        least_kwh[:, None],
        levels_kwh - block_kwh.mean(axis=1)[:, None],
        moved_kwh.mean(axis=1),
        np.percentile(moved_kwh, _HIGH, axis=1),
    ]
    return np.concatenate(parts, axis=1)


def observation(
    course: FloatArray,
    slot: IntArray,
    stored_kwh: FloatArray,
    left_kwh: FloatArray,
    usable_kwh: float | FloatArray,
    budget_kwh: float | FloatArray,
    price: FloatArray,
) -> FloatArray:
    """Return what the network sees, (batch, 11 + 3 M): the paper's observation without the load, and the usual course.

    The load of the minute is left out: among a few training days it would name the day. For each level it sees the
    charge and the budget that the block would usually leave, as shares of what the battery has.
    """
    usable_kwh, budget_kwh = np.maximum(usable_kwh, 1e-3), np.clip(budget_kwh, 1e-3, 1e3)
    left_kwh = np.minimum(left_kwh, budget_kwh)
    angle = slot * (2.0 * np.pi / SLOTS)
    state = [np.sin(angle), np.cos(angle), price[slot] - price.min(), stored_kwh / usable_kwh, left_kwh / budget_kwh]
    scale = np.broadcast_to(usable_kwh, slot.shape)[:, None], np.broadcast_to(budget_kwh, slot.shape)[:, None]
    net, mean, high = np.split(course[:, 5:], 3, axis=1)
    columns = [
        np.stack(state, axis=1),
        course[:, :4] / scale[0],
        course[:, 4:5] / scale[1],
        (left_kwh[:, None] - course[:, 4:5]) / scale[1],
        (stored_kwh[:, None] + net) / scale[0],
        (left_kwh[:, None] - mean) / scale[1],
        (left_kwh[:, None] - high) / scale[1],
    ]
    return np.asarray(np.clip(np.concatenate(columns, axis=1), -5.0, 5.0))
