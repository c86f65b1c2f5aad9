"""Reward of a reader that adapts: a denoising probe, refitted to the days that the manager masked.

The probe sees an hour of the masked meter and the household's usual load, and estimates the load behind the meter. It
learns from the meter alone: the household knows what its battery added, so no labels of appliances are needed. A
decision earns the probe's error in the decision's own minutes, relative to that of the usual load: 0 where the load is
read off the meter, 1 where the meter tells no more than habits do.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import nn

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import WINDOW, EnvState
from meterveil.core.rollout import Policy, rollout
from meterveil.core.scenario import Scenario
from meterveil.data.simulation import Setup
from meterveil.data.splits import VALIDATION_SHARE
from meterveil.defenders.manager.probe_reward import (
    LOSSES,
    Float32Array,
    check_scenario,
    complete_windows,
    windows_before,
)
from meterveil.defenders.manager.probes import Probe, Recipe, Segments, fit_network

HALF_HOUR = 30
COPIES = 4
"""Times that every training day is masked for a refit."""
REFIT = Recipe(segments=4096, epochs=2, learning_rate=1e-3)
"""Training of a refit, which goes on from the present weights."""


class DenoisingReward:
    """Reward of decisions in one scenario; every minute of a day is paid once, moved or not.

    A window with an unknown minute gives no reward.
    """

    def __init__(self, probe: Probe, scenario: Scenario, weight: float = 1.0, loss: str = "mse") -> None:
        check_scenario(scenario)
        self.probe = replace(probe, network=deepcopy(probe.network))
        self.scenario, self.weight, self.loss = scenario, weight, loss
        self.scaled = probe.scaler.transform(scenario.load_w).astype(np.float32)
        self.usual = probe.scaler.transform(usual_load(scenario)).astype(np.float32)
        self.complete = complete_windows(scenario)
        rows, minutes = np.nonzero(self.complete)
        self.prior_loss = float(np.mean(self._losses(self._usual(rows, minutes) - self._clean(rows, minutes))))

    def __call__(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        """Return the reward of one decision of each household: lambda times privacy, minus cost."""
        privacy = self.privacy(after.row, after.minute, after.past_w, after.minute - before.minute)
        return self.weight * privacy - (1.0 - self.weight) * after.cost

    def privacy(self, row: IntArray, minute: IntArray, past_w: FloatArray, lasted: IntArray) -> FloatArray:
        """Return hours times relative error of decisions that ended before these minutes; at most the last hour."""
        earned = np.zeros(len(row))
        asked = np.flatnonzero(self.complete[row, minute])
        if len(asked):
            at = row[asked], minute[asked]
            error = self._error(*at, (past_w[asked] / self.probe.scaler.std).astype(np.float32))
            own = np.minimum(lasted[asked], WINDOW)
            kept = np.arange(WINDOW) >= WINDOW - own[:, None]
            own_error = error * kept * np.sqrt(WINDOW / own)[:, None]  # the mean square is that of the own minutes
            earned[asked] = own / WINDOW * self._losses(own_error) / self.prior_loss
        return earned

    def refit(self, policy: Policy, setup: Setup, rng: np.random.Generator) -> float:
        """Refit the probe to days that a policy masks; return its error relative to the prior's on the last days."""
        days = self.scenario.batch
        row = np.tile(np.arange(days), COPIES)
        trace = rollout(policy, setup.battery, setup.library, self.scenario.rows(row), rng.spawn(len(row)))
        disturbance = np.zeros((len(row), self.scaled.shape[1]), dtype=np.float32)
        disturbance[:, self.scenario.lead :] = trace.power_w / self.probe.scaler.std
        last = max(1, round(days * (1.0 - VALIDATION_SHARE)))
        learning, _ = self._draw(row, disturbance, row < last, rng)
        validating, at = self._draw(row, disturbance, row >= min(last, days - 1), rng)
        fit_network(cast(nn.Module, self.probe.network), learning, validating, REFIT)
        error = self.probe.reconstruct(*(part.numpy() for part in validating.inputs)) - validating.clean.numpy()
        prior = self._usual(*at) - self._clean(*at)
        return float(np.mean(self._losses(error)) / np.mean(self._losses(prior)))

    def _draw(
        self, row: IntArray, disturbance: Float32Array, chosen: BoolArray, rng: np.random.Generator
    ) -> tuple[Segments, tuple[IntArray, IntArray]]:
        """Draw whole hours of some masked days: what the probe sees and what it is to find."""
        copies, minutes = np.nonzero(self.complete[row] & chosen[:, None])
        picked = rng.integers(len(copies), size=REFIT.segments)
        copy, minute = copies[picked], minutes[picked]
        at = row[copy], minute
        clean = self._clean(*at)
        seen = clean + windows_before(disturbance, self.scenario.lead, copy, minute)
        inputs = (torch.from_numpy(seen), torch.from_numpy(self._usual(*at)))
        return Segments(torch.from_numpy(clean), inputs), at

    def _error(self, row: IntArray, minute: IntArray, disturbance: Float32Array) -> Float32Array:
        clean = self._clean(row, minute)
        return self.probe.reconstruct(clean + disturbance, self._usual(row, minute)) - clean

    def _clean(self, row: IntArray, minute: IntArray) -> Float32Array:
        return windows_before(self.scaled, self.scenario.lead, row, minute)

    def _usual(self, row: IntArray, minute: IntArray) -> Float32Array:
        return windows_before(self.usual, self.scenario.lead, row, minute)

    def _losses(self, error: Float32Array) -> FloatArray:
        return LOSSES[self.loss](error, self.probe.scaler.std)


def usual_load(scenario: Scenario) -> FloatArray:
    """Return the mean load of each half hour of the day over all rows, (row, lead + minute)."""
    slot = scenario.minute_of_day // HALF_HOUR
    known = np.isfinite(scenario.load_w)
    slots = 1440 // HALF_HOUR
    total = np.bincount(slot[known], scenario.load_w[known], slots)
    count = np.bincount(slot[known], minlength=slots)
    mean_w = np.where(count > 0, total / np.maximum(count, 1), total.sum() / count.sum())
    usual_w: FloatArray = mean_w[slot]
    return usual_w
