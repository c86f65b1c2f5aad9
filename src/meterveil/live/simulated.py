"""Simulated house behind the same ports as real devices: load, meter, inverter with lag, and a dead-man timer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meterveil.core.arrays import FloatArray
from meterveil.live.ports import BatteryReading, Instant, MeterReading, PortError

DEVICE_TIMEOUT_S = 60.0
"""Usual time after which an inverter returns to its own mode without a new command."""


class SystemClock:
    """The computer's clocks."""

    def now(self) -> Instant:
        """Return the present moment."""
        return Instant(time.monotonic(), time.time())


@dataclass
class ManualClock:
    """Clock that stands still until it is moved; the wall clock may be moved alone."""

    monotonic_s: float = 0.0
    utc_s: float = 1_713_139_200.0  # 2024-04-15 00:00 UTC

    def now(self) -> Instant:
        """Return the present moment."""
        return Instant(self.monotonic_s, self.utc_s)

    def move(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.monotonic_s += seconds
        self.utc_s += seconds


@dataclass(frozen=True)
class Plant:
    """How meter and inverter respond."""

    dead_time_s: float = 2.0
    """From a command until the power begins to change."""
    ramp_w_per_s: float = 1000.0
    resolution_w: float = 1.0
    """Step of the inverter's power and of the meter's reading."""
    noise_w: float = 2.0
    """Standard deviation of the meter's reading."""
    meter_period_s: float = 1.0
    own_loop: bool = False
    """The inverter takes a meter target and holds it by itself."""
    timeout_s: float = DEVICE_TIMEOUT_S
    """Without a command for so long the inverter returns to its own mode; 0 for never, which is dangerous."""


class SimulatedHouse:
    """House whose load is known in advance, one value per second; it starts anew when the record ends.

    The inverter knows physical limits only (power, empty, full), so that a controller that breaks a limit of its
    own is found out. In its own automatic mode it covers the load and never charges from the grid.
    """

    def __init__(
        self,
        load_w: FloatArray,
        clock: ManualClock | SystemClock,
        plant: Plant | None = None,
        capacity_kwh: float = 8.0,
        most_w: float = 5000.0,
        soc: float = 0.5,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.load_w = load_w
        self.clock = clock
        self.plant = plant or Plant()
        self.capacity_kwh = capacity_kwh
        self.most_w = most_w
        self.soc = soc
        self.power_w = 0.0
        self.commands = 0
        self._rng = rng or np.random.default_rng(0)
        self._began_s = clock.now().monotonic_s
        self._passed_s = 0
        self._pending: deque[tuple[float, bool, float | None]] = deque()
        self._wanted: tuple[bool, float | None] = (False, None)
        self._heard_s = -np.inf
        self._seen_load_w = self.present_load_w()
        """Load that the inverter's own loop knows: that of the second before."""
        self._newest = self._measure()
        self.on_second: Callable[[float, float], None] = lambda load_w, power_w: None
        """Called with load and battery power of every second, for records."""

    def read_meter(self) -> MeterReading:
        """Return the newest reading of the meter's own rhythm."""
        self._catch_up()
        return self._newest

    def read_battery(self) -> BatteryReading:
        """Return the state of the battery at this moment."""
        self._catch_up()
        told = None if self._wanted[0] else self._wanted[1]
        return BatteryReading(self.soc, self.power_w, self._began_s + self._passed_s, told)

    @property
    def remote(self) -> bool:
        """Whether the inverter follows a command, and not its own mode."""
        return self._wanted[1] is not None

    def command_battery(self, power_w: float | None) -> None:
        """Take a power, which acts after the dead time; None returns to the automatic mode at once."""
        self._hear(False, power_w)

    def command_meter(self, target_w: float | None) -> None:
        """Take a meter target where the inverter has a loop of its own."""
        if not self.plant.own_loop:
            raise PortError("the simulated inverter has no grid set-point; command its power instead")
        self._hear(True, target_w)

    def present_load_w(self) -> float:
        """Return the true load of this second."""
        return float(self.load_w[self._passed_s % len(self.load_w)])

    def _hear(self, is_target: bool, value: float | None) -> None:
        self._catch_up()
        self.commands += 1
        self._heard_s = float(self._passed_s)
        if value is None:
            self._release()
        else:
            dead_s = 0.0 if is_target else self.plant.dead_time_s
            self._pending.append((self._passed_s + dead_s, is_target, value))

    def _release(self) -> None:
        self._pending.clear()
        self._wanted = (False, None)

    def _catch_up(self) -> None:
        due_s = int(self.clock.now().monotonic_s - self._began_s)
        while self._passed_s < due_s:
            self._second()

    def _second(self) -> None:
        """Let one second pass."""
        plant, load_w = self.plant, self.present_load_w()
        if 0 < plant.timeout_s < self._passed_s - self._heard_s:
            self._release()
        while self._pending and self._pending[0][0] <= self._passed_s:
            _, of_meter, watts = self._pending.popleft()
            self._wanted = (of_meter, watts)
        is_target, value = self._wanted
        wanted_w = -max(load_w, 0.0) if value is None else value
        if value is not None and is_target:
            wanted_w = value - self._seen_load_w
        change_w = min(max(wanted_w - self.power_w, -plant.ramp_w_per_s), plant.ramp_w_per_s)
        self.power_w = self._possible(self.power_w + change_w)
        self.soc += self.power_w / (3.6e6 * self.capacity_kwh)
        self.on_second(load_w, self.power_w)
        self._seen_load_w = load_w
        self._passed_s += 1
        if self._passed_s % plant.meter_period_s < 1.0:
            self._newest = self._measure(load_w)

    def _possible(self, wanted_w: float) -> float:
        step_w = self.plant.resolution_w
        power_w = round(min(max(wanted_w, -self.most_w), self.most_w) / step_w) * step_w
        if (power_w > 0.0 and self.soc >= 1.0) or (power_w < 0.0 and self.soc <= 0.0):
            return 0.0
        return power_w

    def _measure(self, load_w: float | None = None) -> MeterReading:
        load_w = self.present_load_w() if load_w is None else load_w
        noisy_w = load_w + self.power_w + self.plant.noise_w * self._rng.standard_normal()
        step_w = self.plant.resolution_w
        return MeterReading(round(noisy_w / step_w) * step_w, self._began_s + self._passed_s, 50.0, 230.0)
