"""Reward of the manager: increase of the probe's loss minus cost (section 5, D5)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from meterveil.core.arrays import BoolArray, FloatArray, IntArray
from meterveil.core.env import WINDOW, EnvState
from meterveil.core.scenario import Scenario
from meterveil.defenders.manager.probes import Probe
from meterveil.defenders.training_days import LEAST_KNOWN
from meterveil.errors import InputError

Float32Array = npt.NDArray[np.float32]

LOSSES: dict[str, Callable[[Float32Array, float], FloatArray]] = {
    "mse": lambda error, std_w: _mean_square(error),
    "rmse": lambda error, std_w: np.sqrt(_mean_square(error)),
    "mse_kw2": lambda error, std_w: _mean_square(error) * (std_w / 1000.0) ** 2,
    "rmse_kw": lambda error, std_w: np.sqrt(_mean_square(error)) * (std_w / 1000.0),
}
"""Name -> loss of a window's scaled errors, (batch, 60); the paper does not say which it used.

`mse` is the loss that the probe was trained with, in units of the load's standard deviation.
"""

WORKERS = 2
"""Threads that share a batch of windows; torch releases the GIL in matrix products."""

_WORTH_SHARING = 16
_CLEAN_BATCH = 64
"""Windows per batch of the clean losses; more do not fit into the processor's cache."""


class ProbeReward:
    """Reward of decisions in one scenario; building it computes the clean losses of all windows.

    A window with an unknown minute gives no reward.
    """

    def __init__(self, probe: Probe, scenario: Scenario, weight: float = 1.0, loss: str = "mse") -> None:
        self.probe, self.weight, self.loss = probe, weight, loss
        self._pool = ThreadPoolExecutor(WORKERS)
        check_scenario(scenario)
        self.scenario = scenario
        self.scaled = probe.scaler.transform(scenario.load_w).astype(np.float32)
        self.complete = complete_windows(scenario)
        self.clean = self._clean_losses()

    def __call__(self, scenario: Scenario, before: EnvState, action: IntArray, after: EnvState) -> FloatArray:
        """Return `eq:total_reward` of one decision of each household."""
        privacy = self.privacy(after.row, after.minute, after.past_w, after.moved_kwh > 0.0)
        return self.weight * privacy - (1.0 - self.weight) * after.cost

    def privacy(self, row: IntArray, minute: IntArray, past_w: FloatArray, moved: BoolArray) -> FloatArray:
        """Return `eq:privacy_reward` of the windows that end before these minutes; 0 where nothing moved."""
        paid = np.zeros(len(row))
        asked = np.flatnonzero(moved & self.complete[row, minute])
        if len(asked):
            at = row[asked], minute[asked]
            disturbance = (past_w[asked] / self.probe.scaler.std).astype(np.float32)
            paid[asked] = self._losses(self._windows(*at), disturbance) - self.clean[at]
        return paid

    def _losses(self, clean: Float32Array, disturbance: Float32Array) -> FloatArray:
        error = self._reconstruct(clean + disturbance) - clean
        return LOSSES[self.loss](error, self.probe.scaler.std)

    def _reconstruct(self, seen: Float32Array) -> Float32Array:
        """Apply the probe; how windows are shared between threads depends on their number only."""
        if self.probe.network is None or len(seen) < _WORTH_SHARING:
            return self.probe.reconstruct(seen)
        parts = self._pool.map(self.probe.reconstruct, np.array_split(seen, WORKERS))
        return np.concatenate(list(parts))

    def _windows(self, row: IntArray, minute: IntArray) -> Float32Array:
        """Return the clean hours that end before these minutes, (batch, 60)."""
        return windows_before(self.scaled, self.scenario.lead, row, minute)

    def _clean_losses(self) -> FloatArray:
        """Compute the second term of `eq:privacy_reward` for every row and minute (D5)."""
        losses = np.zeros(self.complete.shape)
        rows, minutes = np.nonzero(self.complete)
        for begin in range(0, len(rows), _CLEAN_BATCH):
            at = rows[begin : begin + _CLEAN_BATCH], minutes[begin : begin + _CLEAN_BATCH]
            windows = self._windows(*at)
            losses[at] = self._losses(windows, np.zeros_like(windows))
        return losses


def windows_before(minutes: Float32Array, lead: int, row: IntArray, minute: IntArray) -> Float32Array:
    """Return the hours that end before these minutes, (batch, 60), of an array (row, lead + minute)."""
    columns = (lead - WINDOW + minute)[:, None] + np.arange(WINDOW)
    windows: Float32Array = minutes[row[:, None], columns]
    return windows


def complete_windows(scenario: Scenario) -> BoolArray:
    """Return whether the whole hour before each minute is known, (row, minute + 1)."""
    unknown = np.cumsum(np.isnan(scenario.load_w), axis=1, dtype=np.int64)
    unknown = np.concatenate([np.zeros((scenario.batch, 1), dtype=np.int64), unknown], axis=1)
    ends = scenario.lead + np.arange(scenario.horizon + 1)
    complete: BoolArray = unknown[:, ends] == unknown[:, ends - WINDOW]
    return complete


def check_scenario(scenario: Scenario) -> None:
    """Refuse days without an hour before them, or with too many unknown minutes."""
    if scenario.lead < WINDOW:
        raise InputError(f"the scenario has {scenario.lead} minutes before its start; a reward needs {WINDOW}")
    acting = scenario.load_w[:, scenario.lead :]
    for row, minutes in enumerate(scenario.minutes):
        known = float(np.mean(~np.isnan(acting[row, :minutes])))
        if known < LEAST_KNOWN:
            raise InputError(
                f"only {known:.0%} of the load of training day {row + 1} is known, the rest is NaN; "
                f"give days of which at least {LEAST_KNOWN:.0%} is known"
            )


def _mean_square(error: Float32Array) -> FloatArray:
    squares: FloatArray = np.mean(error.astype(np.float64) ** 2, axis=1)
    return squares
