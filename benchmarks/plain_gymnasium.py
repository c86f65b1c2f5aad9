"""The obvious way to write this simulation: one household, one minute a step, plain Python floats.

It is what the batched core is compared with, and keeps to the same physics: `simulate.py` checks that
both give the same trace.
"""

import math
from collections.abc import Sequence

import gymnasium
import numpy as np
import numpy.typing as npt

HOURS = 1.0 / 60.0


class PlainHousehold(gymnasium.Env[npt.NDArray[np.float32], int]):
    """Replay signatures against a day of load; an action starts one when none is running."""

    def __init__(self, load_w: Sequence[float], price: Sequence[float], signatures: Sequence[Sequence[float]]) -> None:
        self.load_w = load_w
        self.price = price
        self.signatures = signatures
        self.capacity_kwh = 8.0
        self.limit_w = 4000.0
        self.soc_min, self.soc_max = 0.1, 0.9
        self.budget_kwh = 8.0
        self.degradation_per_kwh = 0.075
        self.observation_space = gymnasium.spaces.Box(-1000.0, 1000.0, (6,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2 * len(signatures) + 1)

    def reset(self, *, seed=None, options=None):
        """Begin the day half full."""
        super().reset(seed=seed)
        self.minute = 0
        self.soc = 0.5
        self.moved_kwh = 0.0
        self.replay: Sequence[float] = ()
        self.sign = 1.0
        self.elapsed = 0
        return self._observation(), {}

    def step(self, action):
        """Let one minute pass."""
        load_w, price = self.load_w[self.minute], self.price[self.minute]
        if self.elapsed >= len(self.replay):
            self._start(action)
        request_w = self.sign * self.replay[self.elapsed]
        power_w = self._deliver(request_w, load_w)
        energy_kwh = power_w / 1000.0 * HOURS
        self.soc += energy_kwh / self.capacity_kwh
        self.moved_kwh += abs(energy_kwh)
        self.elapsed += 1
        self.minute += 1
        terminated = self.minute == len(self.load_w)
        cost = price * energy_kwh + self.degradation_per_kwh * abs(energy_kwh)
        info = {"power_w": power_w, "soc": self.soc, "meter_w": load_w + power_w}
        return self._observation(), -cost, terminated, False, info

    def _start(self, action):
        k = len(self.signatures)
        self.replay = self.signatures[(action - 1) % k] if action else (0.0,)
        self.sign = -1.0 if action > k else 1.0
        self.elapsed = 0

    def _deliver(self, request_w, load_w):
        if math.isnan(load_w):
            self.elapsed = len(self.replay)
            return 0.0
        wanted_w = min(max(request_w, -self.limit_w, -max(load_w, 0.0)), self.limit_w)
        room_kwh = self.soc_max - self.soc if wanted_w > 0.0 else self.soc - self.soc_min
        room_kwh = min(max(room_kwh, 0.0) * self.capacity_kwh, max(self.budget_kwh - self.moved_kwh, 0.0))
        room_w = room_kwh / HOURS * 1000.0
        power_w = min(max(wanted_w, -room_w), room_w)
        infeasible = self.elapsed == 0 and power_w == 0.0 and request_w != 0.0
        if power_w != wanted_w or infeasible:
            self.elapsed = len(self.replay)
        return power_w

    def _observation(self):
        now = min(self.minute, len(self.load_w) - 1)
        angle = 2.0 * math.pi * now / 1440.0
        left = max(self.budget_kwh - self.moved_kwh, 0.0) / self.budget_kwh
        load_kw = self.load_w[now] / 1000.0
        values = [load_kw, math.sin(angle), math.cos(angle), self.price[now], self.soc, left]
        return np.array(values, dtype=np.float32)
